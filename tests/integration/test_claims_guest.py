"""What a bound claim says about its guest: ready, with addresses, restarted, lost."""

from __future__ import annotations

import pytest

from tests.support.auditing import AuditorThread
from tests.support.site import CLAIMS, VMIS, VMS, Json, Site, condition, holds, named_vm, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def claimed(site: Site) -> Json:
    """A bound claim on a VM of a fast pool."""
    site.pool(warm=1)
    site.until_warm(1)
    site.claim()
    return site.bound()


def test_kubectl_wait_is_the_way_to_wait(site: Site) -> None:
    site.pool(warm=0, template=vm_template(boot="1s"))
    site.claim()
    said = site.kubectl(
        "wait", "-n", site.namespace, "vmc/claim", "--for=condition=Ready", "--timeout=30s", seconds=40
    )
    assert "condition met" in said
    claim = site.get(CLAIMS, "claim")
    assert (claim["status"]["phase"], condition(claim, "Bound")["reason"]) == ("Bound", "HandedOver")


def test_a_bound_claim_names_its_guest_its_node_and_its_address(site: Site) -> None:
    named = named_vm(claimed(site))
    vm, vmi = site.get(VMS, named["name"]), site.get(VMIS, named["name"])
    assert named == {
        "name": vm["metadata"]["name"],
        "uid": vm["metadata"]["uid"],
        "vmiUID": vmi["metadata"]["uid"],
        "node": vmi["status"]["nodeName"],
        "addresses": [{"type": "InternalIP", "address": vmi["status"]["interfaces"][0]["ipAddress"]}],
        "warm": True,
    }
    columns = site.kubectl("get", "-n", site.namespace, "vmc/claim").splitlines()[1].split()
    assert columns[1:5] == ["Bound", named["name"], named["addresses"][0]["address"], "pool"]


def test_ready_follows_the_guest_and_bound_stays(site: Site) -> None:
    vm = named_vm(claimed(site))["name"]
    site.annotate_vm(vm, pause="true")
    said = site.until_condition(CLAIMS, "claim", "Ready", "False", "NotReady")
    assert f"VM {vm}: its instance is not ready" in said["message"]
    site.annotate_vm(vm, pause=None)
    site.until_condition(CLAIMS, "claim", "Ready", "True", "Usable")
    claim = site.get(CLAIMS, "claim")
    assert named_vm(claim)["addresses"]
    assert condition(claim, "Bound")["status"] == "True"
    assert not condition(claim, "Disrupted")


def test_an_address_that_comes_late_is_told(site: Site) -> None:
    bound = claimed(site)
    vm = named_vm(bound)["name"]
    address = "10.9.8.7"
    site.patch(VMIS, vm, {"status": {"interfaces": [{"name": "default", "ipAddress": address}]}})
    site.until(
        CLAIMS,
        "claim",
        "at its new address",
        lambda claim: named_vm(claim)["addresses"] == [{"type": "InternalIP", "address": address}],
    )


def test_a_guest_that_crashed_is_told_as_disrupted_with_its_new_instance(site: Site) -> None:
    before = named_vm(claimed(site))
    site.annotate_vm(before["name"], crash_after="1ms")
    site.until_condition(CLAIMS, "claim", "Disrupted", "True", "GuestRestarted")
    claim = site.until(
        CLAIMS, "claim", "Ready again", lambda claim: condition(claim, "Ready")["status"] == "True"
    )
    after = named_vm(claim)
    assert (after["name"], after["uid"]) == (before["name"], before["uid"])
    assert after["vmiUID"] == site.get(VMIS, before["name"])["metadata"]["uid"] != before["vmiUID"]
    assert "the guest of VM" in condition(claim, "Disrupted")["message"]


def test_a_vm_that_a_person_deletes_under_a_claim_is_lost_and_never_replaced(
    site: Site, auditor: AuditorThread
) -> None:
    named = named_vm(claimed(site))
    site.until_warm(1)
    auditor.excuse(named["uid"], "a person deletes it")
    site.kubectl("delete", "vm", named["name"], "-n", site.namespace)
    lost = site.until_phase("claim", "Lost")
    finished = condition(lost, "Finished")
    assert (finished["status"], finished["reason"]) == ("True", "Lost")
    assert condition(lost, "Ready")["reason"] == "Lost"
    assert f"VM {named['name']} was gone when it was looked for at 20" in finished["message"]
    assert named_vm(lost) == named
    holds("lost", lambda: site.get(CLAIMS, "claim")["status"], lambda status: status == lost["status"], 2)


def test_a_lost_claim_can_be_deleted(site: Site, auditor: AuditorThread) -> None:
    named = named_vm(claimed(site))
    auditor.excuse(named["uid"], "a person deletes it")
    site.delete(VMS, named["name"])
    site.until_phase("claim", "Lost")
    site.delete(CLAIMS, "claim")
    site.until_gone(CLAIMS, "claim")
