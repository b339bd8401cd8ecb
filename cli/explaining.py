"""Why a pool has the size that it has, as facts and advice. Nothing is read or printed here.

Everything is taken from what the controller wrote: the sentences of its policies and conditions are passed on
as they are, and nothing that it decided is decided again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cli.pools import Recorded
from crds import durations
from crds.conditions import Condition, PoolCondition, PoolReason, Truth
from crds.pool import VirtualMachinePool
from crds.pool_status import InstanceCounts, PoolStatus
from crds.ratios import fraction
from crds.schema import written_time
from crds.warm import LevelMode, WarmPolicy, WarmStatus

Json = dict[str, Any]

_GOOD_WHEN_FALSE = {PoolCondition.DEGRADED, PoolCondition.REFERENCED_DATA_CHANGED}
_NEITHER = {PoolCondition.PROGRESSING}
LEVEL = "serviceLevel"
"""The policy whose advice may be taken by a change of its mode."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What could be changed: why, and the command that does it, if one does."""

    why: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is said of one pool."""

    name: str
    namespace: str
    pool: VirtualMachinePool
    recorded: Recorded

    @property
    def status(self) -> PoolStatus:
        """What the controller found; empty before it looked."""
        return self.pool.status or PoolStatus()

    @property
    def warm(self) -> WarmStatus:
        """The decision."""
        return self.status.warm or WarmStatus()

    @property
    def looked_at(self) -> bool:
        """Whether any controller ever decided for the pool."""
        return self.status.warm is not None

    @property
    def stock(self) -> InstanceCounts:
        """How many VMs there are of each kind."""
        return self.status.instances or InstanceCounts()

    @property
    def patch(self) -> str:
        """The beginning of a command that changes the pool."""
        return f"kubectl patch wp {self.name} -n {self.namespace} --type=merge -p"

    def counts(self, policy: WarmPolicy) -> bool:
        """Whether a policy has a say, or only advises."""
        return policy.applied is not False

    def decides(self, policy: WarmPolicy) -> bool:
        """Whether this policy set the target."""
        return policy.name == self.warm.decided_by

    def policy(self, name: str) -> WarmPolicy | None:
        """One policy by its name."""
        return next((each for each in self.warm.policies if each.name == name), None)


def headline(of: Explanation) -> str:
    """The answer in one sentence."""
    if not of.looked_at:
        return f"wp/{of.name} in namespace {of.namespace} has no size yet: no controller has looked at it."
    target = of.warm.target
    vms = "no VM" if target == 0 else "1 VM" if target == 1 else f"{target} VMs"
    by = f", because {of.warm.decided_by} says so" if of.warm.decided_by else ""
    return f"wp/{of.name} in namespace {of.namespace} aims at {vms} ready or booting{by}."


def troubles(of: Explanation) -> list[Condition]:
    """The conditions that stand as they should not."""
    return [each for each in of.status.conditions if _bad(each)]


def _bad(condition: Condition) -> bool:
    if condition.type in _NEITHER:
        return False
    return condition.status is not (Truth.FALSE if condition.type in _GOOD_WHEN_FALSE else Truth.TRUE)


def demand(of: Explanation) -> list[str]:
    """What is asked of the pool, in sentences; what was not measured is left out."""
    told, seen = [], of.status.demand
    if seen is None:
        return []
    if seen.claims_per_hour is not None:
        rate = (
            f"{seen.claims_per_hour:g} {'claim' if seen.claims_per_hour == 1 else 'claims'} an hour, lately"
        )
        hits = f"; {seen.hit_ratio} of the claims of the last seven days got a VM {_in_time(of)}"
        told.append(rate + (hits if seen.hit_ratio else ""))
    if seen.pending:
        since = (
            f", the first since {written_time(seen.oldest_pending_since)}"
            if seen.oldest_pending_since
            else ""
        )
        told.append(f"{seen.pending} {'claim waits' if seen.pending == 1 else 'claims wait'} for a VM{since}")
    lead = seen.lead_time_seconds
    if lead is not None and lead.p50 is not None and lead.p95 is not None:
        p50, p95 = durations.text(lead.p50), durations.text(lead.p95)
        told.append(f"a VM takes {p50} from its creation to warm in half of all cases, and {p95} in 19 of 20")
    return told


def _in_time(of: Explanation) -> str:
    level = of.pool.spec.warm.service_level
    patient = level is not None and durations.seconds(level.max_wait) > 0
    return f"within {level.max_wait}" if level is not None and patient else "at once"


def advice(of: Explanation) -> list[Advice]:
    """What to change, the most urgent first; each with the command that does it."""
    return [*_first(of), *_bounds(of), *_level(of), *_look(of)]


def _first(of: Explanation) -> Iterator[Advice]:
    if not of.looked_at:
        yield Advice("start a controller that looks after this namespace, or see why it does not")
    if of.pool.spec.suspend:
        yield Advice(
            "the pool is suspended: nothing is made or removed until it is not",
            f"""{of.patch} '{{"spec":{{"suspend":false}}}}'""",
        )
    for reason in dict.fromkeys(each.reason for each in troubles(of)):
        yield Advice(f"docs/troubleshooting.md says what to do about {reason}")


def _bounds(of: Explanation) -> Iterator[Advice]:
    """A bound that decides holds down what something else asks for."""
    bound = of.policy(of.warm.decided_by or "")
    wanting = max((each.wants for each in of.warm.policies if of.counts(each)), default=0)
    if bound is None or wanting <= of.warm.target:
        return
    if bound.name == "max":
        yield Advice(
            f"warm.max keeps the target at {of.warm.target}, where {wanting} are asked for: raise it",
            f"""{of.patch} '{{"spec":{{"warm":{{"max":{wanting}}}}}}}'""",
        )
    elif bound.name == "budget":
        yield Advice(
            f"warm.budget keeps the target at {of.warm.target}, where {wanting} are asked for: "
            "raise maxIdleHoursPerDay, or have a lower service level"
        )


def _level(of: Explanation) -> Iterator[Advice]:
    """What there is to be had from a service level, and from a floor that is in its way."""
    wanted, policy = of.pool.spec.warm.service_level, of.policy(LEVEL)
    if wanted is None:
        yield Advice(
            "name a service level, and the pool says how many VMs it takes; in mode Recommend, the default, "
            "nothing else changes",
            f"""{of.patch} '{{"spec":{{"warm":{{"serviceLevel":{{"target":"99%"}}}}}}}}'""",
        )
        return
    if policy is None:
        return
    apply = f"""{of.patch} '{{"spec":{{"warm":{{"serviceLevel":{{"mode":"Apply"}}}}}}}}'"""
    short = of.warm.target - policy.wants
    if any(each.reason == PoolReason.REFILL_BOUND for each in of.status.conditions):
        return  # no number of VMs would do
    if wanted.mode is LevelMode.RECOMMEND and short < 0:
        yield Advice(
            f"{wanted.target} needs {policy.wants} at this hour, {-short} more than the target: "
            "let the service level decide",
            apply,
        )
    elif short > 0 and of.warm.decided_by == "replicas" and policy.wants:  # 0: not known yet
        yield Advice(
            f"{wanted.target} needs only {policy.wants} at this hour: lower the floor warm.replicas"
            + ("" if wanted.mode is LevelMode.APPLY else ", and let the service level decide"),
            f"kubectl scale wp/{of.name} -n {of.namespace} --replicas={policy.wants}"
            + ("" if wanted.mode is LevelMode.APPLY else f" && {apply}"),
        )


def _look(of: Explanation) -> Iterator[Advice]:
    level = of.pool.spec.warm.service_level
    hits = of.status.demand.hit_ratio if of.status.demand else None
    if of.recorded.history is None:
        return
    why = "what other sizes would have done with the claims that came"
    if level is not None and hits is not None and fraction(hits) < fraction(level.target):
        missed = f"{hits} of the claims got a VM {_in_time(of)}, short of {level.target}"
        why = f"{missed}: see what it would have taken"
    yield Advice(why, f"kubectl bullpen backtest wp/{of.name} -n {of.namespace}")


def document(of: Explanation) -> Json:
    """All of it for programs; what is not known is absent."""
    stock = {name: number for name, number in of.stock.as_json().items() if number}
    pending = of.status.demand.pending if of.status.demand else 0
    found: Json = {
        "pool": of.name,
        "namespace": of.namespace,
        "says": headline(of),
        "target": of.warm.target if of.looked_at else None,
        "decidedBy": of.warm.decided_by,
        "policies": [
            {
                "name": each.name,
                "wants": each.wants,
                "because": each.because,
                "decides": of.decides(each),
                "applied": of.counts(each),
            }
            for each in of.warm.policies
        ],
        "stock": {"ready": of.warm.ready, "pending": pending, **stock},
        "demand": of.status.demand.as_json() if of.status.demand else None,
        "history": _history(of),
        "conditions": [each.as_json() for each in troubles(of)],
        "advice": [
            {"why": each.why} | ({"command": each.command} if each.command else {}) for each in advice(of)
        ],
    }
    return {key: value for key, value in found.items() if value is not None}


def _history(of: Explanation) -> Json:
    history = of.recorded.history
    if history is None:
        return {"missing": of.recorded.missing}
    claims = sum(quarter.arrived for quarter in history.quarters.values())
    found: Json = {"claims": claims, "since": written_time(datetime.fromtimestamp(history.since, UTC))}
    return found | ({"note": history.note} if history.note else {})
