"""What people do without an engine, each at its best: its one number is found on a part of the training.

All are given what a person would be: the mean lead time, the claims of the last minutes, the units in use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.capacity import buffer
from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.traces import DAY, HOUR, Demand, Floats, Ints, Lead

_SAMPLE = 30.0  # seconds between two looks at what is in use
_SYNC = 15.0  # the HorizontalPodAutoscaler's sync period,
_TOLERANCE = 0.1  # its tolerance,
_DOWN = 300.0  # its stabilization window,
_RATE = 300.0  # and the window of the rate that it is fed with, seconds
_TUNED_DAYS = 7
_STEPS = 160
_FINEST = 1.05

# The order-up-to levels between two times, for one number that a person may set.
Rule = Callable[[Demand, float, float, float], Levels]


@dataclass(frozen=True, slots=True)
class Tuned:
    """The smallest number that reached the level on the tuning part; None: none did."""

    number: float | None


def tune(rule: Rule, demand: Demand, level: float, base: float) -> Tuned:
    """Bisect `base` times powers of 1.05 on the last week of the training part."""
    end = demand.judged_from
    start = max(demand.start + DAY / 4, end - _TUNED_DAYS * DAY)
    part = slice(*np.searchsorted(demand.arrivals, [start, end]))

    def reached(step: int) -> bool:
        levels = rule(demand, start, end, base * _FINEST**step)
        found = buffer.run(demand.arrivals[part], demand.leads[part], levels, end, demand.leads)
        return found.share() >= level

    low, high = 0, _STEPS
    if not reached(high):
        return Tuned(None)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return Tuned(base * _FINEST**low)


def rate_times_boot(demand: Demand, lead: Lead) -> Levels:
    """Mean rate of each hour of the week in the training part, times the mean boot time, rounded up."""
    hours = np.floor((demand.arrivals[: demand.first_judged] - demand.start) / HOUR).astype(np.int64)
    trained = np.bincount(hours, minlength=round((demand.judged_from - demand.start) / HOUR))
    slot = np.arange(trained.size) % 168
    seen = np.bincount(slot, minlength=168)
    mean = np.bincount(slot, trained, minlength=168) / np.maximum(seen, 1)
    mean[seen == 0] = trained.mean()
    first = round((demand.judged_from - demand.start) / HOUR)
    count = round((demand.end - demand.judged_from) / HOUR)
    units = np.ceil(mean * lead.mean / HOUR).astype(np.int64)[(first + np.arange(count)) % 168]
    return Levels.sampled(demand.judged_from + np.arange(count, dtype=np.float64) * HOUR, units)


def percent_of_in_use(demand: Demand, start: float, end: float, share: float) -> Levels:
    """`percent` with `replicas: 1`."""
    at = np.arange(start, end, _SAMPLE)
    begun = np.searchsorted(demand.arrivals, at)
    over = np.searchsorted(np.sort(demand.arrivals + demand.holds), at)
    return Levels.sampled(at, np.maximum(1, np.ceil((begun - over) * share - 1e-9)).astype(np.int64))


def horizontal_autoscaler(demand: Demand, start: float, end: float, units_per_rate: float) -> Levels:
    """A HorizontalPodAutoscaler on claims a second (External, AverageValue), minReplicas 1.

    `units_per_rate`: units for each claim a second, that is 1 / averageValue.
    """
    at = np.arange(start, end, _SYNC)
    rates = (np.searchsorted(demand.arrivals, at) - np.searchsorted(demand.arrivals, at - _RATE)) / _RATE
    return Levels.sampled(at, _autoscaled(rates * units_per_rate))


def _autoscaled(usage: Floats) -> Ints:
    """Tolerance, scale-up limit (double, or 4 more) and the window over which the highest wish counts."""
    wishes: list[int] = []
    units = np.empty(usage.size, dtype=np.int64)
    now, window = 1, round(_DOWN / _SYNC)
    for index, used in enumerate(usage.tolist()):
        wish = now if abs(used / now - 1.0) <= _TOLERANCE else math.ceil(used)
        wishes.append(wish)
        if wish < now:
            wish = min(now, max(wishes[-window:]))
        now = max(1, min(wish, max(2 * now, now + 4)))
        units[index] = now
    return units
