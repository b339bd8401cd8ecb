"""Storms: a steady pool, then something happens. One event after the other, decisions every ten seconds."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.capacity import oracle, traces
from benchmarks.capacity.buffer import Levels, Run
from benchmarks.capacity.servers import Buffer, Outage, plain
from benchmarks.capacity.traces import CELL, DAY, HOUR, Floats, Ints, Lead

FILE = Path(__file__).with_name("storms.toml")
MINUTE = 60.0
_NOON = 12 * HOUR
_CALM = 2 * HOUR  # watched before the storm
_AGAIN = 30 * MINUTE  # the hit ratio over so long has to be as it was asked for
_SLACK = 0.01


@dataclass(frozen=True, slots=True)
class Storm:
    """One story; factors are of the steady state before it."""

    name: str
    about: str
    erlangs: float
    servers: int
    days: int
    hours: float
    rate: float = 1.0
    lead: float = 1.0
    minutes: float = 0.0
    outage: float = 0.0


@dataclass(frozen=True, slots=True)
class Weather:
    """All storms, and how closely they are watched."""

    levels: tuple[float, ...]
    seeds: int
    every: float
    refresh: float
    storms: tuple[Storm, ...]


def read(source: Path = FILE) -> Weather:
    found: dict[str, Any] = tomllib.loads(source.read_text())
    storms = tuple(Storm(**each) for each in found.pop("storm"))
    return Weather(**(found | {"levels": tuple(found["levels"]), "storms": storms}))


@dataclass(frozen=True)
class Tale:
    """A storm that was drawn: training until `begin` - 2 h, then what is watched until `end`."""

    storm: Storm
    start: float
    begin: float
    over: float
    end: float
    arrivals: Floats
    rate: Floats
    lead: Lead
    seed: int

    @property
    def watched_from(self) -> float:
        return self.begin - _CALM

    @property
    def settles_from(self) -> float:
        """From when on the target could be met again: at once, but not while nothing boots."""
        return self.over if self.storm.outage else self.begin

    def boots(self) -> Callable[[float, float], float]:
        """When an order that is begun then will be ready, given its lead time in calm weather."""
        if self.storm.outage:
            return Outage(self.begin, self.over)
        if self.storm.lead != 1.0:
            return lambda begun, lead: begun + lead * (self.storm.lead if begun >= self.begin else 1.0)
        return plain

    def draws(self) -> Callable[[], float]:
        """The same lead times for everyone who orders in the same order."""
        random = np.random.default_rng([self.seed, 7])
        drawn: list[float] = self.lead.draw(random, 2 * self.arrivals.size + 10_000).tolist()
        return iter(drawn).__next__


def draw(storm: Storm, lead: Lead, start: float, seed: int) -> Tale:
    begin = start + storm.days * DAY + _NOON
    length = storm.outage or storm.minutes
    end = begin + storm.hours * HOUR
    over = begin + length * MINUTE if length else end
    random = np.random.default_rng([seed, *storm.name.encode()])
    at = start + np.arange(0.0, end - start, CELL)
    rate = np.full(at.size, storm.erlangs / lead.mean)
    rate[(at >= begin) & (at < over)] *= storm.rate
    return Tale(storm, start, begin, over, end, start + traces.batches(rate, 1.0, random), rate, lead, seed)


class Pilot(Protocol):
    """Who says the level: told what came and what became ready since the last time."""

    def steer(self, now: float, arrivals: Floats, made: Sequence[tuple[float, float]]) -> int: ...


@dataclass(frozen=True, slots=True)
class Chart:
    """What a storm did to one pilot. `at`, `levels`, `ready`, `backlog`: one for each decision."""

    run: Run
    arrivals: Floats
    at: Floats
    levels: Ints
    ready: Ints
    backlog: Ints


def fly(tale: Tale, pilot: Pilot, every: float) -> Chart:
    """From two hours before the storm to the end, a decision `every` seconds."""
    begin = tale.watched_from
    arrivals = tale.arrivals[np.searchsorted(tale.arrivals, begin) :]
    ticks = np.arange(begin, tale.end, every)
    cuts = np.searchsorted(arrivals, ticks)
    first = pilot.steer(begin, arrivals[:0], [])
    buffer = Buffer(tale.storm.servers, tale.boots(), tale.draws(), first, begin, ready=first, created=first)
    seen: list[tuple[int, int, int]] = []
    number, told = 0, 0
    for tick, cut in zip(ticks.tolist(), cuts.tolist(), strict=True):
        came = arrivals[number:cut]
        for at in came.tolist():
            buffer.advance(at)
            buffer.claim(number)
            number += 1
        buffer.advance(tick)
        level = pilot.steer(tick, came, buffer.made[told:])
        told = len(buffer.made)
        buffer.set_level(level)
        seen.append((level, buffer.ready, buffer.backlog))
    levels, ready, backlog = (np.array(each, dtype=np.int64) for each in zip(*seen, strict=True))
    arrivals = arrivals[:number]
    return Chart(buffer.finish(arrivals), arrivals, ticks, levels, ready, backlog)


@dataclass(slots=True)
class Foreseen:
    """The oracle: knows every rate and boot time ahead, but no outage."""

    plan: Levels

    def steer(self, now: float, arrivals: Floats, made: Sequence[tuple[float, float]]) -> int:
        del arrivals, made
        return int(self.plan.units[max(0, int(np.searchsorted(self.plan.at, now, side="right")) - 1)])


def foreseen(tale: Tale, level: float) -> Foreseen:
    storm, lead = tale.storm, tale.lead
    need = oracle.poisson(oracle.mean_outstanding(tale.rate, lead), level)
    at: Floats = tale.start + np.arange(need.size, dtype=np.float64) * CELL
    if storm.lead != 1.0:
        slow = Lead(lead.p50 * storm.lead, lead.p95 * storm.lead)
        late = oracle.poisson(oracle.mean_outstanding(tale.rate, slow), level)
        need = np.where(at >= tale.begin, late, need)
        lead = slow
    ahead = int(np.ceil(lead.quantile(0.99) / CELL))
    padded = np.concatenate((need, np.full(ahead, need[-1])))
    return Foreseen(
        Levels.sampled(at, np.lib.stride_tricks.sliding_window_view(padded, ahead + 1).max(axis=1))
    )


def prompt(tale: Tale, level: float) -> Foreseen:
    """The oracle without foresight: it learns of the storm in the instant in which it begins."""
    plan = foreseen(tale, level).plan
    early = (plan.at > tale.watched_from) & (plan.at < tale.begin)
    return Foreseen(Levels(np.where(early, tale.begin, plan.at), plan.units))


def met_again(tale: Tale, chart: Chart, level: float, beside: Chart) -> float:
    """Seconds until the hit ratio of the next half hour is the target again; inf: never.

    Or what the oracle `beside` reaches on the same claims, where that is less; both within a point.
    """
    mine, best = (np.concatenate(([0], np.cumsum(each.run.waits <= 0))) for each in (chart, beside))
    for at in np.arange(tale.settles_from, tale.end - _AGAIN + 1, 10.0).tolist():
        low, high = np.searchsorted(chart.arrivals, [at, at + _AGAIN])
        enough = min(level * (high - low), best[high] - best[low]) - _SLACK * (high - low)
        if mine[high] - mine[low] >= enough:
            return float(at - tale.settles_from)
    return float("inf")


def misses(tale: Tale, chart: Chart) -> int:
    """Claims that had to wait, from the beginning of the storm on."""
    return int((chart.run.waits[chart.arrivals >= tale.begin] > 0).sum())


def swings(levels: Ints) -> int:
    """How often the level turns round, ups and downs below a fifth of it (or two units) aside."""
    if not levels.size:
        return 0
    turns, direction = 0, 0
    low = high = int(levels[0])
    for level in levels.tolist():
        low, high = min(low, level), max(high, level)
        margin = max(2, round(0.2 * high))
        if direction <= 0 and level >= low + margin:
            turns += direction < 0
            direction, high, low = 1, level, level
        elif direction >= 0 and level <= high - margin:
            turns += direction > 0
            direction, high, low = -1, level, level
    return turns
