"""What virt-api fills into a VirtualMachine, and the VMI that virt-controller makes of it.

Pure. There is no webhook here, so the stand-in writes the defaults first thing: a VM never equals its
template.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final
from uuid import UUID

from simulator.kubevirt.behaviour import PREFIX
from simulator.kubevirt.objects import API_VERSION, VM, VMI_FINALIZERS

DEFAULTED: Final = f"{PREFIX}defaulted"  # on every VM whose defaults are filled in
CRASHED: Final = f"{PREFIX}crashed"  # on the VMI that came after a commanded crash: the command obeyed
OBSERVED_VERSIONS: Final = {
    "kubevirt.io/latest-observed-api-version": "v1",
    "kubevirt.io/storage-observed-api-version": "v1",
}


def defaults(vm: VM, template: Mapping[str, Any], random: Random) -> dict[str, Any]:
    """The merge patch that fills in what is absent; empty when nothing is (a real webhook was there)."""
    spec = template.get("spec") or {}
    domain = spec.get("domain") or {}
    missing: dict[str, Any] = {}
    if "machine" not in domain:
        missing["machine"] = {"type": "q35"}
    if "resources" not in domain:
        missing["resources"] = {}
    if "uuid" not in (domain.get("firmware") or {}):
        missing["firmware"] = {"uuid": _uuid(random), "serial": _uuid(random)}
    filled: dict[str, Any] = {"domain": missing} if missing else {}
    if "architecture" not in spec:
        filled["architecture"] = "amd64"
    if not filled:
        return {}
    return {
        "metadata": {"uid": vm.metadata.uid, "annotations": {DEFAULTED: "true"}},
        "spec": {"template": {"spec": filled}},
    }


def instance(
    vm: VM, template: Mapping[str, Any], status: Mapping[str, Any], *, finalizers: bool, crashed: str
) -> dict[str, Any]:
    """The VMI to POST: named as its VM, owned by it, with the template's labels and annotations."""
    metadata = template.get("metadata") or {}
    annotations = dict(metadata.get("annotations") or {})
    annotations["kubevirt.io/vm-generation"] = str(vm.metadata.generation)
    if crashed:
        annotations[CRASHED] = crashed
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": vm.metadata.name,
            "namespace": vm.metadata.namespace,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": annotations,
            "finalizers": list(VMI_FINALIZERS) if finalizers else [],
            "ownerReferences": [owner_reference(vm)],
        },
        "spec": template.get("spec") or {},
        "status": dict(status),
    }


def owner_reference(vm: VM) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachine",
        "name": vm.metadata.name,
        "uid": vm.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _uuid(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128), version=4))
