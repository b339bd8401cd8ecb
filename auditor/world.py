"""What the auditor knows: every VM, claim and pool that it ever saw, by UID.

It remembers more than the API server shows: what a VM once carried, and who was given it. It never judges.
"""

from __future__ import annotations

from collections import Counter
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
    orphaned: bool = False
    """An orphan delete of its owner took our reference off it."""
    wavered: bool = False
    """And by then its user had deleted the claim otherwise, too: it may stay or go."""
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
    kept: set[str] = field(default_factory=set)
    """UIDs of claims and pools that were once deleted so that their dependents stay."""
    forgotten: Counter[str] = field(default_factory=Counter)
    """How many VMs, claims and pools are gone and out of mind."""
    _doomed: set[str] = field(default_factory=set)

    @property
    def remembered(self) -> dict[str, int]:
        """How many VMs, claims and pools are in mind."""
        return {"pools": len(self.pools), "claims": len(self.claims), "VMs": len(self.vms)}

    @property
    def seen(self) -> dict[str, int]:
        """How many VMs, claims and pools were ever seen."""
        return {name: number + self.forgotten[name] for name, number in self.remembered.items()}

    def users(self, vm_uid: str) -> Iterator[Claim]:
        """The claims that have the VM now."""
        for uid in self.published.get(vm_uid, ()):
            claim = self.claims.get(uid)
            if claim is not None and claim.in_use and vm_uid in claim.facts.named:
                yield claim.facts

    def orphaned(self, before: Vm) -> bool:
        """Whether the owner that the VM had was deleted so that its dependents stay."""
        if before.owner is None:
            return False
        return before.owner.uid in self.kept

    def wavered(self, before: Vm) -> bool:
        """Whether the claim that owned the VM was deleted with orphan first and is deleted otherwise now."""
        claim = self.claims.get(before.owner.uid) if before.owner else None
        return claim is not None and not claim.facts.orphaning and self.orphaned(before)

    def pool_of(self, vm: Vm) -> Pool | None:
        """The pool that the VM was made for, as its label says."""
        pool = self.pools.get(vm.pool_uid or "")
        return pool.facts if pool is not None else None

    def sweep(self) -> None:
        """Forget what is gone and can't be spoken of any more; whoever watches for months must not grow.

        UIDs never come back, so what is gone matters only while something that is there refers to it. It is
        forgotten the second time that this is found: a claim's event may trail its VM's.
        """
        doomed = set(self._forgettable())
        for uid in doomed & self._doomed:
            self._forget(uid)
        self._doomed = doomed - self._doomed
        remembered: tuple[VmLife | ClaimLife | PoolLife, ...] = (
            *self.vms.values(),
            *self.claims.values(),
            *self.pools.values(),
        )
        self.ending &= {life.facts.namespace for life in remembered}

    def _forget(self, uid: str) -> None:
        self.forgotten["VMs"] += self.vms.pop(uid, None) is not None
        self.forgotten["claims"] += self.claims.pop(uid, None) is not None
        self.forgotten["pools"] += self.pools.pop(uid, None) is not None
        self.published.pop(uid, None)
        self.excused.pop(uid, None)
        self.kept.discard(uid)

    def _forgettable(self) -> Iterator[str]:
        spoken_of: set[str | None] = set()
        for uid, vm in self.vms.items():
            owner = vm.facts.owner.uid if vm.facts.owner else None
            of_it = {vm.carried, vm.facts.claim_uid, vm.facts.pool_uid, owner, *self.published.get(uid, ())}
            if vm.gone and not any(each in self.claims and not self.claims[each].gone for each in of_it):
                yield uid
            else:
                spoken_of |= of_it
        for lives in (self.claims, self.pools):
            yield from (uid for uid, life in lives.items() if life.gone and uid not in spoken_of)

    def unjudged(self, vm: Vm) -> bool:
        """Whether what happens to the VM is a person's doing."""
        return vm.uid in self.excused or vm.namespace in self.ending
