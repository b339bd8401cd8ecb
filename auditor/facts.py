"""What the auditor takes from an object: a few plain facts, so that thousands of objects stay small.

Everything is forgiving of absent fields; nothing here judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from auditor.events import Object
from crds.names import (
    CLAIM_KIND,
    GROUP,
    LABEL_CLAIM_UID,
    LABEL_POOL_UID,
    LABEL_STATE,
    POOL_KIND,
    Mark,
)

RETAINED_UID = f"{GROUP}/retained-uid"
"""The annotation that marks a VM which has no owner on purpose: its value is the VM's own UID."""

PEOPLE = ("kubectl", "k9s")
"""How the field managers of people begin."""

OWNERS = "ownerReferences"
_OUR_LABELS = (LABEL_STATE, LABEL_CLAIM_UID, LABEL_POOL_UID)
_OWNERS: dict[str, str | None] = {
    Mark.POOLED: POOL_KIND,
    Mark.RECYCLING: POOL_KIND,
    Mark.CLAIMED: CLAIM_KIND,
    Mark.RETAINED: None,
}


@dataclass(frozen=True, slots=True)
class Owner:
    """A controller owner reference to one of our kinds."""

    kind: str
    uid: str


@dataclass(frozen=True, slots=True)
class Vm:
    """A VirtualMachine."""

    uid: str
    namespace: str
    name: str
    state: str | None
    pool_uid: str | None
    claim_uid: str | None
    owner: Owner | None
    retained: bool
    deleting: bool
    by_person: frozenset[str]
    """Those of our labels whose present value a person has set, and OWNERS for an owner reference."""

    @property
    def ours(self) -> bool:
        """Whether the controller owner reference names what the labels say."""
        if self.owner is None:
            return False
        label = self.pool_uid if self.owner.kind == POOL_KIND else self.claim_uid
        return label in {None, self.owner.uid}

    @property
    def labelled(self) -> bool:
        """Whether it looks like one of ours."""
        return self.state is not None or self.pool_uid is not None or self.claim_uid is not None

    @property
    def misowned(self) -> str:
        """What is wrong with its ownership; empty when nothing is."""
        owner = self.owner
        if owner is None:
            kept = self.retained and self.state in {Mark.CLAIMED, Mark.RETAINED}
            return "" if kept else f"is {self.state} and owned by nobody"
        if not self.ours:
            return f"is owned by {owner.kind} {owner.uid}, which its labels do not say"
        wanted = _OWNERS.get(self.state or "", owner.kind)
        return f"is {self.state} and owned by a {owner.kind}" if wanted != owner.kind else ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A VirtualMachineClaim."""

    uid: str
    namespace: str
    name: str
    phase: str
    deleting: bool
    orphaning: bool
    named: tuple[str, ...]
    """UIDs of the VMs that its status names."""
    replicas: int
    bound_at: str
    """RFC 3339, the server's time; empty before."""

    @property
    def in_use(self) -> bool:
        """Whether what it names is its user's: bound, and neither deleted nor being released."""
        return self.phase == "Bound" and not self.deleting


@dataclass(frozen=True, slots=True)
class Pool:
    """A VirtualMachinePool."""

    uid: str
    namespace: str
    name: str
    deleted_at: str
    """RFC 3339; empty while it lives."""
    foreground: bool
    orphaning: bool


def vm(raw: Object) -> Vm:
    """The facts of a VirtualMachine."""
    meta = raw["metadata"]
    labels = meta.get("labels") or {}
    return Vm(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        state=labels.get(LABEL_STATE),
        pool_uid=labels.get(LABEL_POOL_UID),
        claim_uid=labels.get(LABEL_CLAIM_UID),
        owner=_owner(meta),
        retained=(meta.get("annotations") or {}).get(RETAINED_UID) == meta["uid"],
        deleting="deletionTimestamp" in meta,
        by_person=frozenset(_set_by_people(meta)),
    )


def claim(raw: Object) -> Claim:
    """The facts of a VirtualMachineClaim."""
    meta, status = raw["metadata"], raw.get("status") or {}
    deleting = "deletionTimestamp" in meta
    return Claim(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        phase=status.get("phase") or "Pending",
        deleting=deleting,
        orphaning=deleting and "orphan" in meta.get("finalizers", ()),
        named=tuple(named.get("uid", "") for named in status.get("virtualMachines") or ()),
        replicas=raw.get("spec", {}).get("replicas", 1),
        bound_at=status.get("boundAt") or "",
    )


def pool(raw: Object) -> Pool:
    """The facts of a VirtualMachinePool."""
    meta = raw["metadata"]
    deleted_at, finalizers = meta.get("deletionTimestamp", ""), meta.get("finalizers", ())
    return Pool(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        deleted_at=deleted_at,
        foreground=bool(deleted_at) and "foregroundDeletion" in finalizers,
        orphaning=bool(deleted_at) and "orphan" in finalizers,
    )


def _owner(meta: dict[str, Any]) -> Owner | None:
    for reference in meta.get("ownerReferences") or ():
        if (
            reference.get("controller")
            and reference["apiVersion"].startswith(f"{GROUP}/")
            and reference["kind"] in {POOL_KIND, CLAIM_KIND}
        ):
            return Owner(reference["kind"], reference["uid"])
    return None


def _set_by_people(meta: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for entry in meta.get("managedFields") or ():
        if entry.get("manager", "").startswith(PEOPLE):
            fields = entry.get("fieldsV1", {}).get("f:metadata", {})
            labels = fields.get("f:labels", {})
            found.update(label for label in _OUR_LABELS if f"f:{label}" in labels)
            found.update({OWNERS} if "f:ownerReferences" in fields else ())
    return found
