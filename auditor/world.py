"""What the auditor knows: every VM, claim and pool that it ever saw, by UID.

It remembers more than the API server shows: what a VM once carried, and who was given it. It never judges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from auditor.facts import Claim, Pool, Vm


@dataclass(slots=True)
class VmLife:
    """A VM's present facts and what is true for all its life."""

    facts: Vm
    gone: bool = False
    ours: bool = False
    """It was once ours, and no orphan delete made it its user's own."""
    carried: str | None = None
    """The claim UID that it was handed over with; a completed recycle forgets it."""

    @property
    def alive(self) -> bool:
        """Whether nobody has begun to delete it."""
        return not self.gone and not self.facts.deleting


@dataclass(slots=True)
class ClaimLife:
    """A claim's present facts."""

    facts: Claim
    gone: bool = False

    @property
    def in_use(self) -> bool:
        """Whether what it names is its user's now."""
        return not self.gone and self.facts.in_use


@dataclass(slots=True)
class PoolLife:
    """A pool's present facts."""

    facts: Pool
    gone: bool = False


@dataclass(slots=True)
class World:
    """All that was seen, and what people have said that they do."""

    vms: dict[str, VmLife] = field(default_factory=dict)
    claims: dict[str, ClaimLife] = field(default_factory=dict)
    pools: dict[str, PoolLife] = field(default_factory=dict)
    published: dict[str, dict[str, None]] = field(default_factory=dict)
    """By VM UID: the UIDs of the claims whose status ever named it, in that order; a recycle forgets them."""
    ending: set[str] = field(default_factory=set)
    """Namespaces that are being deleted: everything in them goes, in any order, and nobody minds."""
    excused: dict[str, str] = field(default_factory=dict)
    """UIDs of VMs that a person handles, and why."""

    def users(self, vm_uid: str) -> Iterator[Claim]:
        """The claims that have the VM now."""
        for uid in self.published.get(vm_uid, ()):
            claim = self.claims.get(uid)
            if claim is not None and claim.in_use and vm_uid in claim.facts.named:
                yield claim.facts

    def orphaned(self, before: Vm) -> bool:
        """Whether the owner that the VM had is being deleted so that its dependents stay."""
        if before.owner is None:
            return False
        owner = self.claims.get(before.owner.uid) or self.pools.get(before.owner.uid)
        return owner is not None and owner.facts.orphaning

    def pool_of(self, vm: Vm) -> Pool | None:
        """The pool that the VM was made for, as its label says."""
        pool = self.pools.get(vm.pool_uid or "")
        return pool.facts if pool is not None else None

    def unjudged(self, vm: Vm) -> bool:
        """Whether what happens to the VM is a person's doing."""
        return vm.uid in self.excused or vm.namespace in self.ending
