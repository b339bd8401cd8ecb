"""Definitions that are missing when the controller starts, that come later, that go and come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import start_simulator
from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from e2e.rest import Rest
from tests.integration.own_cluster.conftest import Start
from tests.support.degraded import auditing_with_gaps, readiness, stays_calm
from tests.support.site import CLAIMS, POOLS, VMS, Site, condition, holds, named_vm, until

pytestmark = pytest.mark.cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KUBEVIRT = ("virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io")
BULLPEN = (f"{POOLS}.bullpen.dev", f"{CLAIMS}.bullpen.dev")
MISSING = (
    "the API server serves no virtualmachineinstances and no virtualmachines (kubevirt.io/v1): install "
    "KubeVirt, or wait until its operator has; everything goes on by itself then"
)


def remove(admin: Rest, *definitions: str) -> None:
    """Delete these definitions and wait until they are gone."""
    for name in definitions:
        admin.delete(f"{CRDS}/{name}")
    for name in definitions:
        admin.wait(f"{CRDS}/{name}", lambda answer: answer.status == 404, seconds=90)


@pytest.fixture
def stand_in(plane: ControlPlane) -> Iterator[None]:
    """KubeVirt's definitions and the stand-in."""
    install_crds(plane.kubeconfig)
    start_simulator(plane)
    yield
    plane.processes.stop("simulator")


def test_without_bullpens_definitions_it_says_so_and_waits_for_them(
    admin: Rest, kubeconfig: Path, site: Site, start: Start
) -> None:
    remove(admin, *BULLPEN, *KUBEVIRT)
    controller = start(wait=False)
    controller.wait_until_says("waiting for Bullpen's definitions")
    status, why = readiness(controller)
    assert status == 503
    assert f"the API server serves no {POOLS} and no {CLAIMS} (bullpen.dev/v1alpha1): apply" in why
    stays_calm(controller)
    assert controller.said.count("waiting for Bullpen's definitions") == 1
    install_crds(kubeconfig, kubevirt=False)
    controller.wait_until_says('"event": "ready"')
    site.pool(warm=1)
    site.until_condition(POOLS, "pool", "Ready", "False", "KubeVirtMissing")


def test_kubevirt_may_come_after_the_controller(
    admin: Rest, plane: ControlPlane, site: Site, start: Start
) -> None:
    remove(admin, *KUBEVIRT)
    install_crds(plane.kubeconfig, kubevirt=False)
    controller = start()
    site.pool(warm=2)
    site.claim()
    site.pool("leaving", warm=1)
    said = site.until_condition(POOLS, "pool", "Ready", "False", "KubeVirtMissing")
    assert said["message"] == MISSING
    told = site.until_condition(CLAIMS, "claim", "Bound", "False", "KubeVirtMissing")
    assert told["message"] == MISSING
    assert readiness(controller) == (200, "ok"), "a restart would not help"
    site.delete(POOLS, "leaving")
    site.until_gone(POOLS, "leaving")
    stays_calm(controller)
    install_crds(plane.kubeconfig)
    start_simulator(plane)
    try:
        with auditing_with_gaps(plane.kubeconfig, site.namespace):
            site.bound()
            site.until_warm(2)
            site.until_condition(POOLS, "pool", "Ready", "True", "Serving")
            site.until_condition(CLAIMS, "claim", "Ready", "True", "Usable")
    finally:
        plane.processes.stop("simulator")
    assert '"level": "error"' not in controller.said


@pytest.mark.usefixtures("stand_in")
def test_kubevirt_that_is_removed_takes_its_vms_along_and_may_come_back(
    admin: Rest, plane: ControlPlane, site: Site, start: Start
) -> None:
    controller = start()
    site.pool(warm=2)
    site.until_warm(2)
    site.claim()
    vm = named_vm(site.bound())
    site.until_warm(2)
    remove(admin, *KUBEVIRT)
    lost = site.until_phase("claim", "Lost")
    assert f"VM {vm['name']} was gone" in condition(lost, "Finished")["message"]
    site.until_condition(POOLS, "pool", "Ready", "False", "KubeVirtMissing")
    site.claim("late")
    site.until_condition(CLAIMS, "late", "Bound", "False", "KubeVirtMissing")
    stays_calm(controller)
    install_crds(plane.kubeconfig)
    with auditing_with_gaps(plane.kubeconfig, site.namespace):
        site.bound("late")
        site.until_warm(2)
    assert '"level": "error"' not in controller.said


@pytest.mark.usefixtures("stand_in")
def test_a_claim_whose_vm_went_with_kubevirt_while_no_controller_ran_is_told_when_it_is_known(
    admin: Rest, plane: ControlPlane, site: Site, start: Start
) -> None:
    first = start(lease_duration="6s")
    site.pool(warm=1)
    site.claim()
    vm = named_vm(site.bound())
    first.kill()
    remove(admin, *KUBEVIRT)
    controller = start()
    told = site.until_condition(CLAIMS, "claim", "Ready", "False", "KubeVirtMissing")
    assert told["message"] == MISSING
    holds("Bound", lambda: site.get(CLAIMS, "claim")["status"]["phase"], lambda now: now == "Bound", 2)
    stays_calm(controller)
    install_crds(plane.kubeconfig)
    with auditing_with_gaps(plane.kubeconfig, site.namespace):
        site.until_phase("claim", "Lost")
        assert not site.find(VMS, vm["name"])
        until("a new VM", site.vms)
        site.until_warm(1)
