"""A changed template applies to new VMs only; the status says which revision is current."""

from __future__ import annotations

import pytest

from crds.names import LABEL_REVISION
from tests.support.site import POOLS, VMS, Json, Site, guest, holds, named_vm, until, until_equal, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def revisions(site: Site, state: str = "Pooled") -> list[str]:
    return [vm["metadata"]["labels"][LABEL_REVISION] for vm in site.vms(state=state)]


def current(site: Site) -> str:
    return str(site.get(POOLS, "pool")["status"]["currentRevision"])


def counted(pool: Json) -> tuple[int, int]:
    """Unclaimed VMs, and those of the current revision."""
    return pool["status"]["replicas"], pool["status"]["updatedReplicas"]


def test_a_changed_template_applies_to_new_vms_only(site: Site) -> None:
    site.pool(warm=2)
    first = site.until_warm(2)["status"]["currentRevision"]
    before = site.vm_names()
    changed = vm_template(guest_spec=guest(terminationGracePeriodSeconds=7))
    site.patch(POOLS, "pool", {"spec": {"template": changed}})
    pool = site.until(POOLS, "pool", "changed", lambda pool: pool["status"]["currentRevision"] != first)
    second = pool["status"]["currentRevision"]
    site.until(POOLS, "pool", "none updated", lambda pool: counted(pool) == (2, 0))
    holds("the old VMs", site.vm_names, lambda names: names == before)
    site.claim()
    taken = named_vm(site.bound())["name"]
    assert taken in before
    site.until(POOLS, "pool", "one updated", lambda pool: counted(pool) == (2, 1))
    assert sorted(revisions(site)) == sorted([first, second])
    assert site.get(VMS, taken)["metadata"]["labels"][LABEL_REVISION] == first
    [fresh] = site.vm_names() - before
    assert site.get(VMS, fresh)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 7


def test_a_template_changed_back_has_its_old_revision_again(site: Site) -> None:
    pool = site.pool(warm=1)
    first = site.until_warm(1)["status"]["currentRevision"]
    for grace, same in ((7, False), (None, True)):
        change = {"template": {"spec": {"terminationGracePeriodSeconds": grace}}}
        site.patch(POOLS, "pool", {"spec": {"template": {"spec": change}}})
        until_equal(lambda: current(site) == first, same)
    assert site.get(POOLS, "pool")["spec"] == pool["spec"]
    assert revisions(site) == [first]


def test_another_field_than_the_template_makes_no_new_revision(site: Site) -> None:
    site.pool(warm=1)
    first = site.until_warm(1)["status"]["currentRevision"]
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 2}, "limits": {"maxReplicas": 50}}})
    assert site.until_warm(2)["status"]["currentRevision"] == first
    assert revisions(site) == [first, first]


def test_the_labels_reach_the_guest_and_the_users_own_survive(site: Site) -> None:
    template = vm_template(vm={"template": {"metadata": {"labels": {"team": "a"}}, "spec": guest()}})
    template["metadata"]["labels"] = {"cost": "b"}
    pool = site.pool(warm=1, template=template)
    site.until_warm(1)
    [vm], [vmi] = site.vms(), site.vmis()
    assert vm["metadata"]["labels"]["cost"] == "b"
    assert vmi["metadata"]["labels"]["team"] == "a"
    assert vmi["metadata"]["labels"]["bullpen.dev/pool-uid"] == pool["metadata"]["uid"]


def test_each_vm_has_disks_of_its_own(site: Site) -> None:
    disk = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}}}
    volumes = [{"name": "root", "dataVolume": {"name": "root"}}]
    vm = {"dataVolumeTemplates": [disk], "template": {"spec": guest(volumes=volumes)}}
    site.pool(warm=2, template=vm_template(vm=vm))
    vms = until("two VMs", site.vms, lambda vms: len(vms) == 2)
    for each in vms:
        name, spec = each["metadata"]["name"], each["spec"]
        assert spec["dataVolumeTemplates"][0]["metadata"]["name"] == f"{name}-root"
        assert spec["template"]["spec"]["volumes"][0]["dataVolume"]["name"] == f"{name}-root"
    site.until_warm(2)
