"""A question answered: every fixed number of units, what is set today, and the engine, over the same claims.

For a fixed number all comes down to sorting: one unit is ordered when a claim comes, claims are served first
come, first served, so claim number i takes the i-th unit that becomes ready.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from capacity.counts import replay_servers
from cli.backtest import engine
from cli.backtest.ask import Question
from cli.backtest.buffer import Outcome, Targets, replay
from cli.backtest.study import HOURS_A_WEEK, Lead, Point, Setting, Study
from cli.backtest.words import at as time_of

Floats = NDArray[np.float64]

_HOUR = 3600.0
_DAY = 86_400.0
_EACH_UP_TO = 100
"""Every number of units up to here is on the curve; beyond, a hundred or so more."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What becomes of the claims with any fixed number of units. `ready`: when each order is, sorted."""

    arrivals: Floats
    ready: Floats
    since: float
    until: float
    wait: float

    def missed(self, units: int) -> NDArray[np.bool_]:
        """Which claims waited for longer than they should."""
        late = np.zeros(self.arrivals.size, dtype=np.bool_)
        if units < late.size:
            late[units:] = self.ready[: late.size - units] > self.arrivals[units:] + self.wait
        return late

    def idle_hours(self, units: int) -> float:
        """Unit-hours that stood ready in all: until a claim took them, or until the end."""
        supply = np.concatenate([np.full(units, self.since), self.ready])
        taken, left = supply[: self.arrivals.size], supply[self.arrivals.size :]
        idle = np.maximum(0.0, self.arrivals - taken).sum() + np.maximum(0.0, self.until - left).sum()
        return float(idle) / _HOUR

    def smallest(self, level: float) -> int:
        """The smallest number of units with which this share of the claims is in time."""
        most, low, high = (1 - level) * self.arrivals.size + 1e-9, 0, self.arrivals.size
        while low < high:
            middle = (low + high) // 2
            if self.missed(middle).sum() <= most:
                high = middle
            else:
                low = middle + 1
        return low


def study(question: Question, zone: str) -> Study:
    """All that is told of it."""
    arrivals, days = question.arrivals, _days(question)
    keys = np.arange(arrivals.size, dtype=np.uint64)
    servers = question.limits.max_concurrent_creations
    ready = np.sort(replay_servers(arrivals, question.boots.times.draw(keys), servers))
    fixed = Fixed(arrivals, ready, question.since, question.until, question.wanted.wait)
    week = Week(question.since, question.until, zone)

    def of_fixed(units: int) -> Setting:
        missed = fixed.missed(units)
        return week.setting(
            arrivals, missed, fixed.idle_hours(units) / days, Targets((question.since,), (units,))
        )

    def of_targets(targets: Targets) -> Setting:
        if len(targets.units) == 1:
            return of_fixed(targets.units[0])
        found: Outcome = replay(arrivals, question.boots.times, targets, question.until, servers)
        missed = found.waits > question.wanted.wait
        return week.setting(arrivals, missed, found.idle_hours / days, targets)

    least = fixed.smallest(question.wanted.level)
    plan = engine.planned(question)
    return Study(
        of=question.of,
        since=question.since,
        until=question.until,
        zone=zone,
        level=question.wanted.level,
        wait=question.wanted.wait,
        claims=int(arrivals.size),
        lead=Lead(question.boots.p50, question.boots.p95, question.boots.where),
        curve=tuple(_curve(fixed, days, [least, *_around(plan)])),
        arrivals=week.hourly(arrivals),
        least=of_fixed(least),
        today=None if plan.today is None else of_targets(plan.today),
        engine=None if plan.engine is None else of_targets(plan.engine),
        notes=(*question.notes, *plan.notes),
    )


def _days(question: Question) -> float:
    return max(question.until - question.since, 1.0) / _DAY


def _around(plan: engine.Plan) -> list[int]:
    """The fixed numbers that are set, which the curve must reach."""
    return [] if plan.today is None else list(plan.today.units)


def _curve(fixed: Fixed, days: float, marked: list[int]) -> Iterator[Point]:
    """Each number of units up to one that misses nothing, and those that are marked; thinned if many."""
    most = max(fixed.smallest(1.0), *marked) + 1
    numbers = {*range(min(most, _EACH_UP_TO) + 1), *marked}
    if most > _EACH_UP_TO:
        numbers.update(np.linspace(_EACH_UP_TO, most, _EACH_UP_TO).round().astype(int).tolist())
    for units in sorted(numbers):
        misses = int(fixed.missed(units).sum())
        ratio = 1 - misses / fixed.arrivals.size
        yield Point(units, ratio, fixed.idle_hours(units) / days, misses)


class Week:
    """The hours of the week of one zone, over a stretch of time."""

    def __init__(self, since: float, until: float, zone: str) -> None:
        self._first = math.floor(since / _HOUR)
        hours = np.arange(self._first, math.floor(until / _HOUR) + 1)
        self._slots = np.array([_slot(hour * _HOUR, zone) for hour in hours.tolist()])
        seen = np.minimum(until, (hours + 1) * _HOUR) - np.maximum(since, hours * _HOUR)
        self._seen = self._summed(seen / _HOUR)
        self._since, self._until = since, until

    def _summed(self, of_hours: NDArray[Any]) -> Floats:
        summed = np.bincount(self._slots, weights=of_hours, minlength=HOURS_A_WEEK)
        return summed.astype(np.float64)

    def _counted(self, times: Floats) -> Floats:
        """How many of these times are in each hour of the week."""
        places = (times // _HOUR).astype(np.int64) - self._first
        return self._summed(np.bincount(places, minlength=len(self._slots)))

    def hourly(self, arrivals: Floats) -> tuple[float, ...]:
        """Claims an hour in each hour of the week; none where there was no such hour."""
        return tuple((self._counted(arrivals) / np.maximum(self._seen, 1e-9) * (self._seen > 0)).tolist())

    def setting(
        self, arrivals: Floats, missed: NDArray[np.bool_], idle_hours: float, targets: Targets
    ) -> Setting:
        """What came of a setting, by hour of the week."""
        misses = int(missed.sum())
        return Setting(
            hit_ratio=1 - misses / max(1, arrivals.size),
            idle_hours=idle_hours,
            misses=misses,
            units_by_hour=self._mean(targets),
            misses_by_hour=tuple(self._counted(arrivals[missed]).astype(int).tolist()),
            fewest=min(targets.units),
            most=max(targets.units),
        )

    def _mean(self, targets: Targets) -> tuple[float, ...]:
        """The mean of the targets in each hour of the week; the overall mean where there was none."""
        edges = (self._first + np.arange(len(self._slots) + 1)) * _HOUR
        cuts = np.unique(np.clip(np.concatenate([edges, targets.at]), self._since, self._until))
        spans = np.diff(cuts)
        units = np.array(targets.units)[np.searchsorted(targets.at, cuts[:-1], side="right") - 1]
        places = (cuts[:-1] // _HOUR).astype(np.int64) - self._first
        total = self._summed(np.bincount(places, weights=units * spans, minlength=len(self._slots)))
        seen = self._summed(np.bincount(places, weights=spans, minlength=len(self._slots)))
        overall = total.sum() / seen.sum() if seen.sum() else float(targets.units[0])
        return tuple(np.where(seen > 0, total / np.maximum(seen, 1e-9), overall).tolist())


def _slot(moment: float, zone: str) -> int:
    """The hour of the week in this zone, from Monday at midnight."""
    local = time_of(moment).astimezone(ZoneInfo(zone))
    return local.weekday() * 24 + local.hour
