"""What a target would have done with the demand that was: claims served, units idle, misses by the hour.

It must never assume anything of demand: it replays orders, as `capacity/counts.py` does.
"""

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.counts import outstanding, replay_servers
from capacity.curve import Curve
from capacity.history import HOUR
from capacity.profile import slot_of
from capacity.sketch import uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOURS_A_WEEK: Final = 168
_SHORTEST: Final = 1.0  # seconds between two targets of a schedule


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets over time: `units[k]` from epoch second `at[k]` on; the buffer is full at `at[0]`."""

    at: Floats
    units: Ints

    @classmethod
    def constant(cls, start: float, units: int) -> "Targets":
        return cls(np.array([start]), np.array([units], dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Result:
    """`misses_by_hour`: claims that waited too long, by hour of the week from Monday 00:00 UTC.

    `idle_hours`: unit-hours ready and not taken. `hit_ratio`: share (0..1) of claims; 1 without claims.
    """

    claims: int
    hit_ratio: float
    idle_hours: float
    misses_by_hour: Ints


@dataclass(frozen=True, slots=True)
class Point:
    """One static target on the curve of hit ratio against idle unit-hours."""

    units: int
    hit_ratio: float
    idle_hours: float


def backtest(
    arrivals: ArrayLike,
    leads: ArrayLike,
    targets: int | Targets,
    *,
    end: float | None = None,
    servers: int | None = None,
    wait: float = 0.0,
) -> Result:
    """Serve these claims from a buffer with these targets.

    Args:
        arrivals: epoch seconds, sorted; one entry a unit.
        leads: seconds that the unit ordered at each arrival takes.
        targets: one number, or what it was when.
        end: until when idle units are counted; None: the last arrival.
        servers: units that can be in the making at a time; None: any number. It bounds the orders of
            arrivals; a rise of the target takes lead times and no turns.
        wait: seconds that a claim may wait and still count as served.
    """
    at, took = np.asarray(arrivals, dtype=np.float64), np.asarray(leads, dtype=np.float64)
    if not at.size:
        return Result(0, 1.0, 0.0, np.zeros(HOURS_A_WEEK, dtype=np.int64))
    ready = replay_servers(at, took, servers)
    schedule = Targets.constant(float(at[0]), targets) if isinstance(targets, int) else targets
    times, units = _in_effect(schedule, took)
    found = outstanding(at, ready - at, wait)
    met = found < units[np.maximum(np.searchsorted(times, at + wait, side="right") - 1, 0)]
    hours = slot_of(at[~met]) // 4
    return Result(
        claims=at.size,
        hit_ratio=float(met.mean()),
        idle_hours=_idle(at, ready, times, units, float(at[-1]) if end is None else end),
        misses_by_hour=np.bincount(hours, minlength=HOURS_A_WEEK),
    )


def trade_off(
    arrivals: ArrayLike,
    leads: ArrayLike,
    *,
    end: float | None = None,
    servers: int | None = None,
    wait: float = 0.0,
) -> list[Point]:
    """Hit ratio against idle unit-hours of every static target, from none to one that misses no claim."""
    at, took = np.asarray(arrivals, dtype=np.float64), np.asarray(leads, dtype=np.float64)
    if not at.size:
        return []
    ready = replay_servers(at, took, servers)
    found = outstanding(at, ready - at, wait)
    hits = np.concatenate(([0], np.cumsum(np.bincount(found)))) / at.size
    # How long how many orders were outstanding: a target of S has S - N units idle while that is above 0.
    last = float(at[-1]) if end is None else end
    edges = np.concatenate((at, np.minimum(ready, last), [last]))
    order = np.argsort(edges, kind="stable")
    now = np.cumsum(np.concatenate((np.ones(at.size), -np.ones(at.size), [0.0]))[order])[:-1].astype(np.int64)
    spans = np.bincount(now, np.diff(edges[order]), minlength=hits.size) / HOUR
    below, weighed = np.cumsum(spans), np.cumsum(spans * np.arange(spans.size))
    return [
        Point(units, float(hits[units]), float(max(0.0, units * below[units] - weighed[units])))
        for units in range(hits.size)
    ]


def of_level(curve: Curve, level: float, start: float, end: float) -> Targets:
    """The targets that a service level sets between two times, without reacting to recent demand."""
    at, units = [start], [curve.estimate(level, start).units]
    upcoming = curve.estimate(level, start).changes_at
    while upcoming is not None and upcoming < end:
        now = max(upcoming, at[-1] + _SHORTEST)
        estimate = curve.estimate(level, now)
        at.append(now)
        units.append(estimate.units)
        upcoming = estimate.changes_at
    return Targets(np.array(at), np.array(units, dtype=np.int64))


def _in_effect(targets: Targets, leads: Floats) -> tuple[Floats, Ints]:
    """From when on how many units have come: a rise takes lead times, a fall cancels what is to come."""
    times: list[float] = [float(targets.at[0])]
    steps: list[int] = [int(targets.units[0])]
    coming: list[float] = []
    used = 0
    for at, change in zip(targets.at[1:].tolist(), np.diff(targets.units).tolist(), strict=True):
        while coming and coming[0] <= at:
            times.append(heapq.heappop(coming))
            steps.append(1)
        for _ in range(change):
            place = int(uniform(np.array([used], dtype=np.uint64))[0] * leads.size)
            heapq.heappush(coming, at + float(leads[place]))
            used += 1
        cancelled = min(max(-change, 0), len(coming))
        coming = sorted(coming)[: len(coming) - cancelled]
        if -change > cancelled:
            times.append(at)
            steps.append(change + cancelled)
    times += coming
    steps += [1] * len(coming)
    order = np.argsort(times, kind="stable")
    return np.array(times)[order], np.cumsum(np.array(steps)[order])


def _idle(at: Floats, ready: Floats, times: Floats, units: Ints, end: float) -> float:
    """Unit-hours that units stood ready: the integral of (units come - orders outstanding) above 0."""
    begin = float(times[0])
    edges = np.clip(np.concatenate((times, at, ready, [end])), begin, max(end, begin))
    changes = np.concatenate((np.diff(units, prepend=0), -np.ones(at.size), np.ones(at.size), [0]))
    order = np.argsort(edges, kind="stable")
    idle = np.maximum(np.cumsum(changes[order])[:-1], 0)
    return float(idle @ np.diff(edges[order])) / HOUR
