"""Where the control plane's binaries come from: the order of places, the build, what is said without it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from e2e.controlplane import binaries
from e2e.controlplane.binaries import PACKAGES, BuildError, NoBinariesError, find, find_or_build
from tests.support.processes import alive


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def place(folder: Path, *without: str) -> Path:
    """A folder with all binaries but these."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        if name not in without:
            executable(folder / name)
    return folder


class Machine:
    """What a build sees of a machine: PATH with a `go` on it, and what is said to a person."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "path"
        self.path.mkdir()
        self.assets = folder / "assets"
        self.cache = folder / "cache"
        self.builds = folder / "builds"
        self.said: list[str] = []

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": f"{self.path}:{os.defpath}",
            "BUILDS": str(self.builds),
            "KUBEBUILDER_ASSETS": str(self.assets) if self.assets.exists() else "",
        }

    def go(self, version: str = "go1.26.8", build: str = 'echo binary > "$out"; chmod +x "$out"') -> None:
        executable(
            self.path / "go",
            "#!/bin/sh\n"
            f'if [ "$1" = version ]; then echo "go version {version} linux/amd64"; exit; fi\n'
            'while [ "$1" != -o ]; do shift; done; out="$2"\n'
            'echo "$3 $GOTOOLCHAIN $CGO_ENABLED $GOFLAGS" >> "$BUILDS"\n'
            f"{build}\n",
        )

    def find(self) -> dict[str, Path] | None:
        return find(self.environ, self.cache, self.said.append)

    def find_or_build(self) -> dict[str, Path]:
        return find_or_build(self.environ, self.cache, self.said.append)

    def built(self) -> list[str]:
        return (
            [line.split()[0] for line in self.builds.read_text().splitlines()] if self.builds.exists() else []
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def folder_of(found: dict[str, Path] | None) -> Path:
    assert found is not None
    assert set(found) == set(PACKAGES)
    (folder,) = {path.parent for path in found.values()}
    return folder


def test_the_assets_come_before_the_cache_and_the_cache_before_the_path(machine: Machine) -> None:
    place(machine.path)
    assert folder_of(machine.find()) == machine.path
    place(machine.cache)
    assert folder_of(machine.find()) == machine.cache
    place(machine.assets)
    assert folder_of(machine.find()) == machine.assets
    assert machine.said == []


def test_assets_without_a_controller_manager_are_passed_over_and_it_is_said(machine: Machine) -> None:
    place(machine.assets, "kube-controller-manager", "kube-scheduler")
    place(machine.cache)
    assert folder_of(machine.find()) == machine.cache
    (said,) = machine.said
    assert said.startswith(
        f"KUBEBUILDER_ASSETS={machine.assets} lacks kube-controller-manager, kube-scheduler;"
    )


@pytest.mark.parametrize("missing", PACKAGES)
def test_a_place_that_lacks_one_binary_does_not_count(machine: Machine, missing: str) -> None:
    place(machine.cache, missing)
    place(machine.path, missing)
    assert machine.find() is None


def test_a_file_that_nobody_may_run_does_not_count(machine: Machine) -> None:
    (place(machine.cache) / "etcd").chmod(0o644)
    assert machine.find() is None


def test_what_is_found_is_not_built(machine: Machine) -> None:
    machine.go()
    place(machine.cache)
    assert folder_of(machine.find_or_build()) == machine.cache
    assert machine.built() == []


def test_all_four_are_built_once_into_the_cache(machine: Machine) -> None:
    machine.go()
    assert folder_of(machine.find_or_build()) == machine.cache
    assert folder_of(machine.find_or_build()) == machine.cache
    assert machine.built() == list(PACKAGES.values())
    assert sorted(path.name for path in machine.cache.iterdir()) == sorted([".lock", *PACKAGES])


def test_the_compiler_is_the_stock_one_and_keeps_the_machine_s_own_flags(machine: Machine) -> None:
    machine.go()
    find_or_build({**machine.environ, "GOFLAGS": "-buildvcs=false"}, machine.cache, machine.said.append)
    settings = {tuple(line.split()[1:]) for line in machine.builds.read_text().splitlines()}
    assert settings == {("local", "0", "-buildvcs=false")}


def test_a_person_reads_what_is_being_built_and_how_long_it_took(machine: Machine) -> None:
    machine.go()
    machine.find_or_build()
    assert machine.said[0].startswith(f"Building Kubernetes {binaries.VERSION} once into {machine.cache}")
    assert "building kube-apiserver (1 of 4) …" in machine.said
    assert "building etcd (4 of 4): done in 0 s" in machine.said


def test_a_build_that_was_stopped_half_way_goes_on_where_it_stopped(machine: Machine) -> None:
    machine.go()
    place(machine.cache, "kube-scheduler")
    (machine.cache / ".building-killed").mkdir()
    machine.find_or_build()
    assert machine.built() == [PACKAGES["kube-scheduler"]]
    assert not (machine.cache / ".building-killed").exists()


def test_a_failing_build_shows_what_the_compiler_said_and_leaves_nothing_behind(machine: Machine) -> None:
    machine.go(build='echo "no space left on device" >&2; exit 1')
    with pytest.raises(BuildError, match=r"building kube-apiserver failed:\nno space left on device"):
        machine.find_or_build()
    assert [path.name for path in machine.cache.iterdir()] == [".lock"]
    assert "building kube-apiserver (1 of 4): stopped after 0 s" in machine.said


def test_two_builders_at_once_build_each_binary_once(machine: Machine) -> None:
    machine.go(build='sleep 0.1; echo binary > "$out"; chmod +x "$out"')
    builders = [threading.Thread(target=machine.find_or_build) for _ in range(2)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert machine.built() == list(PACKAGES.values())
    assert "another process is building the same binaries; waiting for it" in machine.said


@pytest.mark.parametrize("version", ["go1.25.9", "go1.9", "devel"])
def test_a_go_that_is_too_old_is_named(machine: Machine, version: str) -> None:
    machine.go(version)
    with pytest.raises(NoBinariesError, match=f"`go version` says 'go version {version} linux/amd64'"):
        machine.find_or_build()


@pytest.mark.parametrize("version", ["go1.26", "go1.26.0", "go1.27rc1", "go2.0"])
def test_a_go_that_is_new_enough_is_taken(machine: Machine, version: str) -> None:
    machine.go(version)
    assert folder_of(machine.find_or_build()) == machine.cache


def test_without_go_the_ways_out_are_named(machine: Machine) -> None:
    environ = {**machine.environ, "PATH": str(machine.path)}
    with pytest.raises(NoBinariesError) as refused:
        find_or_build(environ, machine.cache, machine.said.append)
    text = str(refused.value)
    for way in ("install Go 1.26", "KUBEBUILDER_ASSETS", "on PATH", "KUBECONFIG", "there is no `go` on PATH"):
        assert way in text


def test_the_modules_are_of_the_version_that_the_cache_is_named_after() -> None:
    modules = (binaries.MODULE / "go.mod").read_text()
    assert f"k8s.io/kubernetes {binaries.VERSION}" in modules
    assert all(package in modules for package in PACKAGES.values())


def test_an_interrupted_build_leaves_no_compiler_behind(machine: Machine) -> None:
    compiler = machine.builds.with_name("compiler")
    machine.go(build=f'sleep 600 & echo $! > "{compiler}.new"; mv "{compiler}.new" "{compiler}"; wait')
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom e2e.controlplane.binaries import find_or_build\n"
        "find_or_build(os.environ, Path(sys.argv[1]))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(machine.cache)],
        env=machine.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as builder:
        while not compiler.exists():
            assert builder.poll() is None
        builder.send_signal(signal.SIGINT)
    pid = int(compiler.read_text())
    deadline = time.monotonic() + 10
    while alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert [path.name for path in machine.cache.iterdir()] == [".lock"]
