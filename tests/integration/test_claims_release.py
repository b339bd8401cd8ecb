"""How a claim gives its VM back: in the background, in the foreground, or leaving it to its user."""

from __future__ import annotations

import pytest

from tests.support.site import CLAIMS, VMS, Site, holds, named_vm, until, vm_template

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.usefixtures("controller", "garbage_collector", "auditor"),
]


def claimed(site: Site, shutdown: str = "100ms") -> str:
    """A bound claim; the name of its VM."""
    site.pool(warm=1, template=vm_template(shutdown=shutdown))
    site.until_warm(1)
    site.claim()
    name: str = named_vm(site.bound())["name"]
    return name


def test_a_deleted_claims_vm_is_destroyed_and_never_offered_again(site: Site) -> None:
    vm = claimed(site)
    uid = site.get(VMS, vm)["metadata"]["uid"]
    site.delete(CLAIMS, "claim")
    site.until_gone(CLAIMS, "claim")
    site.claim("next")
    assert named_vm(site.bound("next"))["uid"] != uid
    site.until_gone(VMS, vm)


def test_with_foreground_the_claim_is_gone_when_its_vm_is(site: Site) -> None:
    vm = claimed(site, shutdown="1s")
    site.kubectl("delete", "vmc/claim", "-n", site.namespace, "--cascade=foreground", "--wait=false")

    def look() -> tuple[bool, bool]:
        """The claim first: were it gone while the VM is there, the VM would be seen."""
        claim_is_there = bool(site.find(CLAIMS, "claim"))
        return claim_is_there, bool(site.find(VMS, vm))

    seen = until("either gone", look, lambda there: there != (True, True), seconds=60)
    assert seen == (True, False) or not any(look())
    site.until_gone(CLAIMS, "claim")


def test_with_orphan_the_vm_stays_and_is_the_users_own(site: Site) -> None:
    vm = claimed(site)
    site.kubectl("delete", "vmc/claim", "-n", site.namespace, "--cascade=orphan", "--wait=false")
    site.until_gone(CLAIMS, "claim", seconds=60)
    site.until(VMS, vm, "without an owner", lambda found: not found["metadata"].get("ownerReferences"))
    holds("there", lambda: site.get(VMS, vm), lambda found: "deletionTimestamp" not in found["metadata"], 2)
    site.claim("next")
    assert named_vm(site.bound("next"))["name"] != vm
    site.delete("virtualmachinepools", "pool")
    site.until_gone("virtualmachinepools", "pool")
    assert site.find(VMS, vm)


def test_a_claim_that_is_held_by_a_finalizer_gives_its_vm_back_all_the_same(site: Site) -> None:
    vm = claimed(site)
    site.patch(CLAIMS, "claim", {"metadata": {"finalizers": ["example.com/slow"]}})
    site.delete(CLAIMS, "claim")
    site.until_gone(VMS, vm)
    assert site.find(CLAIMS, "claim")
    site.patch(CLAIMS, "claim", {"metadata": {"finalizers": None}})
    site.until_gone(CLAIMS, "claim")


def test_a_claim_deleted_together_with_its_pool_leaves_nothing(site: Site) -> None:
    claimed(site)
    site.kubectl("delete", "wp,vmc", "--all", "-n", site.namespace)
    until("nothing left", site.vms, lambda vms: not vms)
