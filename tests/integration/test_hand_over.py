"""A pool fills, a claim gets a VM of it in milliseconds, and gives it back: on a real API server."""

from __future__ import annotations

import pytest

from tests.support.controller import Controller
from tests.support.kubectl import Kubectl
from tests.support.manifests import apply, claim_manifest, get, pool_manifest

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller")]


def wait_warm(kubectl: Kubectl, namespace: str, pool: str, warm: int) -> None:
    kubectl(
        "wait",
        "-n",
        namespace,
        f"wp/{pool}",
        f"--for=jsonpath={{.status.warm.ready}}={warm}",
        "--timeout=60s",
    )


@pytest.mark.usefixtures("auditor")
def test_a_pool_fills_and_a_claim_takes_a_vm_out_for_good(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, namespace, pool_manifest("ci", warm={"replicas": 3}))
    wait_warm(kubectl, namespace, "ci", 3)
    apply(kubectl, namespace, claim_manifest("job", "ci"))
    kubectl("wait", "-n", namespace, "vmc/job", "--for=condition=Ready", "--timeout=30s")
    status = get(kubectl, namespace, "vmc", "job")["status"]
    [named] = status["virtualMachines"]
    vm = get(kubectl, namespace, "vm", named["name"])
    claim = get(kubectl, namespace, "vmc", "job")
    assert vm["metadata"]["uid"] == named["uid"]
    assert vm["metadata"]["labels"]["bullpen.dev/state"] == "Claimed"
    [owner] = vm["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("VirtualMachineClaim", claim["metadata"]["uid"])
    assert named["addresses"][0]["address"]
    wait_warm(kubectl, namespace, "ci", 3)
    kubectl("delete", "-n", namespace, "vmc/job")
    kubectl("wait", "-n", namespace, f"vm/{named['name']}", "--for=delete", "--timeout=30s")


def test_the_controllers_log_has_no_error(controller: Controller) -> None:
    assert '"level": "error"' not in controller.said
