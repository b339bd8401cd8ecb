"""Which VMs are ours: the controller owner reference decides alone.

A VM copied with all its labels (KubeVirt's clone does that) or restored from a backup is foreign: it is
never counted, claimed, drained or deleted. Nothing here trusts a label that the owner does not confirm.
"""

from dataclasses import dataclass
from enum import StrEnum

from controller.kube.objects import ObjectMeta, OwnerReference
from controller.machines.objects import VirtualMachine
from crds import names


class OwnerKind(StrEnum):
    POOL = "VirtualMachinePool"
    CLAIM = "VirtualMachineClaim"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a VM of ours."""

    kind: OwnerKind
    name: str
    uid: str


_UNCLAIMED_MARKS = frozenset({*names.Mark} - {names.Mark.CLAIMED})
_LABEL_OF = {OwnerKind.POOL: names.LABEL_POOL_UID, OwnerKind.CLAIM: names.LABEL_CLAIM_UID}


def controller_reference(metadata: ObjectMeta) -> OwnerReference | None:
    return next((reference for reference in metadata.owner_references if reference.controller), None)


def watched(metadata: ObjectMeta) -> bool:
    """Whether the watches of VMs, which select by this label, tell of every change to it."""
    return names.LABEL_POOL_UID in metadata.labels


def given_by_hand(vm: VirtualMachine) -> bool:
    """A person wrote a claim's UID onto it: its pool owns it still, so no hand-over did.

    A VM that is being reset is its pool's again and keeps the UID until that is done.
    """
    meta = vm.metadata
    owner = owner_of(meta)
    return (
        owner is not None
        and owner.kind is OwnerKind.POOL
        and meta.deletion_timestamp is None
        and bool(meta.labels.get(names.LABEL_CLAIM_UID))
        and meta.labels.get(names.LABEL_STATE) not in {names.Mark.DRAINING, names.Mark.RECYCLING}
    )


def forged(vm: VirtualMachine) -> bool:
    """Marked by a person: as Claimed, with a word that is no mark, or no more at all.

    It carries no claim's UID, and its pool owns it still.
    """
    meta = vm.metadata
    owner = owner_of(meta)
    return (
        owner is not None
        and owner.kind is OwnerKind.POOL
        and meta.deletion_timestamp is None
        and meta.labels.get(names.LABEL_STATE) not in _UNCLAIMED_MARKS
        and not meta.labels.get(names.LABEL_CLAIM_UID)
    )


def owner_of(metadata: ObjectMeta) -> Owner | None:
    """The pool or claim that owns this VM, or None when the VM is foreign.

    The reference must be of our API group, and the VM's labels must say the same UID: a person's owner
    reference beside our copied labels is nobody's claim on us.
    """
    reference = controller_reference(metadata)
    if reference is None or not reference.api_version.startswith(names.GROUP + "/"):
        return None
    if reference.kind not in tuple(OwnerKind):
        return None
    kind = OwnerKind(reference.kind)
    if metadata.labels.get(_LABEL_OF[kind]) != reference.uid:
        return None
    return Owner(kind, reference.name, reference.uid)
