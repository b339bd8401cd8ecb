"""A pool's status, computed once at the end of each pass. Pure: one function per condition.

It holds times, never ages: a status that ticks is a write every pass.
"""

import math
from collections.abc import Sequence
from typing import Any

from controller.claims.patches import timestamp
from controller.machines.inventory import Instance
from controller.pools import rollout, telling
from controller.pools.changes import changed
from controller.pools.plan import surplus, wanted
from controller.pools.snapshot import Snapshot
from crds import names
from crds.conditions import PoolCondition, PoolReason, Truth
from crds.durations import text
from crds.pool import UpdateType
from statemachines.instance import State

Json = dict[str, Any]
Verdict = tuple[Truth, str, str]

_COUNTED = {
    "provisioning": (State.PROVISIONING, State.WAKING),
    "warm": (State.WARM,),
    "unready": (State.UNREADY,),
    "claimed": (State.CLAIMED,),
    "draining": (State.DRAINING,),
    "terminating": (State.TERMINATING,),
    "failed": (State.FAILED,),
}
_UNCLAIMED = (State.PROVISIONING, State.WAKING, State.WARM, State.UNREADY, State.STANDBY)
NAMED = 5  # VMs that a message names
LATE_FACTOR = 2.0  # times the p95 boot time: Warm=False is for pools that are late, not for every refill
AGE_IN_BOOTS = 20  # times the usual boot, as a maxWarmAge to begin with: then few VMs boot for age's sake
FIRST_PATIENCE = 60.0  # s before a pool without a measured boot counts as late


def selector(pool_uid: str) -> str:
    """The unclaimed VMs of a pool, for the scale subresource."""
    return f"{names.LABEL_POOL_UID}={pool_uid},{names.LABEL_STATE}={names.Mark.POOLED.value}"


def status(seen: Snapshot, before: Json) -> Json:
    """The whole status; `before` is the last one, whose transition times are kept."""
    instances = {name: sum(seen.counts[s] for s in states) for name, states in _COUNTED.items()}
    fresh: Json = {
        "observedGeneration": seen.pool.metadata.generation,
        "replicas": sum(seen.counts[s] for s in _UNCLAIMED),
        "total": sum(seen.counts.values()),
        "instances": instances,
        "warm": telling.warm(seen.ready, seen.told),
        "currentRevision": seen.revision,
        "updatedReplicas": seen.revisions.updated,
        "demand": _demand(seen),
        "brake": _brake(seen),
        "selector": selector(seen.pool.metadata.uid),
    }
    fresh["conditions"] = [
        _condition(kind, verdict, seen, before)
        for kind, verdict in (
            (PoolCondition.READY, ready(seen)),
            (PoolCondition.WARM, warm(seen)),
            (PoolCondition.PROGRESSING, progressing(seen)),
            (PoolCondition.ROLLED_OUT, rolled_out(seen, before)),
            (PoolCondition.DEGRADED, degraded(seen)),
            (PoolCondition.CAPACITY_AVAILABLE, capacity_available(seen)),
        )
    ]
    if (verdict := telling.policies_met(seen.pool.spec.warm, seen.told)) is not None:
        fresh["conditions"].append(_condition(PoolCondition.POLICIES_MET, verdict, seen, before))
    return fresh | _data(seen, before, fresh["conditions"])


def _data(seen: Snapshot, before: Json, conditions: list[Json]) -> Json:
    """What the template refers to; before the first look of this leadership, what the last one said."""
    kind = PoolCondition.REFERENCED_DATA_CHANGED
    if seen.data is None:
        kept = [each for each in before.get("conditions", []) if each["type"] == kind]
        listed = before.get("referencedData")
    else:
        verdict = changed(seen.data, seen.unclaimed_since)
        kept = [_condition(kind, verdict, seen, before)] if verdict else []
        listed = [each.as_json() for each in seen.data.objects]
    return {"conditions": [*conditions, *kept]} | ({"referencedData": listed} if listed else {})


def hindrance(seen: Snapshot) -> str:
    """Why no VM is made although one is wanted, for the claims that wait for it; empty when one may be."""
    if seen.pool.spec.suspend:
        return "spec.suspend is true"
    if seen.missing:
        return seen.missing
    if seen.trouble is not None:
        return seen.trouble.message
    if seen.brake.open:
        return _brake_sentence(seen)
    verdict = capacity_available(seen)
    return verdict[2] if verdict[0] is Truth.FALSE else ""


def ready(seen: Snapshot) -> Verdict:
    """The summary: can this pool do its work?"""
    if seen.deleting:
        return Truth.FALSE, PoolReason.DELETING, remains(seen)
    if seen.missing:
        return Truth.FALSE, PoolReason.KUBEVIRT_MISSING, seen.missing
    if seen.trouble is not None:
        return Truth.FALSE, seen.trouble.reason, seen.trouble.message
    if seen.brake.open:
        return Truth.FALSE, PoolReason.BRAKE_OPEN, _brake_sentence(seen)
    if seen.quota:
        return Truth.FALSE, PoolReason.QUOTA_REFUSED, seen.quota
    if seen.denied:
        return Truth.FALSE, PoolReason.API_REFUSED, f"hand-overs are refused: {seen.denied}"
    return Truth.TRUE, PoolReason.SERVING, "the pool serves claims"


def warm(seen: Snapshot) -> Verdict:
    """False only when VMs have been missing for longer than twice their usual boot time, or the pool goes."""
    if seen.deleting:
        return Truth.FALSE, PoolReason.DELETING, "being deleted: no VM is made or handed over any more"
    if seen.ready >= seen.target:
        return Truth.TRUE, PoolReason.TARGET_REACHED, f"{seen.ready} of {seen.target} VMs are warm"
    boot = seen.lead_time[1]
    patience = LATE_FACTOR * boot if boot is not None else FIRST_PATIENCE
    if seen.pool.spec.suspend:
        return Truth.FALSE, PoolReason.SHORT, f"{max(0, seen.ready)} of {seen.target} VMs are warm: suspended"
    late = seen.short_since is not None and seen.now - seen.short_since > patience
    never = seen.trouble is not None or seen.brake.open or bool(seen.missing)
    if late or never:
        return Truth.FALSE, PoolReason.SHORT, f"{max(0, seen.ready)} of {seen.target} VMs are warm"
    return Truth.TRUE, PoolReason.FILLING, "missing VMs are being made"


def progressing(seen: Snapshot) -> Verdict:
    if seen.deleting:
        return Truth.TRUE, PoolReason.DELETING, remains(seen)
    if seen.pool.spec.suspend:
        return Truth.FALSE, PoolReason.SUSPENDED, "spec.suspend is true: nothing is made or removed"
    if seen.missing:
        return Truth.FALSE, PoolReason.KUBEVIRT_MISSING, seen.missing
    missing = wanted(seen)
    if missing > 0 and not seen.in_flight and seen.total >= seen.pool.spec.limits.max_replicas:
        return Truth.FALSE, *capacity_available(seen)[1:]
    why = rollout.stalled(seen)
    if seen.outdated and not why:
        return Truth.TRUE, PoolReason.ROLLING_OUT, f"being replaced: {_outdated(seen)}"
    if missing > 0 or seen.in_flight > 0:
        return Truth.TRUE, PoolReason.FILLING, "VMs are being made"
    if surplus(seen):
        return Truth.TRUE, PoolReason.SHRINKING, "surplus VMs are being removed"
    if seen.outdated:
        return Truth.FALSE, PoolReason.ROLLOUT_STALLED, f"kept: {_outdated(seen)}: {why}"
    return Truth.FALSE, PoolReason.TARGET_REACHED, "as many VMs are there as are wanted"


def _outdated(seen: Snapshot) -> str:
    stale = sum(seen.is_stale(each) for each in seen.outdated)
    kinds = {"of an older template": stale, "older than maxWarmAge": len(seen.outdated) - stale}
    found = [f"{count} VM{'s' if count > 1 else ''} {words}" for words, count in kinds.items() if count]
    return " and ".join(found)


def rolled_out(seen: Snapshot, before: Json) -> Verdict:
    """Whether a template's change is through: no unclaimed VM is of an older one, and enough of it worked.

    Under load a pool may never be full, so those count that were warm and are claimed by now. Once true for a
    revision it stays so while the pool refills: that is no roll-out any more.
    """
    if seen.deleting:
        return Truth.FALSE, PoolReason.DELETING, "being deleted: no VM is replaced any more"
    found = seen.revisions
    here = f"{found.updated} of {found.updated + found.stale} unclaimed VMs are of revision {seen.revision}"
    if found.stale == 0:
        worked = max(0, seen.ready, seen.proven)
        if worked >= seen.target or _was_rolled_out(seen, before):
            return Truth.TRUE, PoolReason.UP_TO_DATE, f"every unclaimed VM is of revision {seen.revision}"
        why = rollout.halted(seen)
        reason = PoolReason.ROLLOUT_STALLED if why else PoolReason.ROLLING_OUT
        warm_ones = f"{worked} of {seen.target} VMs of revision {seen.revision} have become warm"
        return Truth.FALSE, reason, f"{warm_ones}: {why}" if why else warm_ones
    if seen.pool.spec.update_strategy.type is UpdateType.REPLENISH:
        rest = "the others stay until they are claimed (updateStrategy.type is Replenish)"
        return Truth.FALSE, PoolReason.REPLENISHING, f"{here}; {rest}"
    if why := rollout.stalled(seen):
        return Truth.FALSE, PoolReason.ROLLOUT_STALLED, f"{here}; the others are kept: {why}"
    return Truth.FALSE, PoolReason.ROLLING_OUT, here


def _was_rolled_out(seen: Snapshot, before: Json) -> bool:
    same = before.get("currentRevision") in {seen.revision, *seen.standard.revisions}
    known = _known(before, PoolCondition.ROLLED_OUT)
    return same and known is not None and known.get("status") == Truth.TRUE


def degraded(seen: Snapshot) -> Verdict:
    if seen.missing:
        return Truth.TRUE, PoolReason.KUBEVIRT_MISSING, seen.missing
    if seen.brake.open:
        return Truth.TRUE, PoolReason.BRAKE_OPEN, _brake_sentence(seen)
    if seen.denied:
        return Truth.TRUE, PoolReason.API_REFUSED, f"hand-overs are refused: {seen.denied}"
    if seen.removal_denied:
        return Truth.TRUE, PoolReason.API_REFUSED, f"removals are refused: {seen.removal_denied}"
    if seen.stuck:
        return Truth.TRUE, PoolReason.VMS_STUCK, stuck(seen)
    if seen.brake.failures:
        return (
            Truth.TRUE,
            PoolReason.VMS_FAILED,
            f"{seen.brake.failures} VMs failed in a row: {seen.last_failure}",
        )
    if why := _too_old_once_warm(seen):
        return Truth.TRUE, PoolReason.WARM_AGE_TOO_SHORT, why
    return Truth.FALSE, PoolReason.AS_EXPECTED, "nothing needs a person's eye"


def _too_old_once_warm(seen: Snapshot) -> str:
    """Whether VMs are made and thrown away for ever, and what to write; empty when they are not."""
    spec = seen.pool.spec
    boot = math.ceil((seen.lead_time[0] or 0.0) + spec.readiness.min_ready_seconds)
    if seen.standard.soonest > boot:
        return ""
    return (
        f"maxWarmAge is {spec.max_warm_age} and half of the VMs need {text(boot)} or longer to become warm: "
        "they are too old, and replaced, as soon as they are. "
        f"Write one that is much longer, like {text(AGE_IN_BOOTS * boot)}, or leave it out"
    )


def capacity_available(seen: Snapshot) -> Verdict:
    limits = seen.pool.spec.limits
    if seen.quota:
        return Truth.FALSE, PoolReason.QUOTA_REFUSED, seen.quota
    if seen.unschedulable:
        return (
            Truth.FALSE,
            PoolReason.UNSCHEDULABLE,
            f"{seen.unschedulable} VMs wait for a node with room: add nodes, or lower warm.replicas",
        )
    if wanted(seen) > 0 and seen.total >= limits.max_replicas:
        reached = f"limits.maxReplicas ({limits.max_replicas}) is reached{_ending(seen)}"
        return Truth.FALSE, PoolReason.MAX_REPLICAS_REACHED, f"{reached}: raise it, or release claims"
    return Truth.TRUE, PoolReason.BELOW_LIMITS, "another VM may be made"


def _ending(seen: Snapshot) -> str:
    ending = seen.counts[State.TERMINATING]
    return f", with {ending} VMs that are being deleted" if ending else ""


def stuck(seen: Snapshot) -> str:
    """Which VMs are being deleted and do not go, and what holds them."""
    holders = sorted({held for each in seen.stuck for held in each.vm.metadata.finalizers})
    return (
        f"{len(seen.stuck)} VMs are being deleted and do not go: {_named(seen.stuck)}; they count until "
        f"their finalizers ({', '.join(holders) or 'none'}) are taken off (does KubeVirt run?)"
    )


def _named(instances: Sequence[Instance]) -> str:
    """The first few by name."""
    found = sorted(each.name for each in instances)
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(found[:NAMED]) + more


def remains(seen: Snapshot) -> str:
    """What a pool under deletion still has, and what stays after it."""
    unclaimed = sum(seen.counts[s] for s in (*_UNCLAIMED, State.FAILED, State.DRAINING))
    claimed = seen.counts[State.CLAIMED]
    stay = f"; {claimed} claimed VMs stay with their claims until those are deleted" if claimed else ""
    waits = f"; {seen.pending} claims go on waiting for a pool of this name" if seen.pending else ""
    going = f"; {len(seen.going)} of its VMs are on their way out: {_named(seen.going)}" if seen.going else ""
    held = f"; {stuck(seen)}" if seen.stuck else ""
    refused = f"; removals are refused: {seen.removal_denied}" if seen.removal_denied else ""
    return f"being deleted: {unclaimed} unclaimed VMs are to go first{refused}{going}{held}{stay}{waits}"


def stopped(before: Json, namespace: str, name: str, now: float) -> Json:
    """What a pool says after a clean stop of the controller: nobody watches it, and what that means.

    The finalizer may be taken off by hand then: it keeps the pool until hand-overs under way are through, and
    nobody hands over. Kubernetes removes the VMs that the pool still owns; claimed ones are the claims'.
    """
    this = f"virtualmachinepool/{name} --namespace {namespace}"
    message = (
        "no controller runs: no VM is made, handed over or removed until one does. To delete this pool "
        f"without one: `kubectl delete {this} --wait=false`, then `kubectl patch {this} --type=merge "
        """--patch='{"metadata":{"finalizers":null}}'`; its unclaimed VMs go with it, claimed ones stay."""
    )
    ready = {
        "type": PoolCondition.READY.value,
        "status": Truth.UNKNOWN.value,
        "reason": PoolReason.CONTROLLER_STOPPED.value,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }
    others = [each for each in before.get("conditions", []) if each["type"] != PoolCondition.READY]
    return {**before, "conditions": [ready, *others]}


def _brake_sentence(seen: Snapshot) -> str:
    return (
        f"{seen.brake.failures} VMs failed in a row, so one at a time is tried with growing pauses; "
        f"the last: {seen.last_failure or 'see the events of the VMs'}"
    )


def _demand(seen: Snapshot) -> Json:
    found: Json = {"pending": seen.pending}
    if seen.oldest_pending is not None:
        found["oldestPendingSince"] = timestamp(seen.oldest_pending)
    lead = {k: round(v, 2) for k, v in zip(("p50", "p95"), seen.lead_time, strict=True) if v is not None}
    if lead:
        found["leadTimeSeconds"] = lead
    return found | telling.figures(seen.told)


def _brake(seen: Snapshot) -> Json:
    found: Json = {"failures": seen.brake.failures}
    if seen.brake.open_since is not None:
        found["openSince"] = timestamp(seen.brake.open_since)
    if seen.brake.next_probe is not None:
        found["nextProbeTime"] = timestamp(seen.brake.next_probe)
    return found


def _known(before: Json, kind: PoolCondition) -> Json | None:
    return next((each for each in before.get("conditions", []) if each.get("type") == kind), None)


def _condition(kind: PoolCondition, verdict: Verdict, seen: Snapshot, before: Json) -> Json:
    truth, reason, message = verdict
    known = _known(before, kind)
    kept = known["lastTransitionTime"] if known is not None and known.get("status") == truth else None
    return {
        "type": kind.value,
        "status": truth.value,
        "reason": str(reason),
        "message": message[:1024],
        "observedGeneration": seen.pool.metadata.generation,
        "lastTransitionTime": kept or timestamp(seen.now),
    }
