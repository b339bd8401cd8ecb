"""What one controller believes: caches that lag behind the watches, and the tasks that it has under way.

A watch delivers its events in their order, one kind apart from the other. The answer to a request of one's
own goes into the cache at once, and what a watch delivers later of an older version changes nothing.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import NamedTuple

from controller.claims.queue import Queue
from controller.machines.inventory import Inventory
from controller.machines.objects import VirtualMachineInstance
from controller.machines.ownership import watched
from controller.machines.readiness import ReadinessRule, epoch
from crds import names
from tests.protocol.apiserver import Event, Names, Server
from tests.protocol.things import CLAIM, VM, Thing, Work, kept
from tests.support.builders import NOW, make_vmi


class Mode(StrEnum):
    STANDBY = "standby"
    STARTING = "starting"  # it leads, and has listed nothing yet
    LISTING = "listing"  # it has listed the VMs, and not the claims
    LEADING = "leading"
    DEAD = "dead"


class Purpose(StrEnum):
    """What a task is for, as the product names the step that keeps a VM busy."""

    HAND_OVER = "hand-over"
    REPAIR = "repair"
    RELEASE = "release"
    DRAIN = "drain"
    CLAIM = "claim"
    CREATE = "create"
    POOL = "pool"
    LABELS = "labels"


class Task(NamedTuple):
    """Something under way. `then` is what follows when it went well: a status write after a deletion."""

    purpose: Purpose
    about: str
    work: Work
    vm_uid: str = ""
    claim_uid: str = ""
    then: Work | None = None


class View(NamedTuple):
    """One controller. `vms` holds, by slot, the versions that were seen (what of them matters); `claims` is
    in order of arrival; the `*_events` are what the watches will deliver; `aside` are VMs that looked free
    and were refused, which are not tried again at once.
    """

    mode: Mode = Mode.STANDBY
    vms: tuple[tuple[Thing, ...], ...] = ()
    claims: tuple[Thing, ...] = ()
    pool: Thing | None = None
    vm_events: tuple[Event, ...] = ()
    claim_events: tuple[Event, ...] = ()
    pool_events: tuple[Event, ...] = ()
    tasks: tuple[Task, ...] = ()
    made: int = 0
    aside: tuple[str, ...] = ()

    def claim_of(self, uid: str) -> Thing | None:
        return next((claim for claim in self.claims if claim.uid == uid), None)


def listening(view: View, events: tuple[Event, ...]) -> View:
    """The watches will deliver these."""
    vms, claims, pool = list(view.vm_events), list(view.claim_events), list(view.pool_events)
    for what, there in events:
        if what.kind == VM:
            if view.mode in {Mode.LISTING, Mode.LEADING}:
                vms.append((what, there))
        elif view.mode is Mode.LEADING:
            (claims if what.kind == CLAIM else pool).append((what, there))
    return view._replace(vm_events=tuple(vms), claim_events=tuple(claims), pool_events=tuple(pool))


def listed_vms(view: View, server: Server) -> View:
    found = tuple((vm,) if vm is not None and names.LABEL_POOL_UID in vm.labels else () for vm in server.vms)
    return view._replace(mode=Mode.LISTING, vms=found)


def listed_claims(view: View, server: Server) -> View:
    """The line is sorted by the product's own rule."""
    there = {claim.uid: claim for claim in server.claims if claim is not None}
    queue = Queue()
    for claim in there.values():
        queue.push(claim.claim, 0.0)
    queue.sort(lambda claim: epoch(claim.metadata.creation_timestamp) or 0.0)
    claims = tuple(there[uid] for uid in queue.line)
    return view._replace(mode=Mode.LEADING, claims=claims, pool=server.pool)


def yet_to_see(view: View, slot: int) -> View:
    """The same but for a VM that is so young that its watch has not told of it."""
    (young,) = view.vms[slot]
    vms = (*view.vms[:slot], (), *view.vms[slot + 1 :])
    return view._replace(vms=vms, vm_events=((young, True),))


# ---- taking in


def saw_vm(view: View, where: Names, vm: Thing) -> View:
    """The answer to a request: the newest version there is, kept as the executor keeps it."""
    if not watched(vm.vm.metadata):
        return view
    events = tuple(event for event in view.vm_events if event[0].uid != vm.uid)
    return _with_vm(view, where, vm)._replace(vm_events=events)


def _with_vm(view: View, where: Names, vm: Thing) -> View:
    slot = where.vms.index(vm.name)
    before = view.vms[slot]
    seen = remembered((*before, vm) if before and before[-1].uid == vm.uid else (vm,))
    return view._replace(vms=(*view.vms[:slot], seen, *view.vms[slot + 1 :]))


def saw_claim(view: View, claim: Thing) -> View:
    events = tuple(event for event in view.claim_events if event[0].uid != claim.uid or not event[1])
    return _with_claim(view, claim)._replace(claim_events=events)


def _with_claim(view: View, claim: Thing) -> View:
    if view.claim_of(claim.uid) is None:
        return view._replace(claims=(*view.claims, claim))
    return view._replace(claims=tuple(claim if known.uid == claim.uid else known for known in view.claims))


def next_vm(view: View, where: Names) -> View:
    """The watch of VMs delivers its next event."""
    (vm, there), *later = view.vm_events
    after = view._replace(vm_events=tuple(later))
    if there:
        return _with_vm(after, where, vm)
    slot = where.vms.index(vm.name)
    if not after.vms[slot] or after.vms[slot][-1].uid != vm.uid:
        return after
    return after._replace(vms=(*after.vms[:slot], (), *after.vms[slot + 1 :]))


def next_claim(view: View) -> View:
    (claim, there), *later = view.claim_events
    after = view._replace(claim_events=tuple(later))
    if there:
        return _with_claim(after, claim)
    return after._replace(claims=tuple(known for known in after.claims if known.uid != claim.uid))


def next_pool(view: View) -> View:
    (pool, there), *later = view.pool_events
    return view._replace(pool=pool if there else None, pool_events=tuple(later))


# ---- what is remembered of a VM


@cache
def guest_of(vm: Thing) -> VirtualMachineInstance | None:
    """The guest of a VM that runs. It is seen as soon as the VM is: guests' own watch does not lag here."""
    if vm.status.get("printableStatus") != "Running":
        return None
    return kept(make_vmi(vm.name, vm_uid=vm.uid))


_representatives: dict[tuple[Thing, object], tuple[Thing, ...]] = {}


@cache
def remembered(versions: tuple[Thing, ...]) -> tuple[Thing, ...]:
    """Versions that leave the inventory with the same memory of the VM: the first such sequence met."""
    inventory = Inventory(versions[-1].labels.get(names.LABEL_POOL_UID, ""))
    inventory.configure(ReadinessRule(), inventory.order, NOW)
    for version in versions:
        instance = inventory.observe(version.vm, guest_of(version), None, NOW)
    memory = (instance.was_claimed, instance.state, instance.warm_at is None)
    return _representatives.setdefault((versions[-1], memory), versions)
