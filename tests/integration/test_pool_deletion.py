"""A deleted pool takes its warm VMs with it and leaves claimed ones to their claims."""

from __future__ import annotations

import pytest

from crds.names import LABEL_POOL_UID
from tests.support.site import (
    CLAIMS,
    POOLS,
    VMS,
    Json,
    Site,
    condition,
    holds,
    named_vm,
    owner,
    until,
    vm_template,
)

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.usefixtures("controller", "garbage_collector", "auditor"),
]


def with_one_claimed(site: Site, template: Json | None = None) -> tuple[Json, str]:
    """A pool of two warm VMs and a bound claim; the pool and the name of the claimed VM."""
    pool = site.pool(warm=2, template=template)
    site.until_warm(2)
    site.claim()
    taken = named_vm(site.bound())["name"]
    site.until(POOLS, "pool", "refilled", lambda pool: pool["status"]["total"] == 3)
    return pool, taken


def test_a_deleted_pool_drains_its_warm_vms_and_leaves_the_claimed_one(site: Site) -> None:
    _, taken = with_one_claimed(site)
    site.delete(POOLS, "pool")
    site.until_gone(POOLS, "pool")
    assert site.vm_names() == {taken}
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Bound"
    site.delete(CLAIMS, "claim")
    site.until_gone(VMS, taken)


def test_a_pool_under_deletion_says_what_remains_and_hands_nothing_over(site: Site) -> None:
    _, taken = with_one_claimed(site, template=vm_template(shutdown="4s"))
    site.delete(POOLS, "pool")
    said = site.until_condition(POOLS, "pool", "Ready", "False", "Deleting")["message"]
    assert "1 claimed VMs stay with their claims until those are deleted" in said
    site.claim("late")
    why = site.until_condition(CLAIMS, "late", "Bound", "False", "PoolDeleting")["message"]
    assert "pool pool is being deleted and hands nothing over any more" in why
    site.until_gone(POOLS, "pool")
    assert site.vm_names() == {taken}


def test_a_claim_that_waits_outlives_its_pool(site: Site) -> None:
    site.pool(warm=0, suspend=True)
    site.claim()
    site.until_condition(CLAIMS, "claim", "Bound", "False", "Queued")
    site.delete(POOLS, "pool")
    site.until_gone(POOLS, "pool")
    site.until_condition(CLAIMS, "claim", "Bound", "False", "PoolNotFound")
    site.pool(warm=1)
    site.bound()


def test_foreground_deletion_removes_the_pool_after_its_vms(site: Site) -> None:
    _, taken = with_one_claimed(site)
    site.kubectl("delete", "wp/pool", "-n", site.namespace, "--cascade=foreground", "--wait=false")
    site.until_gone(POOLS, "pool", seconds=60)
    assert site.vm_names() == {taken}
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Bound"


def test_orphan_deletion_leaves_the_warm_vms_to_the_person(site: Site) -> None:
    _, taken = with_one_claimed(site)
    before = site.vm_names()
    site.kubectl("delete", "wp/pool", "-n", site.namespace, "--cascade=orphan", "--wait=false")
    site.until_gone(POOLS, "pool", seconds=60)
    holds("all there", site.vm_names, lambda names: names == before)
    for vm in site.vms():
        if vm["metadata"]["name"] == taken:
            assert owner(vm)["kind"] == "VirtualMachineClaim"
        else:
            assert not vm["metadata"].get("ownerReferences")
    site.pool(warm=1)
    site.until_warm(1)
    assert len(site.vm_names()) == len(before) + 1, "a namesake counts none of them"


def test_a_namesake_made_right_away_fills_with_vms_of_its_own(site: Site) -> None:
    old, taken = with_one_claimed(site)
    site.delete(POOLS, "pool")
    site.until_gone(POOLS, "pool")
    new = site.pool(warm=2)
    site.until_warm(2)
    uids = {vm["metadata"]["name"]: vm["metadata"]["labels"][LABEL_POOL_UID] for vm in site.vms()}
    assert uids.pop(taken) == old["metadata"]["uid"]
    assert set(uids.values()) == {new["metadata"]["uid"]}
    status = site.until(POOLS, "pool", "counted", lambda pool: pool["status"]["total"] == 2)["status"]
    assert status["instances"]["claimed"] == 0
    site.claim("second")
    assert named_vm(site.bound("second"))["name"] in uids


def test_a_person_who_takes_the_finalizer_off_loses_no_claimed_vm(site: Site) -> None:
    _, taken = with_one_claimed(site)
    site.patch(POOLS, "pool", {"metadata": {"finalizers": None}})
    restored = site.until(
        POOLS, "pool", "has its finalizer again", lambda pool: pool["metadata"].get("finalizers")
    )
    assert restored["metadata"]["finalizers"] == ["bullpen.dev/pool"]
    site.patch(POOLS, "pool", {"spec": {"template": vm_template(shutdown="3s")}})
    site.delete(POOLS, "pool")
    site.api.patch(site.path(POOLS, "pool"), {"metadata": {"finalizers": None}})
    site.until_gone(POOLS, "pool")
    until("the warm ones collected", site.vm_names, lambda names: names == {taken}, seconds=60)
    assert condition(site.get(CLAIMS, "claim"), "Bound")["status"] == "True"
