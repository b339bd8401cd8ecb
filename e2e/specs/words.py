"""The words of the specs: what a user does with kubectl, in one line each. None looks behind the API."""

from __future__ import annotations

from typing import Any

from tests.support.kubectl import Kubectl
from tests.support.manifests import apply, claim_manifest, get, pool_manifest

# Boots on the stand-in and, from a few megabytes, on a KubeVirt with software emulation.
TEMPLATE: dict[str, Any] = {
    "spec": {
        "runStrategy": "Always",
        "template": {
            "spec": {
                "domain": {
                    "memory": {"guest": "128Mi"},
                    "devices": {
                        "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                        "interfaces": [{"name": "default", "masquerade": {}}],
                    },
                },
                "networks": [{"name": "default", "pod": {}}],
                "terminationGracePeriodSeconds": 0,
                "volumes": [
                    {
                        "name": "root",
                        "containerDisk": {"image": "quay.io/kubevirt/cirros-container-disk-demo:v1.6.0"},
                    }
                ],
            }
        },
    }
}
PATIENCE = 300  # seconds: kubectl returns at once when it holds, and a first boot elsewhere pulls an image


def make_pool(kubectl: Kubectl, namespace: str, name: str, *, warm: int, **spec: Any) -> None:
    """Apply a pool; see `full` for waiting until its VMs are warm."""
    spec = {"template": TEMPLATE, "warm": {"replicas": warm}, **spec}
    apply(kubectl, namespace, pool_manifest(name, **spec))


def full(kubectl: Kubectl, namespace: str, name: str, warm: int) -> None:
    """Wait until this many VMs of the pool are warm, and it serves."""
    wait(kubectl, namespace, f"wp/{name}", f"jsonpath={{.status.warm.ready}}={warm}")
    wait(kubectl, namespace, f"wp/{name}", "condition=Ready")


def make_claim(kubectl: Kubectl, namespace: str, name: str, pool: str, **spec: Any) -> None:
    apply(kubectl, namespace, claim_manifest(name, pool, **spec))


def wait(kubectl: Kubectl, namespace: str, what: str, condition: str) -> None:
    """kubectl wait --for=CONDITION."""
    arguments = ["-n", namespace, what, f"--for={condition}", f"--timeout={PATIENCE}s"]
    kubectl("wait", *arguments, seconds=PATIENCE + 10)


def vm_of(kubectl: Kubectl, namespace: str, claim: str) -> str:
    """The name of the VM that a claim got."""
    [vm] = get(kubectl, namespace, "vmc", claim)["status"]["virtualMachines"]
    return str(vm["name"])


def names(kubectl: Kubectl, namespace: str, kind: str, *selector: str) -> set[str]:
    listed = kubectl("get", kind, "-n", namespace, "-o", "name", *selector)
    return {line.partition("/")[2] for line in listed.split()}


def condition(kubectl: Kubectl, namespace: str, what: str, kind: str) -> dict[str, Any]:
    """One condition of an object's status."""
    found = get(kubectl, namespace, *what.split("/"))["status"]["conditions"]
    [chosen] = [each for each in found if each["type"] == kind]
    return dict(chosen)
