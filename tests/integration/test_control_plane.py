"""The control plane itself: what tests build upon has to hold first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from e2e.controlplane import plane
from e2e.controlplane.plane import PARTS, ControlPlane
from e2e.controlplane.processes import StartError
from e2e.rest import Rest
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.processes import gone

pytestmark = pytest.mark.cluster

OWN = pytest.mark.skipif(
    "BULLPEN_TEST_KUBECONFIG" in os.environ, reason="about the control plane that is started here"
)


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.02)


def config_map(name: str, owner: dict[str, str] | None = None) -> dict[str, object]:
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", **owner}] if owner else []
    return {"metadata": {"name": name, "ownerReferences": owners}}


@pytest.fixture
def node(admin: Rest) -> Iterator[str]:
    """One without a kubelet; the test plays it."""
    name = "played"
    assert (
        admin.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {"played-by": name}}}).status == 201
    )
    yield name
    admin.delete(f"/api/v1/nodes/{name}")


def say_ready(admin: Rest, node: str, status: str) -> None:
    ready = {"type": "Ready", "status": status, "reason": "Played", "message": ""}
    room = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready], "allocatable": room}})


def test_the_api_server_says_its_version_over_verified_tls(control_plane: ControlPlane) -> None:
    with Rest(control_plane.kubeconfig) as api:
        answer = api.get("/version")
    assert answer.status == 200
    assert int(answer.body["minor"]) >= 30


def test_the_garbage_collector_deletes_what_an_owner_leaves(admin: Rest, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = admin.post(path, config_map("owner")).body["metadata"]
    admin.post(path, config_map("dependant", {"name": "owner", "uid": owner["uid"]}))
    admin.delete(f"{path}/owner")
    admin.wait(f"{path}/dependant", lambda answer: answer.status == 404)


def test_the_garbage_collector_deletes_what_names_an_owner_that_never_was(
    admin: Rest, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    admin.post(path, config_map("orphan", {"name": "nobody", "uid": "11111111-2222-3333-4444-555555555555"}))
    admin.wait(f"{path}/orphan", lambda answer: answer.status == 404)


def test_a_deleted_namespace_goes_away_with_what_is_in_it(admin: Rest) -> None:
    admin.post("/api/v1/namespaces", {"metadata": {"name": "short-lived"}})
    admin.post("/api/v1/namespaces/short-lived/configmaps", config_map("inside"))
    admin.delete("/api/v1/namespaces/short-lived")
    admin.wait("/api/v1/namespaces/short-lived", lambda answer: answer.status == 404)


def test_a_namespace_gets_its_service_account_and_the_authority(admin: Rest, namespace: str) -> None:
    admin.wait(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda answer: answer.ok)
    authority = admin.wait(
        f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt", lambda answer: answer.ok
    )
    assert "BEGIN CERTIFICATE" in authority.body["data"]["ca.crt"]


def test_the_token_of_a_service_account_is_known_and_may_nothing_by_itself(
    admin: Rest, namespace: str, kubectl: Kubectl
) -> None:
    admin.wait(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda answer: answer.ok)
    token = kubectl("create", "token", "default", "-n", namespace).strip()
    who = kubectl("--token", token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert who == f"system:serviceaccount:{namespace}:default"
    review = admin.post(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "spec": {
                "user": f"system:serviceaccount:{namespace}:default",
                "resourceAttributes": {"verb": "list", "resource": "secrets", "namespace": namespace},
            }
        },
    )
    assert review.body["status"]["allowed"] is False


def test_a_stranger_is_refused(kubectl: Kubectl) -> None:
    with pytest.raises(KubectlError, match="You must be logged in"):
        kubectl("--token", "a-guess", "get", "nodes")


@OWN
def test_a_node_that_becomes_ready_loses_its_taint_and_takes_a_pod(
    admin: Rest, namespace: str, node: str
) -> None:
    say_ready(admin, node, "False")
    tainted = admin.wait(f"/api/v1/nodes/{node}", lambda answer: bool(answer.body["spec"].get("taints")))
    assert {taint["key"] for taint in tainted.body["spec"]["taints"]} == {"node.kubernetes.io/not-ready"}
    say_ready(admin, node, "True")
    admin.wait(f"/api/v1/nodes/{node}", lambda answer: not answer.body["spec"].get("taints"))

    admin.wait(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda answer: answer.ok)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "none", "image": "none"}], "nodeSelector": {"played-by": node}}
    assert admin.post(pods, {"metadata": {"name": "guest"}, "spec": spec}).status == 201
    placed = admin.wait(f"{pods}/guest", lambda answer: bool(answer.body["spec"].get("nodeName")))
    assert placed.body["spec"]["nodeName"] == node
    admin.delete(f"{pods}/guest", {"gracePeriodSeconds": 0})


@OWN
def test_two_run_at_once_and_each_stops_without_a_trace(tmp_path: Path, control_plane: ControlPlane) -> None:
    with ControlPlane.start(tmp_path / "second") as second:
        assert set(second.pids) == set(PARTS)
        assert not set(second.pids.values()) & set(control_plane.pids.values())
        with Rest(second.kubeconfig) as there, Rest(control_plane.kubeconfig) as here:
            there.post("/api/v1/namespaces", {"metadata": {"name": "only-there"}})
            assert there.get("/api/v1/namespaces/only-there").status == 200
            assert here.get("/api/v1/namespaces/only-there").status == 404
        pids, ports = list(second.pids.values()), listening(second)
        assert ports
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    assert not ports & all_listening()
    with Rest(control_plane.kubeconfig) as here:
        assert here.get("/readyz").status == 200


@OWN
def test_a_port_that_somebody_was_faster_to_take_costs_one_more_attempt(
    tmp_path: Path, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session's own etcd answers on the first choice: the second API server must not be built upon it.
    etcd = psutil.Process(control_plane.pids["etcd"])
    taken = {port(one) for one in etcd.net_connections() if one.status == psutil.CONN_LISTEN}
    choices = [plane._free_ports(2) for _ in range(2)]
    choices[0][0] = next(one for one in taken if one in plane._PORTS)
    choices[1][1] = listening_api(control_plane)
    choices.append(plane._free_ports(2))
    offered = iter(choices)
    monkeypatch.setattr(plane, "_free_ports", lambda _: next(offered))
    with ControlPlane.start(tmp_path / "second") as second:
        assert {*choices[2]} <= listening(second)
        with Rest(second.kubeconfig) as there:
            assert there.get("/readyz").status == 200


@OWN
def test_a_start_that_fails_shows_the_last_lines_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "second"
    monkeypatch.setattr("e2e.controlplane.commands.api_server", lambda _: ["--no-such-flag"])
    with pytest.raises(StartError, match=r"apiserver ended:\n(.*\n)*.*unknown flag: --no-such-flag"):
        ControlPlane.start(folder)
    assert ControlPlane.load(folder) is None
    assert not [one for one in psutil.Process().children() if str(folder) in " ".join(one.cmdline())]


def test_what_never_comes_is_waited_for_in_bounds_and_shown(admin: Rest) -> None:
    with pytest.raises(TimeoutError, match=r"/api/v1/namespaces/never after 0 s: 404 .*not found"):
        admin.wait("/api/v1/namespaces/never", lambda answer: answer.ok, seconds=0.1)


@OWN
def test_everything_listens_on_this_machine_alone(control_plane: ControlPlane) -> None:
    addresses = {
        connection.laddr.ip
        for pid in control_plane.pids.values()
        for connection in psutil.Process(pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


@OWN
def test_no_other_user_can_read_the_credentials(control_plane: ControlPlane) -> None:
    assert control_plane.kubeconfig.stat().st_mode & 0o077 == 0
    assert control_plane.kubeconfig.parent.stat().st_mode & 0o077 == 0


@OWN
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's request for it exists on Linux alone")
def test_a_killed_parent_leaves_nothing_running(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom e2e.controlplane.plane import ControlPlane\n"
        "plane = ControlPlane.start(Path(sys.argv[1]))\n"
        "print(*plane.pids.values(), flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "plane")], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == len(PARTS)
        assert all(psutil.pid_exists(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
    until(lambda: gone(*pids))


def listening(one: ControlPlane) -> set[int]:
    return {
        port(connection)
        for pid in one.pids.values()
        for connection in psutil.Process(pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def listening_api(control_plane: ControlPlane) -> int:
    with Rest(control_plane.kubeconfig) as api:
        return int(str(api.server).rpartition(":")[2])


def all_listening() -> set[int]:
    return {port(one) for one in psutil.net_connections() if one.status == psutil.CONN_LISTEN}


def port(connection: Any) -> int:
    return int(connection.laddr.port)
