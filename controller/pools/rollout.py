"""Which outdated VMs may go, how many more may be there meanwhile, and why it does not go on. Pure.

What is ready never falls under the floor by a decision made here: a roll-out of VMs that never
become warm stops by itself.
"""

from controller.machines.inventory import Instance
from controller.pools.snapshot import Snapshot
from crds.pool import UpdateType
from crds.ratios import at_least
from statemachines.instance import State

# ---- what is done about it


def surge(seen: Snapshot) -> int:
    """How many VMs more than wanted there may be: successors of outdated ones that are still there."""
    strategy = seen.pool.spec.update_strategy
    rolling = (e for e in seen.outdated if strategy.type is not UpdateType.RECREATE or not seen.is_stale(e))
    return min(strategy.max_surge, sum(each.state is not State.UNREADY for each in rolling))


def floor(seen: Snapshot) -> int:
    """As many ready VMs a roll-out leaves alone."""
    return at_least(seen.pool.spec.update_strategy.warm_floor, seen.target)


def recreates(seen: Snapshot) -> bool:
    """Whether nothing is made before the last VM of the old template is on its way out."""
    recreate = seen.pool.spec.update_strategy.type is UpdateType.RECREATE
    return recreate and not halted(seen) and any(seen.is_stale(each) for each in seen.outdated)


def leaving(seen: Snapshot) -> list[Instance]:
    """The outdated VMs that may go now, the least useful first."""
    if not seen.outdated or halted(seen):
        return []
    if recreates(seen):
        return sorted(filter(seen.is_stale, seen.outdated), key=_oldest_first)
    idle = [e for e in seen.outdated if e.state is State.UNREADY or e.derived.unschedulable]
    booting = sorted(
        (e for e in seen.outdated if e.state is State.PROVISIONING and e not in idle), key=_oldest_first
    )
    ready = sorted((e for e in seen.outdated if e.state in {State.WARM, State.STANDBY}), key=_oldest_first)
    return [*idle, *booting[_needed(seen, len(booting)) :], *ready[: max(0, seen.ready - floor(seen))]]


def _needed(seen: Snapshot, booting: int) -> int:
    """Boots of the old template that go on: those that the floor or waiting claims need.

    Only in a pool whose VMs have booted before, and one place is left for a successor: a template that was
    changed because it never boots must not hold up its own correction.
    """
    if seen.lead_time[0] is None:
        return 0
    short = floor(seen) + seen.pending - max(0, seen.ready) - (seen.in_flight - booting)
    return max(0, min(short, seen.pool.spec.limits.max_concurrent_creations - 1))


def _oldest_first(each: Instance) -> tuple[float, str]:
    return (each.created, each.name)


# ---- why not


def stalled(seen: Snapshot) -> str:
    """Why it does not go on, as a sentence; empty when it does. What is warm is kept then."""
    return halted(seen) or hindered(seen)


def halted(seen: Snapshot) -> str:
    """Why no VM may go for a successor, as a sentence; empty when one may."""
    if seen.pool.spec.suspend:
        return "spec.suspend is true"
    if seen.missing:
        return seen.missing
    if seen.trouble is not None:
        return seen.trouble.message
    if not seen.checked:
        return "the API server has not yet said whether it would take the template"
    failures = seen.brake.failures
    if failures and (seen.brake.open or not seen.revisions.updated_warm):
        times = "a VM" if failures == 1 else f"{failures} VMs in a row"
        return (
            f"{times} of revision {seen.revision} failed; the last: {seen.last_failure or 'see its events'}"
        )
    return ""


def hindered(seen: Snapshot) -> str:
    """Why no successor can be made though nothing is wrong with the template; empty when one can."""
    strategy, limits = seen.pool.spec.update_strategy, seen.pool.spec.limits
    if seen.in_flight > seen.unschedulable or seen.removing or seen.ready > floor(seen):
        return ""
    if seen.quota:
        return seen.quota
    if seen.unschedulable:
        return "no node has room for a successor: add nodes, or lower updateStrategy.warmFloor"
    if seen.total >= limits.max_replicas:
        return (
            f"limits.maxReplicas ({limits.max_replicas}) leaves no room for a successor: "
            "raise it, or lower updateStrategy.warmFloor"
        )
    if strategy.max_surge == 0:
        return (
            f"updateStrategy.maxSurge is 0 and warmFloor ({strategy.warm_floor}) keeps all "
            f"{floor(seen)} warm VMs: raise maxSurge, or lower warmFloor"
        )
    return ""
