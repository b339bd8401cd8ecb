"""Tiers: of a buffer some units are kept stopped and woken when a claim reaches them.

Claims take running units first, and units that boot become running first; so a stopped unit is touched only
by claims that find more orders outstanding than there are running units. Nothing is woken ahead of its claim:
a controller that does so serves no worse.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from benchmarks.capacity.outcomes import ENGINE
from benchmarks.capacity.pilot import UNBOUNDED, Memory
from benchmarks.capacity.report import Table, per_cent
from benchmarks.capacity.traces import CELL, DAY, HOUR, Book, Floats, Lead, batches
from benchmarks.rows import Row
from capacity.curve import build
from capacity.sketch import LeadTimes
from capacity.split import Split, split


@dataclass(frozen=True, slots=True)
class Woken:
    """`waits`: seconds of each claim; unit-hours that units stood running and stopped; claims that woke."""

    waits: Floats
    running_hours: float
    stopped_hours: float
    woke: int

    def share(self, wait: float) -> float:
        return float((self.waits <= wait).mean())


def serve(arrivals: Floats, leads: Floats, wakes: Floats, split: Split) -> Woken:
    """One-for-one orders at arrival; claim i wakes in `wakes[i]` seconds if it must.

    A claim that wakes a unit takes what is there first: the unit that it woke, or one that boots before that.
    """
    running, stopped, woke = split.running, split.stopped, 0
    idle_running = idle_stopped = 0.0
    now = float(arrivals[0]) if arrivals.size else 0.0
    booting: list[float] = []
    queue: list[int] = []
    head = 0
    waits = np.zeros(arrivals.size)
    times, took, rouse = arrivals.tolist(), leads.tolist(), wakes.tolist()
    for number, at in enumerate(times):
        while booting and booting[0] <= at:
            ready = heapq.heappop(booting)
            idle_running += running * (ready - now)
            idle_stopped += stopped * (ready - now)
            now = ready
            if head < len(queue):
                waits[queue[head]] = ready - times[queue[head]]
                head += 1
            elif running < split.running:
                running += 1
            else:
                stopped += 1
        idle_running += running * (at - now)
        idle_stopped += stopped * (at - now)
        now = at
        heapq.heappush(booting, at + took[number])
        if running:
            running -= 1
        elif stopped:
            stopped -= 1
            woke += 1
            waits[number] = rouse[number]
        else:
            queue.append(number)
    for number in queue[head:]:
        waits[number] = heapq.heappop(booting) - times[number]
    return Woken(waits, idle_running / HOUR, idle_stopped / HOUR, woke)


@dataclass(frozen=True, slots=True)
class Case:
    """What a user asked for, and how fast stopped units wake."""

    erlangs: float
    level: float
    wait: float
    wake: Lead

    @property
    def name(self) -> str:
        return (
            f"a = {self.erlangs:g}, {self.level * 100:g} % in {self.wait:g} s, wakes in {self.wake.p50:g} s"
        )


CASES = (
    Case(5.0, 0.99, 5.0, Lead(2.0, 3.0)),
    Case(5.0, 0.99, 5.0, Lead(3.0, 6.5)),
    Case(20.0, 0.95, 5.0, Lead(3.0, 6.5)),
    Case(20.0, 0.99, 5.0, Lead(4.5, 9.0)),
    Case(50.0, 0.99, 8.0, Lead(6.0, 11.0)),
)
_TRAINED, _JUDGED = 7.0, 7.0
_MOST_CLAIMS = 200_000


def judge(case: Case, book: Book, seed: int = 0) -> Row:
    """The engine's target and split, learnt on one part, served on the other; beside all of it running."""
    random = np.random.default_rng([seed, round(case.erlangs * 10), round(case.level * 1_000)])
    rate = case.erlangs / book.lead.mean
    trained = min(_TRAINED * DAY, _MOST_CLAIMS / rate)
    judged = min(_JUDGED * DAY, _MOST_CLAIMS / rate)
    cells = int((trained + judged) / CELL)
    arrivals = book.start + batches(np.full(cells, rate), 1.0, random)
    leads = book.lead.draw(random, arrivals.size)
    wakes = case.wake.draw(random, arrivals.size)
    first = int(np.searchsorted(arrivals, book.start + trained))
    memory = Memory(book.start, UNBOUNDED)
    memory.arrive(arrivals[:first])
    memory.booted(leads[:first])
    now = book.start + trained
    curve = build(memory.history.snapshot(now), servers=UNBOUNDED, wait=case.wait)
    units = curve.estimate(case.level, now).units
    woken = LeadTimes()
    for seconds in wakes[: min(first, 4_000)].tolist():
        woken.add(seconds)
    wanted = split(units, case.level, curve.demand(now), woken, case.wait)
    part = (arrivals[first:], leads[first:], wakes[first:])
    mine, fewer = (serve(*part, each) for each in (wanted, _stopped_more(wanted)))
    running = serve(*part, Split(units, 0))
    figures = {
        "level": case.level,
        "units": units,
        "running": wanted.running,
        "stopped": wanted.stopped,
        "hit": mine.share(case.wait),
        "short_points": (case.level - mine.share(case.wait)) * 100,
        "less_hit": fewer.share(case.wait),
        "spare_points": (fewer.share(case.wait) - case.level) * 100 if wanted.running else -math.inf,
        "running_hours": mine.running_hours,
        "all_running_hours": running.running_hours,
        "all_running_hit": running.share(case.wait),
        "woke": mine.woke / part[0].size,
    }
    return Row(case.name, ENGINE, figures)


def _stopped_more(wanted: Split) -> Split:
    return Split(max(0, wanted.running - 1), wanted.stopped + min(1, wanted.running))


def table(rows: list[Row]) -> Table:
    drawn = Table(
        "Tiers: units of high rank stopped",
        (
            "asked for",
            "target",
            "running",
            "stopped",
            "reached",
            "one running less",
            "all running",
            "running idle, of all running",
            "claims that woke one",
        ),
    )
    for row in rows:
        found = row.figures
        drawn.lines.append(
            (
                row.name,
                f"{found['units']:.0f}",
                f"{found['running']:.0f}",
                f"{found['stopped']:.0f}",
                per_cent(found["hit"]),
                per_cent(found["less_hit"]),
                per_cent(found["all_running_hit"]),
                per_cent(found["running_hours"] / found["all_running_hours"]),
                per_cent(found["woke"]),
            )
        )
    return drawn
