"""What people, clones and backups do to VMs: copies are never touched, what is ours heals."""

from __future__ import annotations

import pytest

from crds.names import LABEL_CLAIM_UID, LABEL_STATE
from tests.support.auditing import AuditorThread
from tests.support.controller import Controller
from tests.support.site import (
    CLAIMS,
    POOLS,
    VMS,
    Json,
    Site,
    holds,
    metric,
    named_vm,
    owner,
    until,
    until_equal,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def copy_of(vm: Json, name: str) -> Json:
    """What KubeVirt's clone or a backup makes of a VM: all its labels and annotations, nobody's reference."""
    meta = vm["metadata"]
    metadata = {"name": name, "labels": meta["labels"], "annotations": meta["annotations"]}
    return {"apiVersion": vm["apiVersion"], "kind": vm["kind"], "metadata": metadata, "spec": vm["spec"]}


def foreign(controller: Controller, site: Site) -> float:
    return metric(controller, "bullpen_foreign_labelled_vms", namespace=site.namespace)


def label(site: Site, vm: str, **labels: str | None) -> None:
    """What `kubectl label` does: `state="Pooled"`, `claim_uid=None`."""
    words = [
        f"bullpen.dev/{key.replace('_', '-')}" + ("-" if value is None else f"={value}")
        for key, value in labels.items()
    ]
    site.kubectl("label", "-n", site.namespace, "vm", vm, "--overwrite", *words)


def bound_vm(site: Site, warm: int = 1) -> Json:
    """The VM of a bound claim on a pool that is full again."""
    site.pool(warm=warm)
    site.until_warm(warm)
    site.claim()
    named = named_vm(site.bound())
    site.until_warm(warm)
    return site.get(VMS, named["name"])


def test_a_copy_of_a_warm_vm_is_never_counted_claimed_or_deleted(site: Site, controller: Controller) -> None:
    site.pool(warm=1, limits={"maxReplicas": 1})
    site.until_warm(1)
    [mine] = site.vms()
    site.create(VMS, copy_of(mine, "copy"))
    site.until_condition(VMS, "copy", "Ready", "True")
    until_equal(lambda: foreign(controller, site), 1)
    status = site.get(POOLS, "pool")["status"]
    assert (status["replicas"], status["total"]) == (1, 1)
    for claim in ("one", "two"):
        site.claim(claim)
    assert named_vm(site.bound("one"))["name"] == mine["metadata"]["name"]
    site.until_condition(CLAIMS, "two", "Bound", "False", "Queued")
    site.delete(CLAIMS, "one")
    site.bound("two")
    site.delete(POOLS, "pool")
    site.until_gone(POOLS, "pool")
    site.delete(CLAIMS, "two")
    until_equal(lambda: len(site.vms()), 1)
    copy = site.get(VMS, "copy")
    assert "deletionTimestamp" not in copy["metadata"]
    assert copy["metadata"]["labels"] == mine["metadata"]["labels"]


def test_a_copy_of_a_claimed_vm_beside_its_claim_is_never_touched(site: Site, controller: Controller) -> None:
    vm = bound_vm(site)
    site.create(VMS, copy_of(vm, "copy"))
    until_equal(lambda: foreign(controller, site), 1)
    assert named_vm(site.get(CLAIMS, "claim"))["uid"] == vm["metadata"]["uid"]
    site.delete(CLAIMS, "claim")
    site.until_gone(VMS, vm["metadata"]["name"])
    assert "deletionTimestamp" not in site.get(VMS, "copy")["metadata"]


def test_a_claimed_vm_restored_without_its_claim_is_never_touched(site: Site, controller: Controller) -> None:
    vm = bound_vm(site)
    site.delete(CLAIMS, "claim")
    site.until_gone(VMS, vm["metadata"]["name"])
    site.create(VMS, copy_of(vm, vm["metadata"]["name"]))
    until_equal(lambda: foreign(controller, site), 1)
    site.claim("another")
    site.bound("another")
    restored = site.get(VMS, vm["metadata"]["name"])
    assert "deletionTimestamp" not in restored["metadata"]
    assert restored["metadata"]["labels"] == vm["metadata"]["labels"]


def test_a_warm_vm_whose_owner_a_person_takes_away_is_theirs_and_is_replaced(
    site: Site, auditor: AuditorThread, controller: Controller
) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [vm] = site.vms()
    name = vm["metadata"]["name"]
    auditor.excuse(vm["metadata"]["uid"], "a person takes its owner away")
    site.patch(VMS, name, {"metadata": {"ownerReferences": None}})
    until("another one", lambda: site.vm_names() - {name})
    until_equal(lambda: foreign(controller, site), 1)
    site.until_warm(1)
    site.claim()
    assert named_vm(site.bound())["name"] != name
    assert site.find(VMS, name)


def test_a_claimed_vm_that_a_person_labels_pooled_is_put_right_and_never_offered(
    site: Site, auditor: AuditorThread
) -> None:
    vm = bound_vm(site)
    name, uid = vm["metadata"]["name"], vm["metadata"]["uid"]
    auditor.excuse(uid, "a person sets its state back")
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 0}}})
    until_equal(site.vm_names, {name})
    label(site, name, state="Pooled")
    site.claim("next")
    site.until(VMS, name, "Claimed again", lambda vm: vm["metadata"]["labels"][LABEL_STATE] == "Claimed")
    assert named_vm(site.bound("next"))["uid"] != uid
    assert owner(site.get(VMS, name))["uid"] == site.get(CLAIMS, "claim")["metadata"]["uid"]
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Bound"


def test_a_claimed_vm_without_its_claims_label_gets_it_back(site: Site, auditor: AuditorThread) -> None:
    vm = bound_vm(site)
    name, labels = vm["metadata"]["name"], vm["metadata"]["labels"]
    auditor.excuse(vm["metadata"]["uid"], "a person takes a label off")
    label(site, name, claim_uid=None)
    site.until(
        VMS,
        name,
        "labelled",
        lambda vm: vm["metadata"]["labels"].get(LABEL_CLAIM_UID) == labels[LABEL_CLAIM_UID],
    )
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Bound"
    site.delete(CLAIMS, "claim")
    site.until_gone(VMS, name)


@pytest.mark.parametrize(
    "stripped", [{"state": None}, {"state": None, "pool": None, "pool_uid": None}], ids=["state", "all"]
)
def test_a_warm_vm_without_its_labels_gets_them_back(
    site: Site, auditor: AuditorThread, stripped: dict[str, None]
) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [vm] = site.vms()
    name, labels = vm["metadata"]["name"], vm["metadata"]["labels"]
    auditor.excuse(vm["metadata"]["uid"], "a person takes its labels off")
    label(site, name, **stripped)
    found = until(
        "labelled, or gone as surplus",
        lambda: site.find(VMS, name),
        lambda vm: not vm or vm["metadata"]["labels"].get(LABEL_STATE),
    )
    assert not found or found["metadata"]["labels"].items() >= labels.items() - {(LABEL_STATE, "Pooled")}
    site.until(POOLS, "pool", "one VM", lambda pool: pool["status"]["total"] == 1)
    site.claim()
    site.bound()


def test_a_warm_vm_that_a_person_labels_draining_is_removed_and_replaced(
    site: Site, auditor: AuditorThread
) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [vm] = site.vms()
    auditor.excuse(vm["metadata"]["uid"], "a person marks it")
    label(site, vm["metadata"]["name"], state="Draining")
    site.until_gone(VMS, vm["metadata"]["name"])
    site.until_warm(1)


def test_a_warm_vm_that_a_person_deletes_is_replaced(site: Site) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    [first, second] = site.vms()
    site.kubectl("delete", "vm", first["metadata"]["name"], "-n", site.namespace)
    site.until_warm(2)
    names = site.vm_names()
    assert first["metadata"]["name"] not in names
    assert second["metadata"]["name"] in names


def test_a_claims_user_may_label_the_vm_as_they_like(site: Site) -> None:
    vm = bound_vm(site)
    name = vm["metadata"]["name"]
    site.kubectl("label", "-n", site.namespace, "vm", name, "team=mine", "example.com/x=y")
    holds("bound", lambda: site.get(CLAIMS, "claim")["status"]["phase"], lambda phase: phase == "Bound")
    site.delete(CLAIMS, "claim")
    site.until_gone(VMS, name)


@pytest.mark.parametrize("state", ["Claimed", "Banana", None])
def test_a_warm_vm_whose_state_a_person_sets_is_put_right_and_goes_with_its_pool(
    site: Site, auditor: AuditorThread, state: str | None
) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [vm] = site.vms()
    name = vm["metadata"]["name"]
    auditor.excuse(vm["metadata"]["uid"], "a person marks it")
    label(site, name, state=state)
    found = until(
        "Pooled again, or gone as surplus",
        lambda: site.find(VMS, name),
        lambda vm: not vm or vm["metadata"]["labels"].get(LABEL_STATE) == "Pooled",
    )
    assert (
        not found or "deletionTimestamp" in found["metadata"] or owner(found)["kind"] == "VirtualMachinePool"
    )
    site.until(POOLS, "pool", "one VM", lambda pool: pool["status"]["total"] == 1)
    site.claim()
    site.bound()
    site.kubectl("delete", "wp", "pool", "-n", site.namespace, "--timeout=30s")


def test_a_vm_that_a_person_gives_to_another_pool_by_label_comes_back(
    site: Site, auditor: AuditorThread
) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [vm] = site.vms()
    name, right = vm["metadata"]["name"], vm["metadata"]["labels"]["bullpen.dev/pool-uid"]
    auditor.excuse(vm["metadata"]["uid"], "a person changes its pool's UID")
    label(site, name, pool_uid="bogus")
    until(
        "its pool's again, or gone as surplus",
        lambda: site.find(VMS, name),
        lambda vm: not vm or vm["metadata"]["labels"]["bullpen.dev/pool-uid"] == right,
    )
    site.until(POOLS, "pool", "one VM", lambda pool: pool["status"]["total"] == 1)
