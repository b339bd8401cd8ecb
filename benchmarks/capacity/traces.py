"""Demand as data: `traces.toml` says what, a seed says when. All times are seconds since the epoch, UTC."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_name("traces.toml")
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DAY, HOUR = 86_400.0, 3_600.0
CELL = 10.0  # seconds in which a rate is level
_MONDAYS = 7
_CELLS_A_DAY = int(DAY / CELL)


@dataclass(frozen=True, slots=True)
class Lead:
    """Lognormal lead times by the two quantiles that people publish."""

    p50: float
    p95: float

    @property
    def sigma(self) -> float:
        return math.log(self.p95 / self.p50) / NormalDist().inv_cdf(0.95)

    @property
    def mean(self) -> float:
        return self.p50 * math.exp(self.sigma**2 / 2)

    def quantile(self, share: float) -> float:
        return self.p50 * math.exp(self.sigma * NormalDist().inv_cdf(share))

    def draw(self, random: np.random.Generator, size: int) -> Floats:
        return self.p50 * np.exp(self.sigma * random.standard_normal(size))

    def survival(self, cells: int) -> Floats:
        """P(L > u) at the middle of each cell."""
        normal = NormalDist()
        at = (np.arange(cells) + 0.5) * CELL
        return np.array([1.0 - normal.cdf(math.log(u / self.p50) / self.sigma) for u in at])


@dataclass(frozen=True)
class Trace:
    """One named demand. `erlangs` times a factor is rate times mean lead time."""

    name: str
    kind: str
    erlangs: float
    days: tuple[int, int]
    every: float
    refresh: float
    batch: float = 1.0
    workday: tuple[tuple[float, float], ...] = ()
    weekend: tuple[tuple[float, float], ...] = ()
    on: tuple[tuple[float, float], ...] = ()
    off: float = 0.0
    sine: float = 0.0
    shuffled: bool = False

    def shape(self, days: int, random: np.random.Generator) -> Floats:
        """The factor of each cell. `random` is asked only by what nobody can know."""
        return np.concatenate([self._day(day, random) for day in range(days)])

    def _day(self, day: int, random: np.random.Generator) -> Floats:
        hours: Floats = (np.arange(_CELLS_A_DAY, dtype=np.float64) + 0.5) * (CELL / HOUR)
        if self.on:
            return self._on_off(hours, random)
        if self.sine:
            return np.asarray(1.0 + self.sine * np.sin((hours - 9.0) * (math.pi / 12.0)), np.float64)
        points = self.weekend if day % _MONDAYS >= 5 else self.workday
        if not points:
            return np.ones(_CELLS_A_DAY)
        at, factor = zip(*points, strict=True)
        return np.asarray(np.interp(hours, at, factor), np.float64)

    def _on_off(self, hours: Floats, random: np.random.Generator) -> Floats:
        level = np.full(_CELLS_A_DAY, self.off)
        for begin, end in self.on:
            moved = random.uniform(-4.0, 4.0) if self.shuffled else 0.0
            level[(hours >= begin + moved) & (hours < end + moved)] = 1.0
        return level


@dataclass(frozen=True)
class Demand:
    """A trace that was drawn: what came when, how long each order takes, and the rate that nobody sees.

    `arrivals` ascends, one entry a unit (a batch has several of the same time); `rate` is in units a second
    for each cell from `start` on.
    """

    trace: Trace
    start: float
    arrivals: Floats
    leads: Floats
    holds: Floats
    rate: Floats

    @property
    def judged_from(self) -> float:
        return self.start + self.trace.days[0] * DAY

    @property
    def end(self) -> float:
        return self.start + sum(self.trace.days) * DAY

    @cached_property
    def first_judged(self) -> int:
        return int(np.searchsorted(self.arrivals, self.judged_from))

    @cached_property
    def judged(self) -> Floats:
        return self.arrivals[self.first_judged :]

    @cached_property
    def judged_leads(self) -> Floats:
        return self.leads[self.first_judged :]


@dataclass(frozen=True)
class Book:
    """All of the file."""

    start: float
    seeds: int
    levels: tuple[float, ...]
    lead: Lead
    hold: float
    traces: tuple[Trace, ...]

    def only(self, name: str) -> Trace:
        for trace in self.traces:
            if trace.name == name:
                return trace
        raise KeyError(f"no trace {name}; there are {', '.join(each.name for each in self.traces)}")

    def draw(self, trace: Trace, seed: int) -> Demand:
        """The same claims for the same seed, whatever else is drawn."""
        random = np.random.default_rng([seed, *trace.name.encode()])
        rate = trace.shape(sum(trace.days), random) * (trace.erlangs / self.lead.mean)
        arrivals = self.start + batches(rate, trace.batch, random)
        leads = self.lead.draw(random, arrivals.size)
        holds = random.exponential(self.hold, arrivals.size)
        return Demand(trace, self.start, arrivals, leads, holds, rate)

    def shortened(self, trace: Trace, days: tuple[int, int]) -> Trace:
        return replace(trace, days=days)


def batches(rate: Floats, mean: float, random: np.random.Generator) -> Floats:
    """Times (seconds from 0) of a Poisson stream of batches whose units come at `rate` a second."""
    counts = random.poisson(rate * (CELL / mean))
    cells = np.repeat(np.arange(rate.size), counts)
    times = np.sort((cells + random.random(cells.size)) * CELL)
    if mean == 1.0:
        return times
    return np.repeat(times, random.geometric(1.0 / mean, times.size))


@lru_cache(maxsize=4)
def read(source: Path = FILE) -> Book:
    """Raises ValueError (also of TOML) and TypeError for a file that is not as described in it."""
    found = tomllib.loads(source.read_text())
    traces = tuple(Trace(**{key: _tuples(value) for key, value in each.items()}) for each in found["trace"])
    if len({trace.name for trace in traces}) != len(traces):
        raise ValueError(f"{source}: two traces have the same name")
    return Book(
        datetime.fromisoformat(found["start"]).timestamp(),
        found["seeds"],
        tuple(found["levels"]),
        Lead(**found["lead"]),
        found["hold"]["mean"],
        traces,
    )


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
