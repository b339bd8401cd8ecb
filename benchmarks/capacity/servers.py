"""The same buffer an event at a time, with bounded creations: for storms, outages and tiers. Slow and plain.

Beside `buffer.py` it is also the second opinion: where nothing is bounded, both must say the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.capacity.buffer import Levels, Run
from benchmarks.capacity.traces import HOUR, Floats

# From when an order is begun to when its unit is ready: (begun at, its own lead time) -> ready at.
Boot = Callable[[float, float], float]


def plain(begun: float, lead: float) -> float:
    return begun + lead


@dataclass(frozen=True, slots=True)
class Outage:
    """Nothing becomes ready in it: boots under way then begin anew when it is over."""

    begin: float
    end: float

    def __call__(self, begun: float, lead: float) -> float:
        if begun + lead <= self.begin or begun >= self.end:
            return begun + lead
        return self.end + lead


@dataclass(slots=True)
class Buffer:
    """One buffer. `in_flight` is a heap of (ready at, number); cancelled numbers are skipped."""

    servers: int
    boot: Boot
    draw: Callable[[], float]
    level: int
    now: float
    ready: int = 0
    flying: int = 0
    created: int = 0
    cancelled: int = 0
    idle_seconds: float = 0.0
    peak: int = 0
    made: list[tuple[float, float]] = field(default_factory=list)  # (begun, ready) of what became ready
    waiting: list[int] = field(default_factory=list)
    served: dict[int, float] = field(default_factory=dict)
    _in_flight: list[tuple[float, int]] = field(default_factory=list)
    _alive: dict[int, float] = field(default_factory=dict)
    _head: int = 0

    @property
    def backlog(self) -> int:
        return len(self.waiting) - self._head

    def advance(self, to: float) -> None:
        """Let everything happen that is due until then."""
        while self._in_flight and self._in_flight[0][0] <= to:
            at, number = heapq.heappop(self._in_flight)
            begun = self._alive.pop(number, None)
            if begun is None:
                continue
            self.made.append((begun, at))
            self._pass(at)
            self.flying -= 1
            if self.backlog:
                self.served[self.waiting[self._head]] = at
                self._head += 1
            else:
                self.ready += 1
            self.reconcile()
        self._pass(to)

    def claim(self, number: int) -> None:
        if self.ready:
            self.ready -= 1
            self.served[number] = self.now
        else:
            self.waiting.append(number)
        self.reconcile()

    def set_level(self, level: int) -> None:
        self.level = level
        self.reconcile()

    def reconcile(self) -> None:
        """The order-up-to rule under maxConcurrentCreations; surplus goes youngest first."""
        missing = self.level + self.backlog - self.ready - self.flying
        for _ in range(min(missing, self.servers - self.flying)):
            self.created += 1
            heapq.heappush(self._in_flight, (self.boot(self.now, self.draw()), self.created))
            self._alive[self.created] = self.now
            self.flying += 1
        for _ in range(-missing):
            if self.flying:
                self._alive.popitem()
                self.flying -= 1
                self.cancelled += 1
            else:
                self.ready -= 1
        self.peak = max(self.peak, self.flying)

    def finish(self, arrivals: Floats) -> Run:
        """What became of each claim; those who still wait are told how long they will have waited."""
        idle = self.idle_seconds / HOUR
        while self.backlog and self.flying:
            self.advance(self._in_flight[0][0])
        served = np.array([self.served.get(number, np.inf) for number in range(arrivals.size)])
        return Run(served - arrivals, idle, self.created, self.cancelled)

    def _pass(self, to: float) -> None:
        self.idle_seconds += self.ready * (to - self.now)
        self.now = to


def run(
    arrivals: Floats,
    levels: Levels,
    end: float,
    *,
    servers: int,
    draw: Callable[[], float],
    boot: Boot = plain,
) -> tuple[Run, Buffer]:
    """Serve all of `arrivals` (after `levels.at[0]`); the buffer starts full."""
    start = float(levels.at[0])
    units = int(levels.units[0])
    buffer = Buffer(servers, boot, draw, units, start, ready=units, created=units)
    changes = list(zip(levels.at[1:].tolist(), levels.units[1:].tolist(), strict=True))
    step = 0
    for number, at in enumerate(arrivals.tolist()):
        while step < len(changes) and changes[step][0] <= at:
            buffer.advance(changes[step][0])
            buffer.set_level(changes[step][1])
            step += 1
        buffer.advance(at)
        buffer.claim(number)
    for at, units in changes[step:]:
        buffer.advance(at)
        buffer.set_level(units)
    buffer.advance(end)
    return buffer.finish(arrivals), buffer
