"""VMs that do not go: they count, they are named, and nobody waits for them who need not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.auditing import auditing
from tests.support.controller import Controller, running_controller
from tests.support.degraded import stays_calm
from tests.support.site import CLAIMS, POOLS, VMS, Site, condition, named_vm, until

pytestmark = pytest.mark.cluster

HELD = "tests.bullpen.dev/held"


@pytest.fixture
def controller(kubeconfig: Path, tmp_path: Path, site: Site) -> Iterator[Controller]:
    """For which a VM is stuck after four seconds."""
    space = site.namespace
    lease = f"lease-of-{space}"
    with (
        auditing(kubeconfig, space) as auditor,
        running_controller(
            kubeconfig,
            tmp_path,
            lease=lease,
            lease_duration="30s",
            stuck_after="4s",
            watch_namespaces=space,
        ) as running,
    ):
        yield running
        assert auditor.settled() == []


def hold(site: Site, vm: str) -> None:
    """Somebody's finalizer, beside KubeVirt's."""
    site.patch(VMS, vm, [{"op": "add", "path": "/metadata/finalizers/-", "value": HELD}])


def let_go(site: Site, vm: str) -> None:
    kept = [each for each in site.get(VMS, vm)["metadata"]["finalizers"] if each != HELD]
    site.patch(VMS, vm, {"metadata": {"finalizers": kept}})


def test_vms_that_do_not_go_count_and_are_named_and_the_pool_goes_on_within_its_limits(
    site: Site, controller: Controller
) -> None:
    limits = {"maxReplicas": 4, "maxConcurrentDeletions": 1}
    site.pool(warm=2, limits=limits)
    site.until_warm(2)
    site.claim("held", lifetime="1h")
    held = named_vm(site.bound("held"))["name"]
    site.until_warm(2)
    hold(site, held)
    site.patch(CLAIMS, "held", {"spec": {"lifetime": "1s"}})
    told = site.until_condition(POOLS, "pool", "Degraded", "True", "VMsStuck")
    assert f"1 VMs are being deleted and do not go: {held}" in told["message"]
    assert HELD in told["message"]
    why = site.until(CLAIMS, "held", "told", lambda each: HELD in condition(each, "Ready")["message"])
    assert why["status"]["phase"] == "Releasing"
    site.delete(CLAIMS, "held")
    site.until_gone(CLAIMS, "held")
    site.claim("next")
    site.bound("next")
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 3}}})
    full = site.until_condition(POOLS, "pool", "CapacityAvailable", "False", "MaxReplicasReached")
    assert "limits.maxReplicas (4) is reached, with 1 VMs that are being deleted" in full["message"]
    stays_calm(controller)
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 1}}})
    until("surplus removed beside the stuck one", site.vms, lambda vms: len(vms) == 3)
    let_go(site, held)
    site.until_condition(POOLS, "pool", "Degraded", "False", "AsExpected")


def test_a_pool_that_goes_says_which_of_its_vms_do_not(site: Site, controller: Controller) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    held = min(site.vm_names())
    hold(site, held)
    site.delete(POOLS, "pool")
    said = f"1 VMs are being deleted and do not go: {held}"  # the other one may take its time, too
    site.until(POOLS, "pool", "told", lambda pool: said in condition(pool, "Ready").get("message", ""))
    stays_calm(controller)
    let_go(site, held)
    site.until_gone(POOLS, "pool")
