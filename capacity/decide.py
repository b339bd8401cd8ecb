"""How many units to keep, and why: the policies of a spec, composed.

target = max(replicas, min(max, budget, max(percent, open schedules, serviceLevel in mode Apply, webhook))),
the innermost of which rises at once and falls slowly. Pure but for the stabilizer, which is told what was
asked for. It must never know what a unit is.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

from capacity import policies
from capacity.budget import Piece, allowance
from capacity.counts import time_to_fill
from capacity.curve import FEWEST, Curve
from capacity.decision import Advice, Decision, Limits, Policy, Stock, WebhookAnswer
from capacity.history import Recent
from capacity.idle import IdleSpent, day_of
from capacity.policies import Ask
from capacity.schedules import slots, units_at
from capacity.sketch import LeadTimes
from capacity.stabilize import Stabilizer
from crds.conditions import PoolReason
from crds.durations import seconds, text
from crds.ratios import fraction
from crds.warm import Budget, LevelMode, WarmCapacity

UNKNOWN_BOOT: Final = 60.0
"""Seconds that a unit is taken to need before any was measured."""
_UNKNOWN: Final = LeadTimes.of(UNKNOWN_BOOT)
_HOUR: Final = 3600.0


def decide(
    spec: WarmCapacity,
    stock: Stock,
    *,
    now: float,
    stabilizer: Stabilizer,
    limits: Limits,
    curve: Curve | None = None,
    recent: Recent | None = None,
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
        curve: what was measured of demand and lead times; None: nothing yet.
        recent: demand of the last minutes, `History.recent(now)`.
        webhook: the webhook's last answer; None: it was not asked yet.
        spent: idle unit-hours of the day; None: nothing is known of them, as if none had stood idle.
    """
    if not spec.sizes_itself:
        stabilizer.forget()
        if spec.budget is None:
            return floor_alone(spec.replicas)
    asks = _asks(spec, stock, now, limits, curve, recent, webhook)
    applied = [ask.policy for ask in asks if ask.policy.applied]
    winner = max(applied, key=lambda policy: policy.wants, default=_NOTHING)
    lead = curve.lead.p95 if curve is not None else None
    window = max(seconds(spec.scale_down.stabilization), lead or 0.0)
    held = stabilizer.highest(winner.wants, now, window) if applied else 0
    units, decided_by = held, winner.name
    if held > winner.wants:
        decided_by = "scaleDown"
        asks.append(_slowly(held, window, stabilizer.falls_at(window), by_lead=window == lead))
    for bound in _bounds(spec, units, asks, now, curve, spent):
        asks.append(bound)
        if units > bound.policy.wants:
            units, decided_by = bound.policy.wants, bound.policy.name
    if units <= spec.replicas:
        units, decided_by = spec.replicas, "replicas"
    warnings = [advice for ask in asks for advice in ask.warnings]
    warnings += policies.too_many(units, decided_by, limits)
    if curve is not None and (applied or spec.service_level is not None):
        # First: where this holds no number of units would do, whatever the others say.
        warnings = [*policies.refill_bound(curve, limits), *warnings]
    changes = [ask.changes_at for ask in asks if ask.changes_at is not None and ask.changes_at > now]
    return Decision(
        target=units,
        decided_by=decided_by,
        policies=(_floor(spec.replicas), *(ask.policy for ask in asks)),
        warnings=tuple(warnings),
        next_change_at=min(changes, default=None),
    )


_NOTHING: Final = Policy("replicas", 0, "")


@lru_cache(maxsize=1024)
def floor_alone(replicas: int) -> Decision:
    """The decision where nothing but `replicas` is asked for."""
    return Decision(replicas, "replicas", (_floor(replicas),))


def _floor(replicas: int) -> Policy:
    return Policy("replicas", replicas, f"spec.warm.replicas is {replicas}")


def _asks(
    spec: WarmCapacity,
    stock: Stock,
    now: float,
    limits: Limits,
    curve: Curve | None,
    recent: Recent | None,
    webhook: WebhookAnswer | None,
) -> list[Ask]:
    asks = []
    if spec.percent is not None:
        asks.append(policies.percent(spec.percent, stock))
    if spec.schedules:
        leads = curve.leads if curve is not None and curve.leads.count else _UNKNOWN

        @cache  # many schedules ask for the same number
        def fill(units: int) -> float:
            return time_to_fill(units, leads, limits.servers)

        asks += policies.schedules(slots(spec.schedules, now, floor=spec.replicas, fill=fill))
    if spec.service_level is not None:
        most = {"warm.max": spec.max, "limits.maxReplicas": limits.most}
        asks.append(policies.service_level(spec.service_level, curve, recent, now, most))
    if spec.webhook is not None:
        asks.append(policies.webhook(webhook, now))
    return asks


def _bounds(
    spec: WarmCapacity,
    units: int,
    asks: Sequence[Ask],
    now: float,
    curve: Curve | None,
    spent: IdleSpent | None,
) -> Iterator[Ask]:
    """What holds down the `units` that are asked for: the budget is asked of what the maximum leaves."""
    if spec.max is not None:
        yield Ask(Policy("max", spec.max, f"spec.warm.max is {spec.max}"))
        units = min(units, spec.max)
    if spec.budget is not None:
        yield _budget(spec, spec.budget, units, asks, now, curve, spent)


def _slowly(held: int, window: float, falls_at: float | None, *, by_lead: bool) -> Ask:
    why = "19 of 20 are ready within that time" if by_lead else "scaleDown.stabilization"
    because = f"{held} was asked for less than {text(window)} ago ({why})"
    return Ask(Policy("scaleDown", held, because), changes_at=falls_at)


def _budget(
    spec: WarmCapacity,
    budget: Budget,
    units: int,
    asks: Sequence[Ask],
    now: float,
    curve: Curve | None,
    spent: IdleSpent | None,
) -> Ask:
    """What the budget leaves for this hour; reckoned from the hour's start, so that it does not jitter."""
    begin, end = day_of(now, budget.time_zone)
    hour = begin + (now - begin) // _HOUR * _HOUR
    if curve is not None and curve.claims < FEWEST:
        curve = None
    steady = max([ask.policy.wants for ask in asks if ask.policy.name in {"percent", "webhook"}], default=0)
    rests_on = (hour, steady, spec, curve and curve.built_at)
    if spent is not None and spent.remembered is not None and spent.remembered[0] == rests_on:
        later = spent.remembered[1]
    else:
        later = _later(spec, hour + _HOUR, end, steady, curve)
        if spent is not None:
            spent.remembered = (rests_on, later)
    used = spent.today(now, budget.time_zone, until=hour) if spent is not None else 0.0
    demand = curve.demand(now) if curve is not None else None
    first = Piece(min(_HOUR, end - hour) / _HOUR, units, demand)
    left = budget.max_idle_hours_per_day - used
    bought = allowance([first, *later], left=left, floor=spec.replicas)
    return _worded(spec, budget, max(units, spec.replicas), bought, min(hour + _HOUR, end))


def _later(spec: WarmCapacity, start: float, end: float, steady: int, curve: Curve | None) -> list[Piece]:
    """What the hours from `start` to the day's `end` will ask for, as far as can be told.

    `steady` is what share and webhook ask for now: nobody knows better of them.
    """
    level = spec.service_level
    pieces = []
    for ahead in range(math.ceil((end - start) / _HOUR)):
        at = start + ahead * _HOUR
        wants = max(steady, units_at(spec.schedules, at))
        if curve is not None and level is not None and level.mode is LevelMode.APPLY:
            wants = max(wants, curve.estimate(fraction(level.target), at).units)
        bounded = wants if spec.max is None else min(wants, spec.max)
        demand = curve.demand(at) if curve is not None else None
        pieces.append(Piece(min(_HOUR, end - at) / _HOUR, bounded, demand))
    return pieces


def _worded(spec: WarmCapacity, budget: Budget, asked: int, bought: int, ends: float) -> Ask:
    hours = f"{budget.max_idle_hours_per_day} idle hours a day"
    if bought < asked:
        because = f"what is left of {hours} leaves {bought} for now, of {asked}"
    elif spec.replicas * 24 > budget.max_idle_hours_per_day:
        because = f"warm.replicas is kept whatever it costs, and {hours} do not pay for it all day"
    else:
        because = f"{hours} are enough for all that is asked for now"
    warnings = []
    around_the_clock = spec.replicas * 24
    if around_the_clock > budget.max_idle_hours_per_day:
        warnings.append(
            f"warm.replicas alone may cost {around_the_clock} idle hours a day and is kept all the same: "
            f"raise budget.maxIdleHoursPerDay above {budget.max_idle_hours_per_day}, or lower warm.replicas"
        )
    if bought < asked:
        warnings.append(f"the budget cuts what is asked for: {because}; raise budget.maxIdleHoursPerDay")
    advice = tuple(Advice(PoolReason.BUDGET_BITES, each) for each in warnings)
    return Ask(Policy("budget", bought, because), advice, ends)
