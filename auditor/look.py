"""A cluster at one instant, as an audit sees it: what there is, and since when. Pure.

Beyond the facts that the watching judge needs it takes in times and finalizers, because one look can't see
how long something has been so. Nothing here judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from auditor import facts
from auditor.events import About, Kind, Object
from auditor.findings import Finding, warning
from crds.names import LABEL_POOL_UID, LABEL_STATE
from crds.schema import written_time

CONTROLLER = "bullpen"
"""The field manager of the controller's writes."""
PATIENCE = timedelta(minutes=10)
"""How long something may be on its way out before it counts as stuck."""

_WHOSE = {
    Kind.VM: "see whether virt-controller and the VM's node are well; its owner takes a finalizer off",
    Kind.CLAIM: "see whether its VM is stuck; its owner takes a finalizer off",
    Kind.POOL: "see the pool's Ready for what is still to go, and whether a controller leads",
}


@dataclass(frozen=True, slots=True)
class SeenVm:
    """A VirtualMachine."""

    facts: facts.Vm
    deleted_at: datetime | None
    finalizers: tuple[str, ...]
    marked_at: datetime | None
    """When its state got its present value."""
    controlled_by: str
    """Its controller owner reference, whatever kind it names; empty when there is none."""
    made_by_us: bool
    """The controller itself set the labels that it carries."""

    @property
    def about(self) -> About:
        return About(Kind.VM, self.facts.namespace, self.facts.name, self.facts.uid)


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A VirtualMachineClaim."""

    facts: facts.Claim
    names: tuple[str, ...]
    """The names of the VMs that its status names, in the order of `facts.named`."""
    deleted_at: datetime | None
    finalizers: tuple[str, ...]
    releasing_since: datetime | None

    @property
    def about(self) -> About:
        return About(Kind.CLAIM, self.facts.namespace, self.facts.name, self.facts.uid)


@dataclass(frozen=True, slots=True)
class SeenPool:
    """A VirtualMachinePool."""

    facts: facts.Pool
    deleted_at: datetime | None
    finalizers: tuple[str, ...]
    generation: int
    observed: int
    """The generation that its status was found for; 0 when it has none."""
    stopped: bool
    """Its controller said good-bye."""

    @property
    def about(self) -> About:
        return About(Kind.POOL, self.facts.namespace, self.facts.name, self.facts.uid)


@dataclass(frozen=True, slots=True)
class Look:
    """All of it, by UID; `now` is the API server's time."""

    now: datetime
    pools: dict[str, SeenPool] = field(default_factory=dict)
    claims: dict[str, SeenClaim] = field(default_factory=dict)
    vms: dict[str, SeenVm] = field(default_factory=dict)
    users: dict[str, list[SeenClaim]] = field(default_factory=dict)
    """By VM UID: the live claims whose status names it."""
    names: dict[tuple[str, str], SeenVm] = field(default_factory=dict)
    """VMs by namespace and name."""

    @property
    def numbers(self) -> dict[str, int]:
        """How many pools, claims and VMs there are."""
        return {"pools": len(self.pools), "claims": len(self.claims), "VMs": len(self.vms)}

    def long_since(self, moment: datetime | None) -> bool:
        """Whether that is so long ago that it counts as stuck."""
        return moment is not None and self.now - moment > PATIENCE


def at(moment: datetime | None) -> str:
    """A time in a sentence. Never an age: the same thing seen twice has to read the same."""
    return written_time(moment) if moment else "an unknown time"


def stuck_terminating(seen: Look, one: SeenVm | SeenClaim | SeenPool) -> Finding | None:
    """It has been on its way out for too long."""
    if not seen.long_since(one.deleted_at):
        return None
    held = f"{' and '.join(one.finalizers)} hold it" if one.finalizers else "no finalizer holds it"
    return warning(
        one.about,
        "stuck-terminating",
        f"is being deleted since {at(one.deleted_at)}; {held}",
        _WHOSE[one.about.kind],
    )


def look(
    now: datetime,
    pools: Iterable[Object],
    claims: Iterable[Object],
    vms: Iterable[Object],
    ending: frozenset[str] = frozenset(),
) -> Look:
    """What the lists show, but for namespaces that are `ending`: all in them goes, in any order."""
    seen = Look(now)
    for pool in map(_pool, _staying(pools, ending)):
        seen.pools[pool.facts.uid] = pool
    for claim in map(_claim, _staying(claims, ending)):
        seen.claims[claim.facts.uid] = claim
        for uid in dict.fromkeys(claim.facts.named if claim.facts.in_use else ()):
            seen.users.setdefault(uid, []).append(claim)
    for vm in map(_vm, _staying(vms, ending)):
        seen.vms[vm.facts.uid] = vm
        seen.names[vm.facts.namespace, vm.facts.name] = vm
    return seen


def _staying(objects: Iterable[Object], ending: frozenset[str]) -> Iterator[Object]:
    return (each for each in objects if each["metadata"]["namespace"] not in ending)


def _vm(raw: Object) -> SeenVm:
    meta = raw["metadata"]
    marks = list(_entries(meta, LABEL_STATE))
    return SeenVm(
        facts=facts.vm(raw),
        deleted_at=_time(meta.get("deletionTimestamp")),
        finalizers=tuple(meta.get("finalizers") or ()),
        marked_at=max((moment for each in marks if (moment := _time(each.get("time")))), default=None),
        controlled_by=next(
            (
                f"{each['kind']} {each['name']}"
                for each in meta.get("ownerReferences") or ()
                if each.get("controller")
            ),
            "",
        ),
        made_by_us=any(each.get("manager") == CONTROLLER for each in _entries(meta, LABEL_POOL_UID)),
    )


def _claim(raw: Object) -> SeenClaim:
    meta, status = raw["metadata"], raw.get("status") or {}
    ready = _ready(status)
    since = [
        moment
        for text in (status.get("expiresAt"), ready.get("lastTransitionTime"))
        if (moment := _time(text)) is not None
    ]
    return SeenClaim(
        facts=facts.claim(raw),
        names=tuple(named.get("name", "") for named in status.get("virtualMachines") or ()),
        deleted_at=_time(meta.get("deletionTimestamp")),
        finalizers=tuple(meta.get("finalizers") or ()),
        releasing_since=max(since, default=None) if status.get("phase") == "Releasing" else None,
    )


def _pool(raw: Object) -> SeenPool:
    meta, status = raw["metadata"], raw.get("status") or {}
    return SeenPool(
        facts=facts.pool(raw),
        deleted_at=_time(meta.get("deletionTimestamp")),
        finalizers=tuple(meta.get("finalizers") or ()),
        generation=meta.get("generation", 0),
        observed=status.get("observedGeneration", 0),
        stopped=_ready(status).get("reason") == "ControllerStopped",
    )


def _ready(status: dict[str, Any]) -> dict[str, Any]:
    found = (each for each in status.get("conditions") or () if each.get("type") == "Ready")
    return next(found, {})


def _entries(meta: dict[str, Any], label: str) -> Iterator[dict[str, Any]]:
    """The managedFields of whoever set this label's present value."""
    for entry in meta.get("managedFields") or ():
        if f"f:{label}" in entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {}):
            yield entry


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
