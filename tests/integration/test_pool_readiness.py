"""When a VM counts as warm, for how long, and what becomes of one that stops being so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from e2e.rest import Rest
from tests.support.auditing import AuditorThread
from tests.support.site import (
    CLAIMS,
    POOLS,
    VMIS,
    VMS,
    Json,
    Site,
    condition,
    holds,
    named_vm,
    until,
    vm_template,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def until_instances(site: Site, **wanted: int) -> Json:
    """Wait until the pool counts so many VMs in these states."""
    return site.until(
        POOLS, "pool", str(wanted), lambda pool: wanted.items() <= pool["status"]["instances"].items()
    )


@pytest.mark.parametrize("order", ["Oldest", "Newest"])
def test_claims_get_the_oldest_or_the_newest_warm_vm(site: Site, order: str) -> None:
    site.pool(warm=1, claims={"order": order})
    site.until_warm(1)
    [first] = site.vm_names()
    made_at = datetime.fromisoformat(site.get(VMS, first)["metadata"]["creationTimestamp"]).timestamp()
    until("the next second", time.time, lambda now: now > made_at + 1)  # creation times are whole seconds
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 2}}})
    site.until_warm(2)
    [second] = site.vm_names() - {first}
    site.claim()
    assert named_vm(site.bound())["name"] == (first if order == "Oldest" else second)


def test_with_agent_connected_a_vm_is_warm_when_its_agent_answers(site: Site) -> None:
    site.pool(warm=1, template=vm_template(agent="4s"), readiness={"when": "AgentConnected"})

    def ready_without_agent(vmi: Json) -> bool:
        return condition(vmi, "Ready").get("status") == "True" and not condition(vmi, "AgentConnected")

    [vm] = until("a VM", site.vm_names, lambda names: len(names) == 1)
    site.until(VMIS, vm, "Ready without its agent", ready_without_agent)
    assert (site.find(POOLS, "pool").get("status") or {}).get("warm", {}).get("ready", 0) == 0
    site.until_warm(1)
    assert condition(site.get(VMIS, vm), "AgentConnected")["status"] == "True"


def test_with_running_a_vm_without_a_ready_guest_is_warm(site: Site) -> None:
    site.pool(warm=1, readiness={"when": "Running"})
    site.until_warm(1)
    [vm] = site.vm_names()
    site.annotate_vm(vm, pause="true")
    site.until_condition(VMIS, vm, "Ready", "False")
    holds("warm", lambda: site.get(POOLS, "pool")["status"]["warm"]["ready"], lambda ready: ready == 1)


def test_further_conditions_have_to_hold_as_well(site: Site) -> None:
    site.pool(warm=1, readiness={"conditions": ["AgentConnected"]})
    [vm] = until("a VM", site.vm_names, lambda names: len(names) == 1)
    site.until_condition(VMIS, vm, "Ready", "True")
    until_instances(site, provisioning=1, warm=0)
    site.annotate_vm(vm, agent="1ms")
    site.until_warm(1)


def test_a_vm_has_to_be_ready_for_min_ready_seconds(site: Site) -> None:
    site.pool(warm=1, readiness={"minReadySeconds": 2})
    [vm] = until("a VM", site.vm_names, lambda names: len(names) == 1)
    vmi = site.until(VMIS, vm, "Ready", lambda vmi: condition(vmi, "Ready").get("status") == "True")
    ready_at = datetime.fromisoformat(condition(vmi, "Ready")["lastTransitionTime"]).timestamp()
    site.claim()
    site.bound()
    assert time.time() >= ready_at + 2


def test_a_vm_that_stops_being_ready_is_not_handed_over_until_it_is_again(site: Site) -> None:
    site.pool(warm=1, limits={"maxReplicas": 1})
    site.until_warm(1)
    [vm] = site.vm_names()
    site.annotate_vm(vm, pause="true")
    until_instances(site, unready=1, warm=0)
    site.claim()
    site.until_condition(CLAIMS, "claim", "Bound", "False", "Queued")
    site.annotate_vm(vm, pause=None)
    assert named_vm(site.bound())["name"] == vm


def test_an_unready_vm_does_not_count_and_is_replaced_after_its_grace(site: Site) -> None:
    site.pool(warm=1, readiness={"unreadyGrace": "2s"})
    site.until_warm(1)
    [vm] = site.vm_names()
    site.annotate_vm(vm, pause="true")
    until("another VM beside it", site.vm_names, lambda names: len(names) == 2)
    site.until_gone(VMS, vm)
    site.until_warm(1)
    assert vm not in site.vm_names()


def test_a_vm_that_is_not_warm_by_its_deadline_is_replaced(site: Site) -> None:
    slow = vm_template(boot="10m")
    site.pool(warm=1, template=slow, readiness={"deadline": "4s"})
    [vm] = until("a VM", site.vm_names, lambda names: len(names) == 1)
    said = site.until_condition(POOLS, "pool", "Degraded", "True", "VMsFailed")
    assert "1 VMs failed in a row: it was not warm within its deadline of 4 s" in said["message"]
    site.until_gone(VMS, vm)
    until("another one", site.vm_names, lambda names: names and vm not in names)


# ---- nodes


@pytest.fixture
def node(site: Site, admin: Rest) -> Iterator[str]:
    """A Node of the test's own, ready, which the one warm VM of a pool of one is made to run on."""
    name = f"node-of-{site.namespace}"[:63].rstrip("-")
    made = admin.post(
        "/api/v1/nodes", {"metadata": {"name": name}, "status": {"conditions": [ready("True")]}}
    )
    assert made.status == 201, made.message
    site.pool(warm=1, limits={"maxReplicas": 1})
    site.until_warm(1)
    [vm] = site.vm_names()
    site.patch(VMIS, vm, {"status": {"nodeName": name}})
    yield name
    admin.delete(f"/api/v1/nodes/{name}")


def ready(status: str) -> Json:
    return {"type": "Ready", "status": status, "reason": "TheTest", "message": "the test says so"}


def not_handed_out(site: Site) -> str:
    """The warm VM counts as unready and a claim doesn't get it; its name."""
    until_instances(site, unready=1, warm=0)
    [vm] = site.vm_names()
    site.claim()
    site.until_condition(CLAIMS, "claim", "Bound", "False", "Queued")
    return vm


def test_vms_of_a_cordoned_node_are_not_handed_out_until_it_is_uncordoned(site: Site, node: str) -> None:
    site.kubectl("cordon", node)
    vm = not_handed_out(site)
    site.kubectl("uncordon", node)
    assert named_vm(site.bound())["name"] == vm


def test_vms_of_a_node_that_is_not_ready_are_not_handed_out(site: Site, admin: Rest, node: str) -> None:
    for status in ("Unknown", "True"):
        patch = {"status": {"conditions": [ready(status)]}}
        assert admin.patch(f"/api/v1/nodes/{node}/status", patch).ok
        if status == "Unknown":
            vm = not_handed_out(site)
    assert named_vm(site.bound())["name"] == vm


def test_vms_of_a_node_that_is_being_emptied_are_not_handed_out(site: Site, node: str) -> None:
    site.kubectl("taint", "node", node, "maintenance=now:NoExecute")
    vm = not_handed_out(site)
    site.kubectl("taint", "node", node, "maintenance-")
    assert named_vm(site.bound())["name"] == vm


def test_a_vm_of_a_lost_node_is_replaced(site: Site, auditor: AuditorThread) -> None:
    site.pool(warm=1, readiness={"unreadyGrace": "1s"})
    site.until_warm(1)
    [vm] = site.vm_names()
    site.annotate_vm(vm, fail="lost-node")
    site.until_gone(VMS, vm)
    site.until_warm(1)
    assert auditor.seen["VMs"] == 2
