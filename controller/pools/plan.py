"""What a pool does next: snapshot in, ordered actions out. Pure, and the policy in one place.

How many are missing is the order-up-to rule of `capacity.order`; here are the bounds on following it.
"""

from dataclasses import dataclass
from enum import StrEnum

from capacity.order import missing
from controller.claims.objects import ORPHAN
from controller.machines.inventory import Instance
from controller.pools import rollout
from controller.pools.snapshot import Snapshot
from statemachines.instance import State


@dataclass(frozen=True, slots=True)
class Check:
    """Ask the API server whether it would take this revision, before its first VM."""


@dataclass(frozen=True, slots=True)
class Create:
    count: int


class Why(StrEnum):
    """Why a VM that nobody claimed is removed."""

    DRAINING = "draining"  # it was chosen earlier, perhaps by another leader
    FAILED = "failed"
    STALE = "stale"
    TOO_OLD = "too-old"
    SURPLUS = "surplus"
    POOL_DELETED = "pool-deleted"


@dataclass(frozen=True, slots=True)
class Remove:
    """Drain these VMs."""

    instances: tuple[Instance, ...]
    why: Why


@dataclass(frozen=True, slots=True)
class DropFinalizer:
    """The pool may go, if an uncached list shows no VM that it owns."""


Action = Check | Create | Remove | DropFinalizer


# Which surplus VM goes first: the least useful one, and of those one of an older template. Ties go to the
# youngest, so that the oldest warm VMs stay for the claims that take the oldest first.
_RANK = {State.UNREADY: 0, State.PROVISIONING: 1, State.WAKING: 2, State.WARM: 3}


def plan(seen: Snapshot) -> list[Action]:
    """The actions of one pass, in the order in which they are to be taken."""
    if seen.missing:
        # Nothing can be made or removed; what the pool owns goes with it when it is served again.
        return [DropFinalizer()] if seen.deleting else []
    if seen.deleting:
        return _deletion(seen)
    actions: list[Action] = [*_removals(seen)]
    if seen.trouble is None and not seen.pool.spec.suspend:
        if not seen.checked:
            actions.append(Check())
        elif count := creations(seen):
            actions.append(Create(count))
    return actions


def wanted(seen: Snapshot) -> int:
    """Units that are missing (positive) or more than wanted (negative), a roll-out's extra ones aside."""
    return missing(seen.target, seen.stock)


def surplus(seen: Snapshot) -> int:
    """Units more than wanted, when those that a roll-out needs for a while are granted."""
    return max(0, -wanted(seen) - rollout.surge(seen))


def creations(seen: Snapshot) -> int:
    """How many VMs to create in this pass, within every bound."""
    limits = seen.pool.spec.limits
    # While some wait for a node another one would only wait beside them.
    if seen.quota or seen.no_room or rollout.recreates(seen):
        return 0
    bounds = [
        wanted(seen) + (0 if seen.unschedulable else rollout.surge(seen)),
        limits.max_concurrent_creations - seen.in_flight,
        limits.max_replicas - seen.total,
    ]
    if (allowed := seen.brake.allows(seen.in_flight, seen.now)) is not None:
        bounds.append(allowed)
    return max(0, min(bounds))


def _removals(seen: Snapshot) -> list[Remove]:
    """Draining ones go on, failed ones go, then outdated ones, then surplus.

    No more at once than maxConcurrentDeletions. Outdated ones that go are surplus no more, and no warm one
    goes for a VM that was ordered and is not seen yet: that one will be the surplus.
    """
    chosen: list[tuple[Instance, Why]] = [(each, Why.DRAINING) for each in seen.draining]
    if not seen.pool.spec.suspend:
        # Those that no node takes go in any case: they would hold up their own correction.
        replaced = {each.uid: each for each in (*seen.out_of_place, *rollout.leaving(seen))}
        chosen += [(each, Why.FAILED) for each in seen.failed]
        chosen += [(each, Why.STALE if seen.is_stale(each) else Why.TOO_OLD) for each in replaced.values()]
        spent = seen.creating + sum(each.state is not State.UNREADY for each in replaced.values())
        others = [each for each in surplus_order(seen) if each.uid not in replaced]
        chosen += [(each, Why.SURPLUS) for each in others[: max(0, surplus(seen) - spent)]]
    return _grouped(chosen[: _room(seen)])


def _room(seen: Snapshot) -> int:
    return max(0, seen.pool.spec.limits.max_concurrent_deletions - seen.removing)


def _grouped(chosen: list[tuple[Instance, Why]]) -> list[Remove]:
    by_reason: dict[Why, list[Instance]] = {}
    for instance, why in chosen:
        by_reason.setdefault(why, []).append(instance)
    return [Remove(tuple(instances), why) for why, instances in by_reason.items()]


def surplus_order(seen: Snapshot) -> list[Instance]:
    """The unclaimed VMs, the one to remove first in front."""

    def rank(each: Instance) -> tuple[int, bool, float, str]:
        return (_RANK[each.state], not seen.is_stale(each), -each.created, each.name)

    return sorted(seen.removable, key=rank)


def _deletion(seen: Snapshot) -> list[Action]:
    """The pool's warm VMs go with it by compare-and-set; claimed ones belong to their claims by now.

    With orphan propagation they stay: the garbage collector takes our owner reference off them.
    """
    if ORPHAN in seen.pool.metadata.finalizers:
        return [DropFinalizer()]
    mine = (*seen.draining, *seen.failed, *surplus_order(seen))
    if not mine and not seen.going and seen.creating == 0 and seen.handing_over == 0:
        return [DropFinalizer()]
    return [*_grouped([(each, Why.POOL_DELETED) for each in mine[: _room(seen)]])]
