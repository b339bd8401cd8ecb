"""The image holds what the controller needs and no more, judged by its recipe: that takes no engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from e2e.install import ROOT

LOCK = ROOT / "requirements-controller.lock"
COPIED = ("capacity", "controller", "crds", "statemachines")


def instructions() -> list[tuple[str, str]]:
    """The Containerfile's instructions with their arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.partition(" ")[2]) for line in lines if line.strip()]


def locked(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Version and hashes by package."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for entry in re.split(r"\n(?=[a-z])", path.read_text()):
        if pinned := re.match(r"([A-Za-z0-9_.\-]+)==(\S+)", entry):
            found[canonicalize_name(pinned[1])] = (pinned[2], frozenset(re.findall(r"sha256:\w+", entry)))
    return found


def test_both_stages_start_from_the_same_pinned_slim_base() -> None:
    first, last = [words.split()[0] for name, words in instructions() if name == "FROM"]
    assert first == last
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", last)


def test_what_is_built_with_stays_behind() -> None:
    final = instructions()[[name for name, _ in instructions()].index("FROM", 1) :]
    assert [words for name, words in final if name == "COPY"] == ["--from=build /opt/bullpen /opt/bullpen"]
    assert not [words for name, words in final if name == "RUN"]


def test_the_user_is_a_number_that_is_not_root_and_the_charts() -> None:
    [user] = [words for name, words in instructions() if name == "USER"]
    assert user == "65532:65532"
    assert "runAsUser: 65532" in (ROOT / "charts/bullpen/templates/deployment.yaml").read_text()


def test_it_runs_the_controller() -> None:
    [entry] = [json.loads(words) for name, words in instructions() if name == "ENTRYPOINT"]
    assert entry == ["python", "-m", "controller"]


def test_packages_are_installed_by_hash_alone() -> None:
    installs = [words for name, words in instructions() if name == "RUN" and "pip install" in words]
    assert len(installs) == 1
    assert "--require-hashes" in installs[0]
    assert "--only-binary=:all:" in installs[0]


def test_everything_that_is_copied_exists_and_is_let_in() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    sources = [words.split()[0] for name, words in instructions() if name == "COPY" and "--from" not in words]
    assert sorted(sources) == sorted([*COPIED, LOCK.name])
    assert "*" in ignored
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored


def test_the_controllers_lock_is_a_part_of_the_whole_one() -> None:
    whole, part = locked(ROOT / "requirements.lock"), locked(LOCK)
    assert part
    assert part.items() <= whole.items(), "run `make lock`"
    assert "pytest" not in part


def test_the_controllers_lock_covers_what_the_project_depends_on() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    [block] = re.findall(r"^dependencies = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    part = locked(LOCK)
    for each in map(Requirement, re.findall(r'"(.+?)"', block)):
        version, _ = part[canonicalize_name(each.name)]
        assert each.specifier.contains(version), each


_IMPORT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Refuse())
import controller.__main__
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_controller_starts_with_what_the_image_holds_alone() -> None:
    packages, ours = packages_distributions(), {path.parent.name for path in ROOT.glob("*/__init__.py")}
    held = {
        name
        for name, owners in packages.items()
        if any(canonicalize_name(owner) in locked(LOCK) for owner in owners)
    }
    refused = (packages.keys() | ours) - held - set(COPIED)
    code = f"REFUSED = {sorted(refused)!r}\n{_IMPORT}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ours & set(done.stdout.split()) == set(COPIED)
