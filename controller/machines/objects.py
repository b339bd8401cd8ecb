"""What of KubeVirt's and Kubernetes' objects the controller looks at, and nothing else.

These projections are decoded from every watch event of every VM, so they leave out all that no decision
needs. They never carry a template or a guest's secret.
"""

from typing import Any

import msgspec

from controller.kube.objects import ObjectMeta


class Condition(msgspec.Struct, rename="camel", frozen=True):
    """One condition of a foreign object; KubeVirt leaves most of its fields out."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class VMStatus(msgspec.Struct, rename="camel", frozen=True):
    printable_status: str = ""
    conditions: list[Condition] = []


class VirtualMachine(msgspec.Struct, rename="camel", frozen=True):
    """A KubeVirt VirtualMachine: its identity and its late copy of the guest's state."""

    metadata: ObjectMeta
    status: VMStatus = VMStatus()


class Interface(msgspec.Struct, rename="camel", frozen=True):
    ip_address: str = ""
    ip_addresses: list[str] = []


class VMIStatus(msgspec.Struct, rename="camel", frozen=True):
    phase: str = ""
    node_name: str = ""
    conditions: list[Condition] = []
    interfaces: list[Interface] = []


class VirtualMachineInstance(msgspec.Struct, rename="camel", frozen=True):
    """A KubeVirt VirtualMachineInstance: the running guest, first hand."""

    metadata: ObjectMeta
    status: VMIStatus = VMIStatus()


GONE = "gone"  # in place of a node's deletionTimestamp: its object was deleted


class Taint(msgspec.Struct, frozen=True):
    key: str
    effect: str = ""


class NodeSpec(msgspec.Struct, rename="camel", frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(msgspec.Struct, frozen=True):
    conditions: list[Condition] = []


class Node(msgspec.Struct, frozen=True):
    """A node, as far as it says whether a VM on it may be handed out."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def gone(node: Node) -> Node:
    """What is remembered of a node after its object was deleted: that, however it was on its way out."""
    return Node(ObjectMeta(name=node.metadata.name, uid=node.metadata.uid, deletion_timestamp=GONE))


def condition_of(conditions: list[Condition], kind: str) -> Condition | None:
    return next((c for c in conditions if c.type == kind), None)


def addresses_of(vmi: VirtualMachineInstance | None) -> tuple[str, ...]:
    """The guest's addresses, first interface first, without repetition."""
    if vmi is None:
        return ()
    found: dict[str, None] = {}
    for interface in vmi.status.interfaces:
        for address in interface.ip_addresses or [interface.ip_address]:
            if address:
                found.setdefault(address)
    return tuple(found)


def manifest_owner(kind: str, api_version: str, name: str, uid: str) -> dict[str, Any]:
    """A controller owner reference as it stands in an object; key order does not matter to the API server."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
