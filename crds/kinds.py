"""Our kinds as data: short names, printer columns, subresources.

The columns show what a person wants to know first. This module must never hold a schema: the models do.
"""

from dataclasses import dataclass
from typing import Any

from crds.claim import VirtualMachineClaim
from crds.names import CLAIM_KIND, CLAIMS, POOL_KIND, POOLS
from crds.pool import VirtualMachinePool
from crds.schema import Model


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`; a wide one shows with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of ours."""

    name: str
    model: type[Model]
    singular: str
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    scale: dict[str, Any] | None = None


def _condition(kind: str) -> str:
    return f".status.conditions[?(@.type=='{kind}')].status"


_AGE = Column("Age", ".metadata.creationTimestamp", "date")

POOL = Kind(
    name=POOL_KIND,
    model=VirtualMachinePool,
    singular="virtualmachinepool",
    plural=POOLS,
    short_names=("warmpool", "wp"),
    columns=(
        Column("Warm", ".status.warm.ready", "integer"),
        Column("Target", ".status.warm.target", "integer"),
        Column("Claimed", ".status.instances.claimed", "integer"),
        Column("Pending", ".status.demand.pending", "integer"),
        Column("Booting", ".status.instances.provisioning", "integer"),
        Column("Decided-By", ".status.warm.decidedBy"),
        _AGE,
        Column("Ready", _condition("Ready"), wide=True),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", wide=True),
        Column("Total", ".status.total", "integer", wide=True),
        Column("Unready", ".status.instances.unready", "integer", wide=True),
        Column("Failed", ".status.instances.failed", "integer", wide=True),
        Column("Boot-P50", ".status.demand.leadTimeSeconds.p50", "number", wide=True),
        Column("Revision", ".status.currentRevision", wide=True),
        Column("Updated", ".status.updatedReplicas", "integer", wide=True),
        Column("Rolled-Out", _condition("RolledOut"), wide=True),
        Column("Suspended", ".spec.suspend", "boolean", wide=True),
    ),
    scale={
        "specReplicasPath": ".spec.warm.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
)

CLAIM = Kind(
    name=CLAIM_KIND,
    model=VirtualMachineClaim,
    singular="virtualmachineclaim",
    plural=CLAIMS,
    short_names=("vmclaim", "vmc"),
    columns=(
        Column("Phase", ".status.phase"),
        Column("VM", ".status.virtualMachines[0].name"),
        Column("Address", ".status.virtualMachines[0].addresses[0].address"),
        Column("Pool", ".spec.poolRef.name"),
        Column("Waited", ".status.waited"),
        # A date column shows a time that is still to come as <invalid>.
        Column("Expires", ".status.expiresAt"),
        _AGE,
        Column("Ready", _condition("Ready"), wide=True),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", wide=True),
        Column("Place", ".status.queue.position", "integer", wide=True),
        Column("Expected", ".status.queue.estimatedReadyTime", wide=True),
        Column("Node", ".status.virtualMachines[0].node", wide=True),
    ),
    selectable=(".status.phase", ".spec.poolRef.name"),
)

KINDS = (POOL, CLAIM)
