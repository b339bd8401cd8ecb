"""Where helm and kind come from: PATH, the cache, a build; and what is said without any of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.tools.programs import BuildError, NoProgramError, find_or_build, version_of
from tests.unit.test_binaries import Machine, executable


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def find(machine: Machine, name: str = "helm") -> Path:
    return find_or_build(name, machine.environ, machine.cache, machine.said.append)


def test_the_one_on_the_path_is_taken(machine: Machine) -> None:
    machine.go()
    mine = executable(machine.path / "helm")
    assert find(machine) == mine
    assert machine.built() == []


@pytest.mark.parametrize(
    ("name", "package"), [("helm", "helm.sh/helm/v4/cmd/helm"), ("kind", "sigs.k8s.io/kind")]
)
def test_it_is_built_once_into_a_folder_of_its_version(machine: Machine, name: str, package: str) -> None:
    machine.go()
    built = find(machine, name)
    assert built == machine.cache / f"{name}-{version_of(name)}" / name
    assert os.access(built, os.X_OK)
    assert find(machine, name) == built
    assert machine.built() == [package]
    assert f"building {name} {version_of(name)} (once) …" in machine.said


def test_a_failing_build_shows_what_the_compiler_said(machine: Machine) -> None:
    machine.go(build='echo "no space left on device" >&2; exit 1')
    with pytest.raises(BuildError, match="no space left on device"):
        find(machine)


def test_without_go_it_says_what_would_help(machine: Machine) -> None:
    environ = {**machine.environ, "PATH": str(machine.path)}
    with pytest.raises(NoProgramError) as refused:
        find_or_build("kind", environ, machine.cache, machine.said.append)
    assert "there is no `go` on PATH" in str(refused.value)
    assert "put kind on PATH" in str(refused.value)


@pytest.mark.parametrize("name", ["helm", "kind"])
def test_the_version_comes_from_the_module_file(name: str) -> None:
    assert version_of(name).startswith("v")
