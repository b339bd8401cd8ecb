"""A claim's status in each phase, as the API server will store it. Pure: observation in, JSON out.

It names only VMs that were handed over, holds times and never ages, and keeps a condition's transition time
while its status stays the same.
"""

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from controller.claims.objects import Claim
from controller.claims.patches import timestamp
from controller.machines.objects import (
    Condition,
    VirtualMachine,
    VirtualMachineInstance,
    addresses_of,
    condition_of,
)
from crds.conditions import ClaimCondition, ClaimReason, Truth
from crds.durations import seconds, text
from statemachines.base import advance
from statemachines.claim import MACHINE, State, Trigger

Json = dict[str, Any]
_ENDED = frozenset({"Failed", "Succeeded"})  # what KubeVirt calls a guest that died or shut itself down


@dataclass(frozen=True, slots=True)
class Terms:
    """What a bind records besides the VM: the pool, the times (epoch seconds of the API server's clock)."""

    pool: str
    pool_uid: str
    now: float
    waited: float
    warm: bool = True
    lifetime_default: float | None = None
    lifetime_max: float | None = None

    def at(self, now: float) -> "Terms":
        """The same terms, when the publication comes as late as this."""
        return replace(self, now=now, waited=self.waited + now - self.now) if now > self.now else self

    def lifetime(self, claim: Claim) -> float | None:
        """Seconds from the bind to the release: the claim's wish or the pool's default, within its bound."""
        return bounded_lifetime(claim, self.lifetime_default, self.lifetime_max)


def bounded_lifetime(claim: Claim, default: float | None, bound: float | None) -> float | None:
    wish = seconds(claim.spec.lifetime) if claim.spec.lifetime else default
    if wish is None:
        return bound
    return wish if bound is None else min(wish, bound)


def condition(
    claim: Claim, kind: ClaimCondition, truth: Truth, reason: ClaimReason, message: str, now: float
) -> Json:
    """One condition; its transition time is kept while its status stays what it was."""
    before = condition_of(claim.status.conditions, kind) if claim.status else None
    same = before is not None and before.status == truth and before.last_transition_time
    found: Json = {
        "type": kind.value,
        "status": truth.value,
        "reason": reason.value,
        "message": message[:1024],
        "lastTransitionTime": before.last_transition_time if before and same else timestamp(now),
    }
    if claim.metadata.generation:
        found["observedGeneration"] = claim.metadata.generation
    return found


def bound(claim: Claim, vm: VirtualMachine, vmi: VirtualMachineInstance | None, terms: Terms) -> Json:
    """Write 2: the publication of a hand-over."""
    phase = advance(MACHINE, State.PENDING, Trigger.BIND)
    lifetime = terms.lifetime(claim)
    name = vm.metadata.name
    result: Json = {
        "phase": phase.value,
        "pool": terms.pool,
        "poolUID": terms.pool_uid,
        "releasePolicy": "Delete",
        "virtualMachines": [virtual_machine(name, vm.metadata.uid, vmi, warm=terms.warm)],
        "boundAt": timestamp(terms.now),
        "waited": text(max(0.0, terms.waited)),
        "conditions": [
            condition(
                claim,
                ClaimCondition.BOUND,
                Truth.TRUE,
                ClaimReason.HANDED_OVER,
                f"VM {name} was handed over",
                terms.now,
            ),
            ready(claim, name, vm, vmi, terms.now, at_bind=True),
        ],
    }
    if lifetime is not None:
        result["expiresAt"] = timestamp(int(terms.now) + lifetime)
    return result


def virtual_machine(name: str, uid: str, vmi: VirtualMachineInstance | None, *, warm: bool) -> Json:
    found: Json = {"name": name, "uid": uid, "warm": warm}
    if vmi is not None:
        found["vmiUID"] = vmi.metadata.uid
        if vmi.status.node_name:
            found["node"] = vmi.status.node_name
        if addresses := addresses_of(vmi):
            found["addresses"] = [{"type": "InternalIP", "address": each} for each in addresses]
    return found


def ready(
    claim: Claim,
    name: str,
    vm: VirtualMachine | None,
    vmi: VirtualMachineInstance | None,
    now: float,
    *,
    at_bind: bool = False,
) -> Json:
    """Usable: the VM lives, its instance is ready and has an address."""

    def verdict(truth: Truth, reason: ClaimReason, message: str) -> Json:
        return condition(claim, ClaimCondition.READY, truth, reason, message, now)

    if vm is not None and vm.metadata.deletion_timestamp is not None:
        return verdict(Truth.FALSE, ClaimReason.NOT_READY, f"VM {name} is being deleted")
    if vmi is None:
        reason = ClaimReason.DEAD_ON_ARRIVAL if at_bind else ClaimReason.NOT_READY
        return verdict(Truth.FALSE, reason, f"VM {name} has no running instance")
    if not _runs(vmi):
        dead = at_bind and vmi.status.phase in _ENDED
        reason = ClaimReason.DEAD_ON_ARRIVAL if dead else ClaimReason.NOT_READY
        return verdict(Truth.FALSE, reason, f"VM {name}: its instance is not ready ({_why_not(vmi)})")
    addresses = addresses_of(vmi)
    if not addresses:
        return verdict(Truth.FALSE, ClaimReason.NO_ADDRESS, f"VM {name} has no address yet")
    return verdict(Truth.TRUE, ClaimReason.USABLE, f"VM {name} is ready at {addresses[0]}")


def _why_not(vmi: VirtualMachineInstance) -> str:
    found = condition_of(vmi.status.conditions, "Ready")
    said = found is not None and found.status != "True" and found.reason
    return f"{vmi.status.phase}, {said}" if said else vmi.status.phase


def _runs(vmi: VirtualMachineInstance) -> bool:
    if vmi.metadata.deletion_timestamp is not None or vmi.status.phase != "Running":
        return False
    found = condition_of(vmi.status.conditions, "Ready")
    return found is not None and found.status == "True"


def waiting(claim: Claim, reason: ClaimReason, message: str, now: float, place: Json | None) -> Json:
    """A claim that waits: why, and its place in the queue if it has one."""
    result: Json = {
        "phase": State.PENDING.value,
        "conditions": [
            condition(claim, ClaimCondition.BOUND, Truth.FALSE, reason, message, now),
            condition(claim, ClaimCondition.READY, Truth.FALSE, reason, message, now),
        ],
    }
    if place is not None:
        result["queue"] = place
    return result


def place(position: int, ready_at: float | None) -> Json:
    """`status.queue`; the estimated time is absent while nothing is known to estimate it from."""
    found: Json = {"position": position}
    if ready_at is not None:
        found["estimatedReadyTime"] = timestamp(ready_at)
    return found


def ended(claim: Claim, trigger: Trigger, reason: ClaimReason, message: str, now: float) -> Json:
    """A finished phase: what the status names stays, Ready is False with the same reason."""
    phase = advance(MACHINE, claim.phase, trigger)
    result = kept(claim)
    result.pop("queue", None)
    result["phase"] = phase.value
    summary = (
        ClaimReason.FAILED if phase is State.FAILED else reason
    )  # what exactly, the condition Bound says
    conditions = [condition(claim, ClaimCondition.READY, Truth.FALSE, summary, message, now)]
    if phase in MACHINE.finals:
        conditions.append(condition(claim, ClaimCondition.FINISHED, Truth.TRUE, summary, message, now))
    if not result.get("virtualMachines"):
        conditions.append(condition(claim, ClaimCondition.BOUND, Truth.FALSE, reason, message, now))
    result["conditions"] = merged(claim, conditions)
    return result


def refreshed(
    claim: Claim, vm: VirtualMachine | None, vmi: VirtualMachineInstance | None, now: float
) -> Json:
    """A Bound claim's status as the guest is now: Ready, addresses, Disrupted. What it names stays."""
    result = kept(claim)
    if claim.status is None or not claim.status.virtual_machines:
        return result
    named = claim.status.virtual_machines[0]
    conditions = [ready(claim, named.name, vm, vmi, now)]
    fresh = virtual_machine(named.name, named.uid, vmi, warm=named.warm)
    if vmi is None:
        fresh = {**result["virtualMachines"][0]}
    elif named.vmi_uid and vmi.metadata.uid != named.vmi_uid:
        message = f"the guest of VM {named.name} was restarted: what was in its memory is gone"
        conditions.append(
            condition(claim, ClaimCondition.DISRUPTED, Truth.TRUE, ClaimReason.GUEST_RESTARTED, message, now)
        )
    result["virtualMachines"] = [fresh]
    result["conditions"] = merged(claim, conditions)
    return result


def held_up(claim: Claim, vm: VirtualMachine, now: float) -> Json:
    """A Releasing claim's status when its VM does not go."""
    meta, result = vm.metadata, kept(claim)
    holders = ", ".join(meta.finalizers) or "none"
    message = (
        f"VM {meta.name} has been under deletion since {meta.deletion_timestamp} and does not go: "
        f"its finalizers are {holders}"
    )
    known = condition_of(claim.status.conditions, ClaimCondition.READY) if claim.status else None
    reason = ClaimReason(known.reason) if known else ClaimReason.LIFETIME_OVER
    ready = condition(claim, ClaimCondition.READY, Truth.FALSE, reason, message, now)
    result["conditions"] = merged(claim, [ready])
    return result


def unserved(claim: Claim, why: str, now: float) -> Json:
    """A Bound claim's status while nothing can be known of its VM."""
    result = kept(claim)
    ready = condition(claim, ClaimCondition.READY, Truth.FALSE, ClaimReason.KUBEVIRT_MISSING, why, now)
    result["conditions"] = merged(claim, [ready])
    return result


def with_expiry(claim: Claim, expires_at: float | None) -> Json:
    """A Bound claim's status after its lifetime was changed."""
    result = kept(claim)
    result.pop("expiresAt", None)
    if expires_at is not None:
        result["expiresAt"] = timestamp(expires_at)
    return result


def kept(claim: Claim) -> Json:
    """The status as it was seen. It holds every field of the schema, so writing it back loses nothing."""
    if claim.status is None:
        return {}
    found: Json = _pruned(msgspec.to_builtins(claim.status))
    return found


def merged(claim: Claim, fresh: list[Json]) -> list[Json]:
    """The conditions that were there with the fresh ones over them, in a stable order."""
    conditions = {each["type"]: each for each in kept(claim).get("conditions", [])}
    conditions.update({each["type"]: each for each in fresh})
    order = [kind.value for kind in ClaimCondition]
    return sorted(
        conditions.values(), key=lambda each: order.index(each["type"]) if each["type"] in order else 99
    )


def same(before: Json, after: Json) -> bool:
    """Whether a write would change anything but observedGeneration."""
    return _bare(before) == _bare(after)


def _bare(status: Json) -> Json:
    bare = [
        {key: value for key, value in each.items() if key != "observedGeneration"}
        for each in status.get("conditions", [])
    ]
    return {**status, "conditions": bare}


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(each) for key, each in value.items() if each not in (None, "", [], {})}
    if isinstance(value, list):
        return [_pruned(each) for each in value]
    return value


def finished_at(claim: Claim) -> str | None:
    """When a claim finished, as its condition says."""
    found: Condition | None = (
        condition_of(claim.status.conditions, ClaimCondition.FINISHED) if claim.status else None
    )
    return found.last_transition_time if found and found.status == "True" else None
