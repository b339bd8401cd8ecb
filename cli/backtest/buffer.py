"""A buffer in virtual time: what would have become of the claims if so many units had been aimed at, when.

Units are ordered one for one when claims come, as the controller orders them, at most `servers` are in the
making at a time, and claims are served first come, first served.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.sketch import LeadTimes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Targets:
    """So many units from each of these times on (epoch seconds); the first is where it begins."""

    at: tuple[float, ...]
    units: tuple[int, ...]

    @classmethod
    def changes(cls, at: Sequence[float], units: Sequence[int]) -> Targets:
        """Only where the number is another than before."""
        kept = [place for place in range(len(at)) if not place or units[place] != units[place - 1]]
        return cls(tuple(float(at[place]) for place in kept), tuple(units[place] for place in kept))


@dataclass(frozen=True, slots=True)
class Outcome:
    """`waits`: seconds that each claim waited. `idle_hours`: unit-hours that stood ready, in all."""

    waits: Floats
    idle_hours: float


class _Buffer:
    """Units ready (since when), in the making (until when), and waiting to be made; claims that wait."""

    def __init__(self, start: float, units: int, leads: Floats, servers: int) -> None:
        self.ready: deque[float] = deque([start] * units)
        self.making: list[tuple[float, int]] = []  # done at, and which order it was
        self.ordered = 0  # waits for its turn to be made
        self.waiting: deque[tuple[int, float]] = deque()
        self.idle = 0.0
        self.waits: dict[int, float] = {}
        self._leads = leads
        self._servers = servers
        self._made = 0

    @property
    def position(self) -> int:
        """Ready and on the way, less what claims wait for."""
        return len(self.ready) + len(self.making) + self.ordered - len(self.waiting)

    def until(self, now: float) -> None:
        """Take in what is done by then."""
        while self.making and self.making[0][0] <= now:
            done, _ = heapq.heappop(self.making)
            if self.waiting:
                claim, came = self.waiting.popleft()
                self.waits[claim] = done - came
            else:
                self.ready.append(done)
            self._begin(done)

    def claim(self, number: int, now: float) -> None:
        """One claim comes: it takes the unit that has been ready for longest, or waits."""
        if self.ready:
            self.idle += now - self.ready.popleft()
            self.waits[number] = 0.0
        else:
            self.waiting.append((number, now))

    def reach(self, target: int, now: float) -> None:
        """Order up to the target, or drop to it: first what is not begun, then the youngest, then ready."""
        self.ordered += max(0, target - self.position)
        for _ in range(self.position - target):
            if self.ordered:
                self.ordered -= 1
            elif self.making:
                self.making.remove(max(self.making, key=lambda each: each[1]))
                heapq.heapify(self.making)
            elif self.ready:
                self.idle += now - self.ready.pop()
        self._begin(now)

    def _begin(self, now: float) -> None:
        while self.ordered and len(self.making) < self._servers:
            lead = float(self._leads[self._made % len(self._leads)])
            heapq.heappush(self.making, (now + lead, self._made))
            self._made += 1
            self.ordered -= 1

    def end(self, now: float) -> None:
        """All that is ordered comes, so that each claim's wait is known; nothing stands idle any more."""
        self.until(now)
        self.idle += sum(now - since for since in self.ready)
        self.ready.clear()
        self.until(math.inf)
        for claim, _ in self.waiting:  # those that came when the target was nothing, and nothing was ordered
            self.waits[claim] = math.inf


def replay(arrivals: Floats, leads: LeadTimes, targets: Targets, until: float, servers: int) -> Outcome:
    """What becomes of these claims (epoch seconds, sorted), from a buffer that is full when it begins."""
    drawn = leads.draw(np.arange(max(1, arrivals.size), dtype=np.uint64))
    buffer = _Buffer(targets.at[0], targets.units[0], drawn, servers)
    target, change = targets.units[0], 1
    for number, now in enumerate(arrivals.tolist()):
        while change < len(targets.at) and targets.at[change] <= now:
            target = targets.units[change]
            buffer.until(targets.at[change])
            buffer.reach(target, targets.at[change])
            change += 1
        buffer.until(now)
        buffer.claim(number, now)
        buffer.reach(target, now)
    for at, units in zip(targets.at[change:], targets.units[change:], strict=True):
        buffer.until(at)
        buffer.reach(units, at)
    buffer.end(until)
    return Outcome(np.array([buffer.waits[number] for number in range(arrivals.size)]), buffer.idle / _HOUR)
