"""The README's tour, as it is written, from where `make demo` ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from e2e.tour import README, Command, commands, run
from tests.support.auditing import AuditorThread
from tests.support.controller import Controller

pytestmark = pytest.mark.cluster

_VERBS = re.compile(r".* (created|patched|scaled|condition met)$|.* deleted from ")
_HEADER = re.compile(r"NAME( +[A-Z-]+)+$")


@pytest.fixture
def here(kubeconfig: Path, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig whose default namespace is the test's."""
    config = yaml.safe_load(kubeconfig.read_text())
    for each in config["contexts"]:
        each["context"]["namespace"] = namespace
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def _lasting(output: str) -> list[str]:
    """The lines that are the same whenever the command is run: what was done, and the columns' names."""
    lines = [re.sub(r"(deleted) from .*", r"\1", line) for line in output.splitlines() if _VERBS.match(line)]
    return lines + [" ".join(line.split()) for line in output.splitlines() if _HEADER.match(line)]


def _shown(command: Command, readme: str) -> str:
    """What the README shows behind a command, up to the next one or the block's end."""
    behind = readme.split(f"$ {command.line}\n", 1)[1]
    return re.split(r"^(?:\$ |```)", behind, maxsplit=1, flags=re.MULTILINE)[0]


def test_the_tour_comes_out_as_the_readme_shows(
    here: Path,
    controller: Controller,  # noqa: ARG001 - serves the pools
    auditor: AuditorThread,  # noqa: ARG001 - judges at the end
) -> None:
    for line in (
        "kubectl apply -f examples/pool.yaml -f examples/ten-claims.yaml",
        "kubectl wait --for=condition=Ready vmc --all --timeout=90s",
        "kubectl delete vmc job-1",
        "kubectl wait wp/runners --for=jsonpath='{.status.warm.ready}'=5 --timeout=90s",
    ):
        run(Command(line), here)
    readme = README.read_text()
    for command in commands(readme):
        printed = run(command, here)
        assert _lasting(printed) == _lasting(_shown(command, readme)), command.line
        readme = readme.split(f"$ {command.line}\n", 1)[1]  # the same command may come again
