"""A person strips our labels: the VM goes out of sight, and comes back with the next resync."""

from __future__ import annotations

import pytest

from tests.integration.test_hand_over import wait_warm
from tests.support.kubectl import Kubectl
from tests.support.manifests import apply, claim_manifest, get, pool_manifest

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def test_a_claimed_vm_without_its_labels_is_not_lost_and_gets_them_back(
    kubectl: Kubectl, namespace: str
) -> None:
    apply(kubectl, namespace, pool_manifest("ci"))
    wait_warm(kubectl, namespace, "ci", 1)
    apply(kubectl, namespace, claim_manifest("job", "ci"))
    kubectl("wait", "-n", namespace, "vmc/job", "--for=condition=Ready", "--timeout=30s")
    name = get(kubectl, namespace, "vmc", "job")["status"]["virtualMachines"][0]["name"]
    labels = get(kubectl, namespace, "vm", name)["metadata"]["labels"]
    kubectl("label", "-n", namespace, "vm", name, *(f"{key}-" for key in labels))
    for key, value in labels.items():
        if key != "bullpen.dev/revision":
            path = key.replace(".", "\\.")
            wanted = f"--for=jsonpath={{.metadata.labels.{path}}}={value}"
            kubectl("wait", "-n", namespace, f"vm/{name}", wanted, "--timeout=30s")
    assert get(kubectl, namespace, "vmc", "job")["status"]["phase"] == "Bound"
    kubectl("delete", "-n", namespace, "vmc/job")
    kubectl("wait", "-n", namespace, f"vm/{name}", "--for=delete", "--timeout=30s")
