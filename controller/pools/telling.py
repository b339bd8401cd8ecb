"""What a pool's status says of how many VMs it aims at and why. Pure; no sentence of it ticks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capacity.decision import Advice, Decision, Policy
from crds.conditions import PoolReason, Truth
from crds.warm import WarmCapacity, WarmStatus

Json = dict[str, Any]
MOST_POLICIES = 32  # the definition's bound


@dataclass(frozen=True, slots=True)
class Told:
    """What is told at the moment, which may be a little older than what holds: rates and sentences rest.

    `claims_per_hour` and `hit_ratio` (0..1) are None while nothing is known of them.
    """

    decision: Decision
    claims_per_hour: float | None = None
    hit_ratio: float | None = None

    def shows(self, fresh: Decision) -> bool:
        """Whether it says the same but for numbers within sentences, which may wait."""
        return _shape(self.decision) == _shape(fresh)


def _shape(decision: Decision) -> tuple[object, ...]:
    policies = [(each.name, each.applied) for each in decision.policies]
    return decision.target, decision.decided_by, policies, [each.reason for each in decision.warnings]


def remembered(warm: WarmStatus) -> Decision:
    """The decision that a status tells of: before the first one of this leadership it still holds."""
    policies = tuple(
        Policy(each.name, each.wants, each.because, each.applied is not False) for each in warm.policies
    )
    return Decision(warm.target, warm.decided_by or "replicas", policies)


def warm(ready: int, told: Told) -> Json:
    """`status.warm`."""
    decision = told.decision
    return {
        "ready": max(0, ready),
        "target": decision.target,
        "decidedBy": decision.decided_by,
        "policies": [_policy(each) for each in decision.policies[:MOST_POLICIES]],
    }


def _policy(policy: Policy) -> Json:
    found: Json = {"name": policy.name, "wants": policy.wants, "because": policy.because[:1024]}
    return found if policy.applied else {**found, "applied": False}


def figures(told: Told) -> Json:
    """What `status.demand` says of demand; a ratio is cut, so that 100% means all of them."""
    found: Json = {}
    if told.claims_per_hour is not None:
        found["claimsPerHour"] = round(told.claims_per_hour, 2)
    if told.hit_ratio is not None:
        found["hitRatio"] = percent(told.hit_ratio)
    return found


def percent(share: float) -> str:
    """A share as people write it, cut to two digits: `99.2%`."""
    return f"{int(share * 10_000 + 1e-6) / 100:.2f}".rstrip("0").rstrip(".") + "%"


def policies_met(spec: WarmCapacity, told: Told) -> tuple[Truth, str, str] | None:
    """The verdict of PoliciesMet; None where spec.warm asks for no more than replicas."""
    warnings: Sequence[Advice] = told.decision.warnings
    if not spec.sizes_itself and spec.budget is None:
        return None
    if not warnings:
        return Truth.TRUE, PoolReason.AS_ASKED, "nothing keeps spec.warm from what it asks for"
    return Truth.FALSE, warnings[0].reason, "; ".join(dict.fromkeys(each.message for each in warnings))
