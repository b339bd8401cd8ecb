"""How many VMs a pool keeps: filled, refilled, scaled, suspended, bounded."""

from __future__ import annotations

import pytest

from tests.support.kubectl import Kubectl
from tests.support.site import (
    CLAIMS,
    POOLS,
    VMS,
    Json,
    Site,
    condition,
    holds,
    named_vm,
    until,
    until_still,
    vm_template,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def scale(kubectl: Kubectl, site: Site, warm: int) -> None:
    kubectl("scale", "-n", site.namespace, "wp/pool", f"--replicas={warm}")


def counts(pool: Json) -> tuple[int, int, int, int]:
    """Unclaimed, all, claimed, warm."""
    status = pool["status"]
    return status["replicas"], status["total"], status["instances"]["claimed"], status["warm"]["ready"]


def test_a_pool_fills_with_vms_that_are_all_its_own(site: Site) -> None:
    pool = site.pool(warm=3)
    status = site.until_warm(3)["status"]
    assert (status["replicas"], status["total"], status["instances"]["warm"]) == (3, 3, 3)
    assert status["warm"] == {
        "ready": 3,
        "target": 3,
        "decidedBy": "replicas",
        "policies": [{"name": "replicas", "wants": 3, "because": "spec.warm.replicas is 3"}],
    }
    for vm in site.vms():
        [reference] = vm["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (pool["metadata"]["uid"], True)
        assert vm["metadata"]["labels"]["bullpen.dev/pool-uid"] == pool["metadata"]["uid"]
        assert vm["metadata"]["labels"]["bullpen.dev/revision"] == status["currentRevision"]


def test_a_full_pool_says_that_it_serves_and_rests(site: Site) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    for kind, status, reason in (
        ("Ready", "True", "Serving"),
        ("Warm", "True", "TargetReached"),
        ("Progressing", "False", "TargetReached"),
        ("Degraded", "False", "AsExpected"),
        ("CapacityAvailable", "True", "BelowLimits"),
    ):
        site.until_condition(POOLS, "pool", kind, status, reason)
    version = until_still(lambda: site.get(POOLS, "pool")["metadata"]["resourceVersion"])
    holds(
        "at rest",
        lambda: site.get(POOLS, "pool")["metadata"]["resourceVersion"],
        lambda now: now == version,
        2,
    )


def test_a_pool_refills_after_a_claim_has_taken_a_vm_out(site: Site) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    before = site.vm_names()
    site.claim()
    taken = named_vm(site.bound())["name"]
    assert taken in before
    site.until(POOLS, "pool", "refilled", lambda pool: counts(pool) == (2, 3, 1, 2))
    assert site.vm_names(state="Claimed") == {taken}


def test_kubectl_scale_makes_and_removes_vms(site: Site, kubectl: Kubectl) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [first] = site.vm_names()
    scale(kubectl, site, 4)
    site.until_warm(4)
    scale(kubectl, site, 1)
    site.until_warm(1)
    until("the surplus gone", site.vm_names, lambda names: len(names) == 1)
    assert site.vm_names() == {first}, "the oldest stays"
    scale(kubectl, site, 0)
    until("all gone", site.vm_names, lambda names: not names)
    assert site.until_warm(0)["status"]["replicas"] == 0


def test_scaling_to_zero_leaves_claimed_vms_alone(site: Site, kubectl: Kubectl) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    site.claim()
    taken = named_vm(site.bound())["name"]
    scale(kubectl, site, 0)
    until("the claimed one alone", site.vm_names, lambda names: names == {taken})
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Bound"


def test_the_scale_subresource_counts_unclaimed_vms(site: Site) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    site.claim()
    site.bound()
    site.until(POOLS, "pool", "refilled", lambda pool: counts(pool) == (2, 3, 1, 2))
    scale = site.api.get(site.path(POOLS, "pool") + "/scale").body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    selected = site.api.get(site.path(VMS), labelSelector=scale["status"]["selector"]).body["items"]
    assert {vm["metadata"]["name"] for vm in selected} == site.vm_names(state="Pooled")


def test_a_suspended_pool_serves_what_is_warm_and_makes_and_removes_nothing(site: Site) -> None:
    site.pool(warm=3)
    site.until_warm(3)
    before = site.vm_names()
    site.patch(POOLS, "pool", {"spec": {"suspend": True}})
    site.until_condition(POOLS, "pool", "Progressing", "False", "Suspended")
    site.claim()
    taken = named_vm(site.bound())["name"]
    site.until_warm(2)
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 1}}})
    site.until(POOLS, "pool", "scaled", lambda pool: pool["status"]["warm"]["target"] == 1)
    holds("as it was", site.vm_names, lambda names: names == before)
    site.patch(POOLS, "pool", {"spec": {"suspend": False}})
    until("the surplus gone", lambda: site.vm_names(state="Pooled"), lambda names: len(names) == 1)
    assert site.vm_names(state="Claimed") == {taken}


def test_a_claim_on_an_empty_suspended_pool_waits_until_it_is_resumed(site: Site) -> None:
    site.pool(warm=0, suspend=True)
    site.claim()
    site.until_condition(CLAIMS, "claim", "Bound", "False", "Queued")
    assert not site.vms()
    site.patch(POOLS, "pool", {"spec": {"suspend": False}})
    site.bound()


def test_max_replicas_bounds_all_vms_and_the_pool_says_so(site: Site) -> None:
    site.pool(warm=2, limits={"maxReplicas": 3})
    site.until_warm(2)
    for name in ("one", "two", "three"):
        site.claim(name)
        site.bound(name)
    site.claim("four")
    said = site.until_condition(POOLS, "pool", "CapacityAvailable", "False", "MaxReplicasReached")
    assert "limits.maxReplicas (3) is reached: raise it, or release claims" in said["message"]
    holds("three VMs", site.vms, lambda vms: len(vms) <= 3)
    site.delete(CLAIMS, "one")
    site.bound("four")
    assert len(site.vms()) <= 3


def test_creations_at_once_are_bounded(site: Site) -> None:
    site.pool(warm=5, template=vm_template(boot="700ms"), limits={"maxConcurrentCreations": 2})

    def ready() -> int:
        made = site.vm_names()
        up = {
            vmi["metadata"]["name"] for vmi in site.vmis() if condition(vmi, "Ready").get("status") == "True"
        }
        assert len(made - up) <= 2, f"{made - up} boot at once"
        return len(up)

    until("five ready", ready, lambda count: count == 5)


def test_a_quota_that_refuses_vms_is_told(site: Site) -> None:
    key = "count/virtualmachines.kubevirt.io"
    path = f"/api/v1/namespaces/{site.namespace}/resourcequotas"
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {key: "1"}}}
    assert site.api.post(path, quota).status == 201
    # The quota controller, too, overlooks a new definition for up to half a minute.
    site.api.wait(
        f"{path}/small", lambda found: key in found.body.get("status", {}).get("used", {}), seconds=60
    )
    site.pool(warm=2)
    said = site.until_condition(POOLS, "pool", "CapacityAvailable", "False", "QuotaRefused")
    assert "exceeded quota: small" in said["message"]
    site.claim()
    site.bound()


def test_a_claim_on_a_suspended_pool_says_that_the_pool_makes_nothing(site: Site) -> None:
    site.pool(warm=0, suspend=True)
    site.claim()
    site.until(
        CLAIMS,
        "claim",
        "told why",
        lambda claim: (
            "spec.suspend is true" in condition(claim, "Bound")["message"] if claim.get("status") else False
        ),
    )
    site.patch(POOLS, "pool", {"spec": {"suspend": False}})
    site.bound()
