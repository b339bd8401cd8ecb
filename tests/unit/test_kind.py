"""`make e2e-kind` with programs that only write down what they are asked: what is done, and what undone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from e2e.install import ROOT
from e2e.kind import run
from e2e.kind.engine import NO_ENGINE, Engine, NoEngineError, default_image, find
from tests.support.kubectl import Kubectl
from tests.unit.test_binaries import executable

ENGINE = '#!/bin/sh\n[ "$1" = info ] && exit 0\necho "engine $*" >> "$CALLS"\n'
SILENT = "#!/bin/sh\necho 'Cannot connect: is it running?' >&2\nexit 1\n"
KIND = '#!/bin/sh\necho "kind $* ($KIND_EXPERIMENTAL_PROVIDER)" >> "$CALLS"\n[ "$1" != "$FAIL" ] || exit 1\n'


class Desk:
    """A PATH of programs, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "path"
        self.calls = folder / "calls"
        self.calls.touch()

    def has(self, name: str, text: str) -> None:
        executable(self.path / name, text)

    def environ(self, **more: str) -> dict[str, str]:
        return {"PATH": f"{self.path}:{os.defpath}", "CALLS": str(self.calls), "HOME": str(self.path), **more}

    def said(self) -> list[str]:
        """The programs with their first words, in order."""
        return [" ".join(line.split()[:3]) for line in self.calls.read_text().splitlines()]

    def run(self, *specs: str, fail: str = "") -> int:
        """`python -m e2e.kind.run --stand-in`, with this command in place of the specs."""
        code = f"import sys; from e2e.kind.run import main; sys.exit(main(['--stand-in'], specs={specs!r}))"
        environ = self.environ(FAIL=fail)
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, timeout=60, check=False)
        return done.returncode


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path)
    found.has("docker", ENGINE)
    found.has("kind", KIND)
    return found


# ---- the engine


def test_the_first_engine_that_answers_is_taken(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.has("docker", SILENT)
    desk.has("podman", ENGINE)
    assert find({"PATH": str(desk.path)}) == Engine("podman", str(desk.path / "podman"))


def test_without_an_engine_it_says_what_was_tried_and_what_helps(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.has("docker", SILENT)
    with pytest.raises(NoEngineError) as refused:
        find({"PATH": str(desk.path)})
    text = str(refused.value)
    assert "docker: Cannot connect: is it running?" in text
    assert "podman: not on PATH" in text
    assert "make e2e KUBECONFIG=file" in text


@pytest.mark.parametrize(
    "module", [["e2e.kind.run"], ["e2e.kind.engine", "build"]], ids=lambda words: words[0]
)
def test_without_an_engine_it_stops_with_an_exit_code_of_its_own(tmp_path: Path, module: list[str]) -> None:
    desk = Desk(tmp_path)
    desk.has("docker", SILENT)
    desk.has("kind", KIND)
    done = subprocess.run(
        [sys.executable, "-m", *module],
        cwd=ROOT,
        env={**desk.environ(), "PATH": str(desk.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == NO_ENGINE
    assert "No container engine answers" in done.stderr
    assert desk.said() == []


def test_an_image_gets_the_name_that_the_chart_means(desk: Desk) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "e2e.kind.engine", "build"],
        cwd=ROOT,
        env=desk.environ(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"built {default_image()} with docker" in done.stdout
    assert f"--tag {default_image()} " in desk.calls.read_text()
    assert "--file " + str(ROOT / "Containerfile") in desk.calls.read_text()


# ---- the run


def test_the_image_is_built_before_the_cluster_and_loaded_into_it(desk: Desk) -> None:
    assert desk.run("true") == 0
    assert desk.said() == [
        "engine build --file",
        "kind create cluster",
        "engine save --output",
        "kind load image-archive",
        "kind delete cluster",
    ]
    assert "(docker)" in desk.calls.read_text()


def test_the_cluster_has_a_name_and_a_kubeconfig_of_its_own(desk: Desk) -> None:
    desk.run("sh", "-c", 'echo "specs on $BULLPEN_E2E_KUBECONFIG with $BULLPEN_E2E_IMAGE" >> "$CALLS"')
    lines = desk.calls.read_text().splitlines()
    [create] = [line.split() for line in lines if " create " in line]
    [delete] = [line.split() for line in lines if " delete " in line]
    name, kubeconfig = (create[create.index(flag) + 1] for flag in ("--name", "--kubeconfig"))
    assert name.startswith("bullpen-e2e-")
    assert [delete[delete.index(flag) + 1] for flag in ("--name", "--kubeconfig")] == [name, kubeconfig]
    assert f"specs on {kubeconfig} with {run.IMAGE}" in lines
    assert not Path(kubeconfig).parent.exists()


def test_failed_specs_fail_the_run_and_the_cluster_is_removed_after_its_logs_were_kept(desk: Desk) -> None:
    assert desk.run("false") == 1
    assert desk.said()[-2:] == ["kind export logs", "kind delete cluster"]


@pytest.mark.parametrize("step", ["create", "load"])
def test_the_cluster_is_removed_when_a_step_before_the_specs_fails(desk: Desk, step: str) -> None:
    assert desk.run("sh", "-c", 'echo specs >> "$CALLS"', fail=step) == 1
    assert desk.said()[-1] == "kind delete cluster"
    assert "specs" not in desk.said()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_cluster_is_removed_when_somebody_stops_the_run(desk: Desk, number: signal.Signals) -> None:
    # The specs' shell has the run as its parent.
    assert desk.run("sh", "-c", f"kill -{number.value} $PPID; sleep 1") == 130
    assert desk.said()[-1] == "kind delete cluster"


def test_kubevirt_is_installed_by_its_release_with_emulation_and_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Kubectl, "__call__", lambda _, *arguments, **__: asked.append(" ".join(arguments)))
    run.install_kubevirt(Kubectl(Path("nowhere")), "v1.2.3")
    operator, established, resource, patch, available = asked
    assert operator.startswith("apply -f https://")
    assert operator.endswith("/v1.2.3/kubevirt-operator.yaml")
    assert "crd/kubevirts.kubevirt.io" in established
    assert resource.endswith("/v1.2.3/kubevirt-cr.yaml")
    assert '"useEmulation":true' in patch
    assert "--for=condition=Available" in available


def test_the_cluster_file_is_one_that_kind_reads() -> None:
    config = yaml.safe_load(run.CLUSTER.read_text())
    assert (config["kind"], config["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert [node["role"] for node in config["nodes"]] == ["control-plane"]
