"""A changed template on a real control plane: replaced under the floor, stopped by failures, rolled back."""

from __future__ import annotations

import pytest

from crds.names import LABEL_REVISION
from tests.support.controller import Controller
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.site import (
    CLAIMS,
    FAST,
    POOLS,
    VMS,
    Json,
    Site,
    condition,
    guest,
    holds,
    metric,
    named_vm,
    until,
    vm_template,
)
from tests.support.warm_watch import WarmWatch

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def strategy(kind: str = "RollingUpdate", **more: object) -> Json:
    return {"updateStrategy": {"type": kind, **more}}


def second(boot: str = FAST) -> Json:
    """A template that differs from the first one."""
    return vm_template(guest_spec=guest(terminationGracePeriodSeconds=7), boot=boot)


def change(site: Site, template: Json) -> str:
    """Write another template in the place of the one that is there; the write's resourceVersion."""
    operation = {"op": "replace", "path": "/spec/template", "value": template}
    return str(site.patch(POOLS, "pool", [operation])["metadata"]["resourceVersion"])


def until_rolled_out(kubectl: Kubectl, site: Site, seconds: int = 60) -> None:
    """Wait as a person does."""
    kubectl("wait", "-n", site.namespace, "wp/pool", "--for=condition=RolledOut", f"--timeout={seconds}s")


def revisions(site: Site) -> set[str]:
    return {vm["metadata"]["labels"][LABEL_REVISION] for vm in site.vms(state="Pooled")}


def current(site: Site) -> str:
    return str(site.get(POOLS, "pool")["status"]["currentRevision"])


def test_a_rolling_update_replaces_all_and_never_has_fewer_ready_than_the_floor(
    site: Site, kubectl: Kubectl, warm_watch: WarmWatch
) -> None:
    site.pool(warm=4, **strategy())
    site.until_warm(4)
    before = site.vm_names()
    warm_watch.begin(change(site, second()))
    until_rolled_out(kubectl, site)
    assert warm_watch.lowest() == 4
    assert warm_watch.removed() == 4
    assert not site.vm_names(state="Pooled") & before
    assert revisions(site) == {current(site)}
    until("nothing left over", site.vm_names, lambda names: len(names) == 4)


def test_a_lower_floor_lets_vms_go_first_and_no_deeper(
    site: Site, kubectl: Kubectl, warm_watch: WarmWatch
) -> None:
    site.pool(warm=4, limits={"maxReplicas": 4}, **strategy(maxSurge=0, warmFloor="50%"))
    site.until_warm(4)
    warm_watch.begin(change(site, second()))
    until_rolled_out(kubectl, site)
    assert warm_watch.lowest() == 2
    assert revisions(site) == {current(site)}


def test_wait_does_not_pass_before_the_change_was_seen(site: Site, kubectl: Kubectl) -> None:
    site.pool(warm=1, **strategy())
    site.until_warm(1)
    until_rolled_out(kubectl, site)
    change(site, second(boot="6s"))
    with pytest.raises(KubectlError, match="timed out"):
        kubectl("wait", "-n", site.namespace, "wp/pool", "--for=condition=RolledOut", "--timeout=1s")
    until_rolled_out(kubectl, site)


def test_a_roll_out_that_fails_stops_and_claims_are_served(
    site: Site, kubectl: Kubectl, warm_watch: WarmWatch, controller: Controller
) -> None:
    site.pool(warm=3, readiness={"deadline": "3s"}, **strategy())
    first = site.until_warm(3)["status"]["currentRevision"]
    before = site.vm_names()
    began = change(site, vm_template(fail="failed-create"))
    warm_watch.begin(began)
    said = site.until_condition(POOLS, "pool", "RolledOut", "False", "RolloutStalled")
    assert "0 of 3 unclaimed VMs are of revision" in said["message"]
    assert "KubeVirt could not start it: FailedCreate" in said["message"]
    site.until_condition(POOLS, "pool", "Degraded", "True", "BrakeOpen")
    assert warm_watch.lowest() == 3
    assert before <= site.vm_names(state="Pooled")
    site.claim()
    assert named_vm(site.bound())["name"] in before
    # The fix: what is old goes on to be replaced, the claimed VM stays.
    change(site, second())
    until_rolled_out(kubectl, site)
    assert revisions(site) == {current(site)} != {first}
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Bound"
    assert metric(controller, "bullpen_vms_drained_total", reason="stale") >= 2


def test_the_old_template_written_back_replaces_nothing_but_new_vms(
    site: Site, kubectl: Kubectl, warm_watch: WarmWatch
) -> None:
    site.pool(warm=3, **strategy())
    site.until_warm(3)
    before = site.vm_names()
    change(site, vm_template(boot="10m"))
    site.until(POOLS, "pool", "one new VM", lambda pool: pool["status"]["updatedReplicas"] == 1)
    warm_watch.begin(change(site, vm_template()))
    until_rolled_out(kubectl, site)
    until("the new one gone", site.vm_names, lambda names: names == before)
    assert (warm_watch.lowest(), warm_watch.removed()) == (3, 1)


def test_recreate_removes_all_old_ones_and_then_makes_new_ones(
    site: Site, kubectl: Kubectl, warm_watch: WarmWatch
) -> None:
    site.pool(warm=3, **strategy("Recreate"))
    site.until_warm(3)
    site.claim()
    claimed = named_vm(site.bound())["name"]
    site.until_warm(3)
    warm_watch.begin(change(site, second()))
    until_rolled_out(kubectl, site)
    assert warm_watch.lowest() == 0
    assert revisions(site) == {current(site)}
    assert site.get(VMS, claimed)["metadata"]["labels"][LABEL_REVISION] != current(site)


def test_by_default_old_vms_stay_until_they_are_claimed(site: Site, kubectl: Kubectl) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    until_rolled_out(kubectl, site)
    before = site.vm_names()
    change(site, second())
    said = site.until_condition(POOLS, "pool", "RolledOut", "False", "Replenishing")
    assert said["message"].startswith("0 of 2 unclaimed VMs are of revision")
    holds("the old ones", site.vm_names, lambda names: names == before)
    for name in ("one", "two"):
        site.claim(name)
        assert named_vm(site.bound(name))["name"] in before
    until_rolled_out(kubectl, site)


def test_vms_that_are_too_old_are_replaced_one_by_one_under_the_floor(
    site: Site, warm_watch: WarmWatch, controller: Controller
) -> None:
    aged = metric(controller, "bullpen_vms_drained_total", reason="too-old")
    pool = site.pool(warm=3, maxWarmAge="8s")
    site.until_warm(3)
    first = site.vm_names()
    warm_watch.begin(pool["metadata"]["resourceVersion"])
    until("all replaced", lambda: site.vm_names(state="Pooled") & first, lambda left: not left, 60)
    full = [each for each in warm_watch.judged() if each.removed]
    assert min(each.ready for each in full) == 3
    until(  # the API server shows a removal before it has answered it
        "counted",
        lambda: metric(controller, "bullpen_vms_drained_total", reason="too-old"),
        lambda drained: drained >= aged + 3,
    )
    assert condition(site.get(POOLS, "pool"), "RolledOut")["status"] == "True"


def test_a_template_that_the_api_server_refuses_replaces_nothing(site: Site) -> None:
    site.pool(warm=2, **strategy("Recreate"))
    site.until_warm(2)
    before = site.vm_names()
    interfaces = [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:01"}]
    change(site, vm_template(guest_spec=guest(domain={"devices": {"interfaces": interfaces}})))
    said = site.until_condition(POOLS, "pool", "RolledOut", "False", "RolloutStalled")
    assert "has a fixed macAddress" in said["message"]
    holds("the old ones", site.vm_names, lambda names: names == before)
