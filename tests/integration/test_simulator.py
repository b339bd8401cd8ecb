"""The stand-in on a real API server, as a watch shows it: VMs written the way KubeVirt writes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from e2e.rest import Rest
from simulator.api import ApiError
from tests.support.vm_watching import VMIS, VMS, Seen, VMWatch, condition, watching

pytestmark = pytest.mark.cluster


@pytest.fixture
async def vms(
    kubeconfig: Path,
    namespace: str,
    admin: Rest,
    simulator: None,  # noqa: ARG001 - it runs them
) -> AsyncIterator[VMWatch]:
    if admin.get("/apis/kubevirt.io/v1/kubevirts").ok:
        pytest.skip("this cluster has a real KubeVirt, not the stand-in")
    async with watching(kubeconfig, namespace) as watch:
        yield watch


def shown(events: list[Seen]) -> list[str]:
    """What was shown, one word for each stretch of it."""
    words = [each.shown for each in events if each.shown]
    return [word for before, word in pairwise(["", *words]) if word != before]


def gone(events: list[Seen], name: str) -> bool:
    """Whether the VM of this name was seen to go."""
    return any(e.kind == VMS and e.type == "DELETED" and e.object["metadata"]["name"] == name for e in events)


async def test_a_vm_is_written_in_the_observed_order(vms: VMWatch) -> None:
    await vms.create(boot="500ms")
    await vms.until_ready(VMS)
    # On a busy machine the first status is overtaken by the second, as KubeVirt's is in a burst.
    assert [word for word in shown(vms.of(VMS)) if word != "Stopped"] == ["Starting", "Running"]
    assert shown(vms.of(VMIS)) == ["Pending", "Scheduling", "Scheduled", "Running"]
    assert len(vms.of(VMIS, "MODIFIED")) == 7
    assert 5 <= len(vms.of(VMS, "MODIFIED")) <= 9


async def test_ready_is_told_by_the_vmi_first_and_by_the_vm_later(vms: VMWatch) -> None:
    await vms.create(boot="300ms")
    await vms.until_ready(VMS)
    first = {kind: min(each.version for each in vms.of(kind) if each.ready) for kind in (VMS, VMIS)}
    assert first[VMIS] < first[VMS]
    running = [each for each in vms.of(VMIS) if each.shown == "Running"]
    assert [each.ready for each in running] == [False, True]


async def test_a_vm_never_equals_its_template(vms: VMWatch) -> None:
    made = await vms.create(boot="100ms")
    ready = await vms.until_ready(VMS)
    before, after = (each["spec"]["template"]["spec"] for each in (made, ready))
    assert "architecture" not in before
    assert after["architecture"] == "amd64"
    assert after["domain"]["resources"] == {}
    assert after["domain"]["firmware"]["uuid"]
    assert after["domain"]["memory"] == before["domain"]["memory"]


async def test_the_vmi_has_what_the_template_says_and_an_address_and_a_node(vms: VMWatch) -> None:
    vm = await vms.create(boot="100ms")
    vmi = await vms.until_ready(VMIS)
    assert vmi["metadata"]["labels"] == {"of": "template"}
    assert vmi["metadata"]["ownerReferences"][0]["uid"] == vm["metadata"]["uid"]
    assert vmi["status"]["interfaces"][0]["ipAddress"].startswith("10.")
    assert vmi["status"]["nodeName"].startswith("node-")


async def test_a_label_patch_on_a_running_vm_is_one_change_and_is_never_undone(vms: VMWatch) -> None:
    await vms.create(boot="100ms")
    await vms.until_ready(VMS)
    patched = await vms.patch({"metadata": {"labels": {"state": "Claimed"}}})
    version = int(patched["metadata"]["resourceVersion"])
    await vms.create("other", boot="300ms")
    await vms.until_ready(VMS, count=2)
    later = [e for e in vms.of(VMS) if e.object["metadata"]["name"] == "vm" and e.version >= version]
    assert [each.version for each in later] == [version]
    found = await vms.get(VMS)
    assert found is not None
    assert found["metadata"]["labels"] == {"of": "vm", "state": "Claimed"}


async def test_labels_and_owners_patched_during_a_boot_survive_it(vms: VMWatch) -> None:
    await vms.create(boot="600ms")
    for number in range(8):
        await vms.patch({"metadata": {"labels": {"n": str(number)}, "annotations": {"n": str(number)}}})
    ready = await vms.until_ready(VMS)
    assert ready["metadata"]["labels"] == {"of": "vm", "n": "7"}
    assert ready["metadata"]["annotations"]["n"] == "7"
    assert len(vms.of(VMIS, "ADDED")) == 1


async def test_a_deleted_vm_takes_its_vmi_first_and_both_change_as_observed(vms: VMWatch) -> None:
    await vms.create(boot="100ms")
    await vms.until_ready(VMS)
    before = len(vms.events)
    await vms.api.delete(vms.path(VMS, "vm"))
    await vms.until_gone(VMS)
    ending = vms.events[before:]
    assert [e.type for e in ending if e.kind == VMS] == ["MODIFIED"] * 3 + ["DELETED"]
    assert [e.type for e in ending if e.kind == VMIS] == ["MODIFIED"] * 4 + ["DELETED"]
    assert shown([e for e in ending if e.kind == VMS])[-1] == "Terminating"
    gone = {
        kind: next(e.version for e in ending if e.kind == kind and e.type == "DELETED")
        for kind in (VMS, VMIS)
    }
    assert gone[VMIS] < gone[VMS]


async def test_a_vm_deleted_before_its_finalizer_is_gone_at_once_without_a_vmi(vms: VMWatch) -> None:
    for number in range(20):  # until one is deleted fast enough
        await vms.create(name := f"vm-{number}", boot="5s")
        await vms.api.delete(vms.path(VMS, name))
        await vms.until("gone", partial(gone, name=name))
        lives = [each.object["metadata"] for each in vms.of(VMS) if each.object["metadata"]["name"] == name]
        if not any(meta.get("finalizers") for meta in lives):
            break
    else:
        raise AssertionError("each of twenty had its finalizer")
    await vms.create("other", boot="200ms")
    await vms.until_ready(VMIS)
    assert name not in {each.object["metadata"]["name"] for each in vms.of(VMIS)}


async def test_a_vm_deleted_while_it_boots_leaves_nothing(vms: VMWatch) -> None:
    await vms.create(boot="60s")
    await vms.until("a VMI", lambda events: any(each.kind == VMIS for each in events))
    await vms.api.delete(vms.path(VMS, "vm"))
    await vms.until_gone(VMIS)
    await vms.until_gone(VMS)


async def test_a_name_in_use_by_a_terminating_vm_is_refused(vms: VMWatch) -> None:
    await vms.create(boot="100ms", shutdown="5s")
    await vms.until_ready(VMS)
    await vms.api.delete(vms.path(VMS, "vm"))
    with pytest.raises(ApiError) as refusal:
        await vms.create()
    assert (refusal.value.status, refusal.value.reason) == (409, "AlreadyExists")


async def test_a_crashed_guest_is_followed_by_another_with_a_new_uid_and_address(vms: VMWatch) -> None:
    await vms.create(boot="200ms", crash_after="300ms")
    first = await vms.until_ready(VMIS)
    second = await vms.until_ready(VMIS, count=2)
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert first["status"]["interfaces"] != second["status"]["interfaces"]
    stale = [each for each in vms.of(VMS) if each.shown == "Stopped" and each.ready]
    assert stale, "the VM said Stopped while it was still Ready"
    assert "Failed" in shown(vms.of(VMIS))


async def test_a_guest_crashes_once_for_each_command(vms: VMWatch) -> None:
    await vms.create(boot="100ms", crash_after="200ms")
    await vms.until_ready(VMIS, count=2)
    await vms.patch({"metadata": {"annotations": {"simulator.bullpen.dev/crash-after": "100ms"}}})
    await vms.until_ready(VMIS, count=3)
    await vms.create("other", boot="1s")
    await vms.until_ready(VMIS, count=4)
    assert (
        len({e.object["metadata"]["uid"] for e in vms.of(VMIS) if e.object["metadata"]["name"] == "vm"}) == 3
    )


async def test_a_deleted_vmi_is_followed_by_another(vms: VMWatch) -> None:
    await vms.create(boot="100ms")
    vmi = await vms.until_ready(VMIS)
    await vms.api.delete(vms.path(VMIS, "vm"), uid=vmi["metadata"]["uid"])
    again = await vms.until_ready(VMIS, count=2)
    assert again["metadata"]["uid"] != vmi["metadata"]["uid"]


async def test_stop_and_start_follow_the_run_strategy(vms: VMWatch) -> None:
    await vms.create(boot="100ms")
    await vms.until_ready(VMS)
    await vms.patch({"spec": {"runStrategy": "Halted"}})
    await vms.until_gone(VMIS)
    stopped = await vms.until_shown("Stopped")
    assert condition(stopped, "Ready").get("status") != "True"
    await vms.patch({"spec": {"runStrategy": "Always"}})
    await vms.until_ready(VMIS, count=2)


async def test_a_restart_that_was_asked_for_gives_a_new_vmi(vms: VMWatch) -> None:
    await vms.create(boot="100ms")
    vmi = await vms.until_ready(VMIS)
    await vms.until_ready(VMS)
    requests = [{"action": "Stop", "uid": vmi["metadata"]["uid"]}, {"action": "Start"}]
    await vms.api.merge_patch(f"{vms.path(VMS, 'vm')}/status", {"status": {"stateChangeRequests": requests}})
    again = await vms.until_ready(VMIS, count=2)
    since = int(again["metadata"]["resourceVersion"])
    await vms.until(
        "Ready again", lambda events: any(e.kind == VMS and e.ready and e.version > since for e in events)
    )
    assert "stateChangeRequests" not in vms.of(VMS)[-1].object["status"]


@pytest.mark.usefixtures("garbage_collector")  # one that doesn't know VMIs yet would orphan none of them
async def test_after_an_orphan_delete_a_namesake_adopts_the_running_vmi(vms: VMWatch) -> None:
    await vms.create(boot="100ms")
    vmi = await vms.until_ready(VMIS)
    await vms.until_ready(VMS)
    orphan = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
    await vms.api.request("DELETE", vms.path(VMS, "vm"), orphan)
    await vms.until_gone(VMS)
    namesake = await vms.create(boot="1h")
    await vms.until_ready(VMS, count=2)
    found = await vms.get(VMIS)
    assert found is not None
    assert found["metadata"]["uid"] == vmi["metadata"]["uid"]
    assert [owner["uid"] for owner in found["metadata"]["ownerReferences"]] == [namesake["metadata"]["uid"]]
    assert not vms.of(VMIS, "DELETED")


async def test_when_the_agent_connects_the_address_is_away_for_a_moment(vms: VMWatch) -> None:
    await vms.create(boot="100ms", agent="200ms")

    def connected(events: list[Seen]) -> bool:
        return any(e.kind == VMS and condition(e.object, "AgentConnected") for e in events)

    await vms.until("a VM with an agent", connected)
    await vms.level()
    addresses = [
        each.object["status"]["interfaces"][0].get("ipAddress") for each in vms.of(VMIS) if each.ready
    ]
    assert addresses[1] is None
    assert addresses[0] == addresses[2] is not None


async def test_a_paused_vm_is_ready_for_a_moment_more(vms: VMWatch) -> None:
    await vms.create(boot="100ms")
    await vms.until_ready(VMS)
    await vms.patch({"metadata": {"annotations": {"simulator.bullpen.dev/pause": "true"}}})
    await vms.until("paused", lambda events: any(e.shown == "Paused" and not e.ready for e in events))
    await vms.level()
    paused = [each.ready for each in vms.of(VMIS) if condition(each.object, "Paused")]
    assert paused == [True, False]
    # On a busy machine the VM says both at once.
    assert [each.ready for each in vms.of(VMS) if each.shown == "Paused"] in ([True, False], [False])
    await vms.patch({"metadata": {"annotations": {"simulator.bullpen.dev/pause": None}}})
    await vms.until("unpaused", lambda _: vms.of(VMS)[-1].ready)


async def test_a_burst_of_vms_is_booted_and_each_has_its_own_address(vms: VMWatch) -> None:
    await asyncio.gather(*(vms.create(f"vm-{number}", boot="300ms..1s") for number in range(25)))
    await vms.until_ready(VMIS, count=25)
    addresses = {e.object["status"]["interfaces"][0]["ipAddress"] for e in vms.of(VMIS) if e.ready}
    assert len(addresses) == 25
