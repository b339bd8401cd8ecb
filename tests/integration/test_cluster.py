"""`make cluster` and `make cluster-down`: once, twice, after a loss, and interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import main, running_cluster, start_cluster, stop_cluster
from e2e.controlplane.plane import PARTS, ControlPlane
from e2e.controlplane.processes import StartError
from e2e.install import ROOT
from e2e.rest import Rest
from tests.support.processes import gone

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        "BULLPEN_TEST_KUBECONFIG" in os.environ, reason="about the control plane that is started here"
    ),
]

SAYS_READY = [sys.executable, "-S", "-c", "import time\nprint('ready', flush=True)\ntime.sleep(600)"]
SAYS_SORRY = [sys.executable, "-S", "-c", "print('no kubeconfig, sorry')"]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "cluster"
    yield folder
    stop_cluster(folder)


def run(state: Path, *arguments: str) -> int:
    return main(["--state", str(state), *arguments])


def test_up_prints_the_line_to_copy_and_a_second_up_says_that_it_runs(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(state, "up", "--simulator", "0") == 0
    first = capsys.readouterr().out
    line = re.search(r"^  export KUBECONFIG=(\S+)$", first, re.MULTILINE)
    assert line is not None
    with Rest(Path(line[1])) as api:
        assert api.get("/readyz").status == 200
    assert "python -m controller" in first
    before = running_cluster(state)
    assert before is not None

    assert run(state, "up", "--simulator", "0") == 0
    assert "runs already (etcd, apiserver, controller-manager, scheduler)" in capsys.readouterr().out
    after = running_cluster(state)
    assert after is not None
    assert after.pids == before.pids

    assert run(state, "status") == 0
    assert len(re.findall(r"^\S+ +running, pid \d+", capsys.readouterr().out, re.MULTILINE)) == len(PARTS)
    assert run(state, "down") == 0
    assert gone(*before.pids.values())
    assert not state.exists()
    assert run(state, "down") == 0
    assert capsys.readouterr().out == "The cluster is stopped.\nNo cluster is running.\n"
    assert run(state, "status") == 1


def test_a_cluster_that_lost_a_process_is_replaced_and_its_remains_are_ended(state: Path) -> None:
    first = start_cluster(state, simulator=False)
    os.kill(first.pids["apiserver"], signal.SIGKILL)
    assert first.processes.started[1].wait(10)
    assert run(state, "status") == 1
    said: list[str] = []
    second = start_cluster(state, simulator=False, log=said.append)
    assert said == ["An earlier cluster has lost apiserver; starting anew"]
    assert gone(*first.pids.values())
    assert not second.processes.dead()


def test_two_commands_at_once_start_one_cluster(state: Path) -> None:
    found: list[ControlPlane] = []
    commands = [
        threading.Thread(target=lambda: found.append(start_cluster(state, simulator=False))) for _ in range(2)
    ]
    for each in commands:
        each.start()
    for each in commands:
        each.join()
    assert found[0].pids == found[1].pids


def test_an_interrupted_up_leaves_nothing_that_down_does_not_end(state: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "e2e.cluster", "--state", str(state), "up", "--simulator", "0"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    ) as up:
        while "apiserver" not in (pids := _pids(state)):
            assert up.poll() is None
        up.send_signal(signal.SIGKILL)
    assert run(state, "down") == 0
    assert gone(*pids.values())


def _pids(state: Path) -> dict[str, int]:
    found = ControlPlane.load(state)
    return found.pids if found else {}


def test_a_definition_that_is_refused_is_shown_and_nothing_stays(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: things.example.com}\n"
        "spec: {group: example.com, scope: Namespaced, names: {plural: others, kind: Thing}, versions: []}\n"
    )
    assert run(state, "up", "--simulator", "0", "--vm-crd", str(bad)) == 1
    assert "the definition things.example.com was refused (422)" in capsys.readouterr().err
    assert _pids(state) == {}


def test_a_process_beside_it_stops_with_it(state: Path) -> None:
    plane = start_cluster(state, simulator=False)
    beside = plane.run_beside("beside", SAYS_READY, ready="ready")
    assert _pids(state)["beside"] == beside.pid
    assert stop_cluster(state)
    assert gone(beside.pid)


def test_a_process_beside_it_that_ends_before_it_is_ready_shows_its_last_words(tmp_path: Path) -> None:
    plane = ControlPlane.given(tmp_path / "kubeconfig", tmp_path)
    with plane, pytest.raises(StartError, match="beside ended:\n  beside: no kubeconfig, sorry"):
        plane.run_beside("beside", SAYS_SORRY, ready="ready")
    assert plane.pids == {}


def test_the_stand_in_boots_a_vm_in_the_cluster(state: Path) -> None:
    plane = start_cluster(state, simulator_arguments=["--boot", "10ms"])
    assert list(plane.pids) == [*PARTS, "simulator"]
    guest = {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}
    vm = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "alone"},
        "spec": {"runStrategy": "Always", "template": guest},
    }
    path = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
    with Rest(plane.kubeconfig) as api:
        assert api.post(path, vm).status == 201
        api.wait(
            f"{path}/alone",
            lambda answer: answer.body.get("status", {}).get("printableStatus") == "Running",
        )
    pids = list(plane.pids.values())
    assert stop_cluster(state)
    assert gone(*pids)
