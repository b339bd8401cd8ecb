"""How many units to keep, and why: the policies of a spec, composed.

target = max(replicas, min(max, budget, max(percent, open schedules, serviceLevel in mode Apply, webhook))),
the innermost of which rises at once and falls slowly. Pure but for the stabilizer, which is told what was
asked for. It must never know what a unit is.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from capacity import policies
from capacity.budget import Allowance, Piece, allowance
from capacity.decision import Advice, Decision, Limits, Policy, Stock, WebhookAnswer
from capacity.idle import IdleSpent, day_of
from capacity.policies import Ask
from capacity.schedules import slots, units_at
from capacity.stabilize import Stabilizer
from crds.conditions import PoolReason
from crds.durations import seconds
from crds.warm import Budget, WarmCapacity

UNKNOWN_BOOT: Final = 60.0
"""Seconds that a unit is taken to need before any was measured."""
_HOUR: Final = 3600.0


def decide(
    spec: WarmCapacity,
    stock: Stock,
    *,
    now: float,
    stabilizer: Stabilizer,
    limits: Limits,
    webhook: WebhookAnswer | None = None,
    spent: IdleSpent | None = None,
) -> Decision:
    """The target of this instant, who decided it, and what each policy asked for.

    Args:
        spec: spec.warm.
        stock: the units that there are.
        now: epoch seconds.
        stabilizer: of this pool; it is told what was asked for now.
        limits: what bounds the making of units.
        webhook: the webhook's last answer; None: it was not asked yet.
        spent: idle unit-hours of the day; None: nothing is known of them, as if none had stood idle.
    """
    if not spec.sizes_itself:
        stabilizer.forget()
        if spec.budget is None:
            return _floor_alone(spec.replicas)
    asks = _asks(spec, stock, now, limits, webhook)
    applied = [ask.policy for ask in asks if ask.policy.applied]
    winner = max(applied, key=lambda policy: policy.wants, default=_NOTHING)
    window = seconds(spec.scale_down.stabilization)
    held = stabilizer.highest(winner.wants, now, window) if applied else 0
    units, decided_by = held, winner.name
    if held > winner.wants:
        decided_by = "scaleDown"
        asks.append(_slowly(spec, held, stabilizer.falls_at(window)))
    if spec.max is not None:
        asks.append(Ask(Policy("max", spec.max, f"spec.warm.max is {spec.max}")))
        if units > spec.max:
            units, decided_by = spec.max, "max"
    if spec.budget is not None:
        bound = _budget(spec, spec.budget, units, asks, now, spent)
        asks.append(bound)
        if units > bound.policy.wants:
            units, decided_by = bound.policy.wants, "budget"
    if units <= spec.replicas:
        units, decided_by = spec.replicas, "replicas"
    changes = [ask.changes_at for ask in asks if ask.changes_at is not None and ask.changes_at > now]
    return Decision(
        target=units,
        decided_by=decided_by,
        policies=(_floor(spec.replicas), *(ask.policy for ask in asks)),
        warnings=tuple(advice for ask in asks for advice in ask.warnings),
        next_change_at=min(changes, default=None),
    )


_NOTHING: Final = Policy("replicas", 0, "")


@lru_cache(maxsize=1024)
def _floor_alone(replicas: int) -> Decision:
    return Decision(replicas, "replicas", (_floor(replicas),))


def _floor(replicas: int) -> Policy:
    return Policy("replicas", replicas, f"spec.warm.replicas is {replicas}")


def _asks(
    spec: WarmCapacity, stock: Stock, now: float, limits: Limits, webhook: WebhookAnswer | None
) -> list[Ask]:
    asks = []
    if spec.percent is not None:
        asks.append(policies.percent(spec.percent, stock))
    if spec.schedules:

        def fill(units: int) -> float:
            return UNKNOWN_BOOT * -(-units // limits.servers)

        asks += policies.schedules(slots(spec.schedules, now, floor=spec.replicas, fill=fill))
    if spec.webhook is not None:
        asks.append(policies.webhook(webhook, now))
    return asks


def _slowly(spec: WarmCapacity, held: int, falls_at: float | None) -> Ask:
    slowly = spec.scale_down.stabilization
    because = f"{held} was asked for less than {slowly} ago (scaleDown.stabilization)"
    return Ask(Policy("scaleDown", held, because), changes_at=falls_at)


def _budget(
    spec: WarmCapacity, budget: Budget, units: int, asks: Sequence[Ask], now: float, spent: IdleSpent | None
) -> Ask:
    """What the budget leaves for this hour; reckoned from the hour's start, so that it does not jitter."""
    begin, end = day_of(now, budget.time_zone)
    hour = begin + (now - begin) // _HOUR * _HOUR
    used = spent.today(now, budget.time_zone, until=hour) if spent is not None else 0.0
    steady = max([ask.policy.wants for ask in asks if ask.policy.name in {"percent", "webhook"}], default=0)

    def wants(at: float) -> int:
        asked = max(steady, units_at(spec.schedules, at))
        return asked if spec.max is None else min(asked, spec.max)

    pieces = [Piece(1.0, units)]
    start = hour + _HOUR
    while start < end:
        pieces.append(Piece(min(_HOUR, end - start) / _HOUR, wants(start)))
        start += _HOUR
    bought = allowance(pieces, left=budget.max_idle_hours_per_day - used, floor=spec.replicas)
    ends = min(hour + _HOUR, end)
    return _worded(spec, budget, max(units, spec.replicas), bought, ends)


def _worded(spec: WarmCapacity, budget: Budget, asked: int, bought: Allowance, ends: float) -> Ask:
    hours = f"{budget.max_idle_hours_per_day} idle hours a day"
    if bought.units < asked:
        because = f"what is left of {hours} leaves {bought.units} for now, of {asked}"
    else:
        because = f"{hours} are enough for all that is asked for now"
    warnings = []
    around_the_clock = spec.replicas * 24
    if around_the_clock > budget.max_idle_hours_per_day:
        warnings.append(
            f"warm.replicas alone may cost {around_the_clock} idle hours a day and is kept all the same: "
            f"raise budget.maxIdleHoursPerDay above {budget.max_idle_hours_per_day}, or lower warm.replicas"
        )
    if bought.units < asked:
        warnings.append(f"the budget cuts what is asked for: {because}; raise budget.maxIdleHoursPerDay")
    advice = tuple(Advice(PoolReason.BUDGET_BITES, each) for each in warnings)
    return Ask(Policy("budget", bought.units, because), advice, ends)
