"""A node dies under warm VMs and under one that is in use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.rest import Rest
from tests.integration.own_cluster.conftest import Start
from tests.support.site import CLAIMS, POOLS, VMIS, VMS, Json, Site, condition, named_vm, until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("auditor")]


@pytest.fixture
def node(site: Site, admin: Rest) -> Iterator[str]:
    """A Node of the test's own, ready."""
    name = f"node-of-{site.namespace}"[:63].rstrip("-")
    made = admin.post(
        "/api/v1/nodes", {"metadata": {"name": name}, "status": {"conditions": [ready("True")]}}
    )
    assert made.status == 201, made.message
    yield name
    admin.delete(f"/api/v1/nodes/{name}")


def ready(status: str) -> Json:
    return {"type": "Ready", "status": status, "reason": "TheTest", "message": "the test says so"}


def ready_ones(site: Site) -> set[str]:
    """Unclaimed VMs whose guests are ready. The pool's status may be a second behind."""
    up = {vmi["metadata"]["name"] for vmi in site.vmis() if condition(vmi, "Ready").get("status") == "True"}
    return up & site.vm_names(state="Pooled")


def not_ready(site: Site, node: str) -> None:
    answer = site.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready("Unknown")]}})
    assert answer.ok, answer.message


def cordoned(site: Site, node: str) -> None:
    site.kubectl("cordon", node)


def emptied(site: Site, node: str) -> None:
    site.kubectl("taint", "node", node, "maintenance=now:NoExecute")


def deleted(site: Site, node: str) -> None:
    assert site.api.delete(f"/api/v1/nodes/{node}").ok


@pytest.mark.parametrize("end", [not_ready, cordoned, emptied, deleted])
def test_warm_vms_of_a_node_that_dies_are_replaced_without_a_brake_and_a_claimed_one_is_left_alone(
    site: Site, start: Start, node: str, end: object
) -> None:
    assert callable(end)
    start()
    site.pool(warm=4, readiness={"unreadyGrace": "8s"})
    site.until_warm(4)
    site.claim("mine")
    mine = named_vm(site.bound("mine"))
    doomed = set(sorted(until("four ready", lambda: ready_ones(site), lambda names: len(names) == 4))[:3])
    for name in (*doomed, mine["name"]):
        site.patch(VMIS, name, {"status": {"nodeName": node}})
    end(site, node)
    site.until(POOLS, "pool", "three unready", lambda pool: pool["status"]["instances"]["unready"] == 3)
    for name in ("one", "two"):
        site.claim(name)
        assert named_vm(site.bound(name))["name"] not in doomed
    until("replaced", site.vm_names, lambda names: not names & doomed)
    until("four ready", lambda: ready_ones(site), lambda names: len(names) == 4)
    pool = site.until_warm(4)
    assert pool["status"]["brake"]["failures"] == 0
    assert condition(pool, "Degraded")["status"] == "False"
    assert site.get(VMS, mine["name"])["metadata"]["uid"] == mine["uid"]
    assert site.get(CLAIMS, "mine")["status"]["phase"] == "Bound"


def test_a_claim_says_that_the_node_of_its_vm_does_not_answer_and_keeps_it(site: Site, start: Start) -> None:
    start()
    site.pool(warm=1)
    site.claim("mine")
    mine = named_vm(site.bound("mine"))
    site.annotate_vm(mine["name"], fail="lost-node")
    told = site.until_condition(CLAIMS, "mine", "Ready", "False", "NotReady")
    assert "NodeUnresponsive" in told["message"]
    assert site.get(VMS, mine["name"])["metadata"]["uid"] == mine["uid"]
    site.annotate_vm(mine["name"], fail=None)
