"""Kubernetes' own HorizontalPodAutoscaler sets a pool's `spec.warm.replicas`, by the scale subresource.

The autoscaler is the real one; the metric comes from an external metrics API that the test serves. What
docs/warm-capacity.md says of types of metrics is shown here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crds.names import LABEL_POOL_UID, LABEL_STATE
from e2e.controlplane.plane import ControlPlane
from e2e.rest import Rest
from tests.integration.own_cluster.conftest import Start
from tests.support.external_metrics import ExternalMetrics, serving
from tests.support.site import POOLS, Json, Site, condition, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), pytest.mark.usefixtures("auditor")]

AUTOSCALERS = "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers"


@pytest.fixture
def metrics(plane: ControlPlane, admin: Rest) -> Iterator[ExternalMetrics]:
    certificates = plane.directory / "certificates"
    with serving(admin, certificates / "apiserver.crt", certificates / "apiserver.key") as found:
        yield found


def autoscale(site: Site, target: Json, *, largest: int = 20) -> str:
    """An autoscaler of the pool by the length of a queue; its path."""
    path = AUTOSCALERS.format(site.namespace)
    spec = {
        "scaleTargetRef": {
            "apiVersion": "bullpen.dev/v1alpha1",
            "kind": "VirtualMachinePool",
            "name": "pool",
        },
        "minReplicas": 1,
        "maxReplicas": largest,
        "metrics": [
            {"type": "External", "external": {"metric": {"name": "jobs-queued"}, "target": target}},
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    made = site.api.post(path, {"metadata": {"name": "pool"}, "spec": spec})
    assert made.ok, made.message
    return f"{path}/pool"


def wanted(site: Site) -> int:
    return int(site.get(POOLS, "pool")["spec"]["warm"]["replicas"])


def test_an_autoscaler_drives_a_pool_up_and_down_by_an_average_value(
    site: Site, start: Start, metrics: ExternalMetrics
) -> None:
    start()
    site.pool(warm=1)
    site.until_warm(1)
    metrics.value = "7"
    path = autoscale(site, {"type": "AverageValue", "averageValue": "2"})
    pool = site.until_warm(4, seconds=90)
    assert pool["status"]["warm"] == {
        "ready": 4,
        "target": 4,
        "decidedBy": "replicas",
        "policies": [{"name": "replicas", "wants": 4, "because": "spec.warm.replicas is 4"}],
    }
    until("active", lambda: condition(site.api.get(path).body, "ScalingActive")["status"] == "True")
    metrics.value = "3"
    site.until_warm(2, seconds=60)
    until("the surplus gone", site.vm_names, lambda names: len(names) == 2)


def test_what_is_claimed_does_not_make_an_average_value_run_away(
    site: Site, start: Start, metrics: ExternalMetrics
) -> None:
    """Demand 4 at 2 each is two VMs in stock, however many were handed over and are in use."""
    start()
    site.pool(warm=2)
    metrics.value = "4"
    path = autoscale(site, {"type": "AverageValue", "averageValue": "2"})
    for number in range(4):
        site.claim(f"claim-{number}")
        site.bound(f"claim-{number}")
    _as_launched(site)
    asked = len(metrics.asked)
    until("the autoscaler to have looked ten times more", lambda: len(metrics.asked) > asked + 10)
    assert (wanted(site), site.api.get(path).body["status"]["desiredReplicas"]) == (2, 2)


def test_type_value_is_unfit_because_no_pod_is_a_vm_in_stock(
    site: Site, start: Start, metrics: ExternalMetrics
) -> None:
    """A ratio is applied to the number of pods that match the pool's selector, and launcher pods never do.

    So the autoscaler gives up, where the same demand as an average value makes six VMs.
    """
    start()
    site.pool(warm=3)
    site.until_warm(3)
    _as_launched(site)
    metrics.value = "12"
    path = autoscale(site, {"type": "Value", "value": "2"})
    said = until(
        "given up",
        lambda: condition(site.api.get(path).body, "ScalingActive"),
        lambda found: "no pods returned by selector" in found.get("message", ""),
        60,
    )
    assert said["status"] == "False"
    assert wanted(site) == 3
    site.api.delete(path)
    autoscale(site, {"type": "AverageValue", "averageValue": "2"})
    until("six VMs wanted", lambda: wanted(site), lambda replicas: replicas == 6, 60)


def _as_launched(site: Site) -> None:
    """A running pod for each VM, with the labels that KubeVirt gives a launcher pod when it makes it.

    Those are the labels of the VM's template: what we decided about a VM stands on the VM alone.
    """
    path = f"/api/v1/namespaces/{site.namespace}/pods"
    for vm in site.vms():
        name = f"virt-launcher-{vm['metadata']['name']}"
        labels = vm["spec"]["template"]["metadata"]["labels"]
        assert LABEL_STATE not in labels
        assert LABEL_POOL_UID in labels
        container = {"name": "compute", "image": "registry.example/launcher:1"}
        made = site.api.post(
            path, {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}
        )
        assert made.ok, made.message
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        assert site.api.patch(f"{path}/{name}/status", {"status": status}).ok
