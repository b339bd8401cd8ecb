"""What a pool does next: snapshot in, ordered actions out. Pure, and the policy in one place.

The order-up-to rule: units to create = max(0, target + backorders − (ready + in flight)). A backorder is
placed when a claim arrives, because a buffer refilled only when something is taken out never recovers once
demand × lead time exceeds it.
"""

from dataclasses import dataclass

from controller.claims.objects import ORPHAN
from controller.machines.inventory import Instance
from controller.pools.snapshot import Snapshot
from statemachines.instance import State


@dataclass(frozen=True, slots=True)
class Check:
    """Ask the API server whether it would take this revision, before its first VM."""


@dataclass(frozen=True, slots=True)
class Create:
    count: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Drain these VMs: failed ones, surplus, or those of a pool under deletion."""

    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class DropFinalizer:
    """The pool may go, if an uncached list shows no VM that it owns."""


Action = Check | Create | Remove | DropFinalizer


# Which surplus VM goes first: the least useful one. Ties go to the youngest, so that the oldest warm VMs stay
# for the claims that take the oldest first.
_RANK = {State.UNREADY: 0, State.PROVISIONING: 1, State.WAKING: 2, State.WARM: 3}


def plan(seen: Snapshot) -> list[Action]:
    """The actions of one pass, in the order in which they are to be taken."""
    if (
        seen.missing
    ):  # nothing can be made or removed; what the pool owns goes with it when it is served again
        return [DropFinalizer()] if seen.deleting else []
    if seen.deleting:
        return _deletion(seen)
    actions: list[Action] = []
    if leaving := _leaving(seen):
        actions.append(Remove(tuple(leaving)))
    if seen.trouble is None and not seen.pool.spec.suspend:
        if not seen.checked:
            actions.append(Check())
        elif count := creations(seen):
            actions.append(Create(count))
    return actions


def wanted(seen: Snapshot) -> int:
    """Units that are missing (positive) or more than wanted (negative)."""
    return seen.target + seen.backorders - (seen.ready + seen.in_flight)


def creations(seen: Snapshot) -> int:
    """How many VMs to create in this pass, within every bound."""
    limits = seen.pool.spec.limits
    bounds = [
        wanted(seen),
        limits.max_concurrent_creations - seen.in_flight,
        limits.max_replicas - seen.total,
    ]
    if (allowed := seen.brake.allows(seen.in_flight, seen.now)) is not None:
        bounds.append(allowed)
    if seen.quota:
        bounds.append(0)
    return max(0, min(bounds))


def _leaving(seen: Snapshot) -> list[Instance]:
    """Draining ones go on, failed ones go, then surplus; no more at once than maxConcurrentDeletions."""
    room = seen.pool.spec.limits.max_concurrent_deletions - seen.removing
    if room <= 0:
        return []
    leaving = list(seen.draining[:room])
    if seen.pool.spec.suspend:
        return leaving
    leaving += seen.failed[: room - len(leaving)]
    surplus = min(-wanted(seen), room - len(leaving))
    if surplus > 0:
        leaving += surplus_order(seen)[:surplus]
    return leaving


def surplus_order(seen: Snapshot) -> list[Instance]:
    """The unclaimed VMs, the one to remove first in front."""
    return sorted(seen.removable, key=lambda each: (_RANK[each.state], -each.created, each.name))


def _deletion(seen: Snapshot) -> list[Action]:
    """The pool's warm VMs go with it by compare-and-set; claimed ones belong to their claims by now.

    With orphan propagation they stay: the garbage collector takes our owner reference off them.
    """
    if ORPHAN in seen.pool.metadata.finalizers:
        return [DropFinalizer()]
    room = max(0, seen.pool.spec.limits.max_concurrent_deletions - seen.removing)
    mine = (*seen.draining, *seen.failed, *surplus_order(seen))
    actions: list[Action] = [Remove(tuple(mine[:room]))] if mine and room else []
    if not mine and seen.creating == 0 and seen.handing_over == 0:
        actions.append(DropFinalizer())
    return actions
