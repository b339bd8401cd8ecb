"""A warm buffer in virtual time: one-for-one orders at arrival, an order-up-to level that changes with time.

What a claim gets depends only on when units become ready: claims are served first come first served, so claim
number i takes the i-th unit that becomes ready. That makes all between two changes of the level a matter of
sorting. Creations are not bounded here (`servers.py` bounds them, an event at a time).

A level that rises orders at once; one that falls cancels the youngest order in flight first and takes ready
units last, as the controller's plan does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.capacity.traces import HOUR, Floats, Ints


@dataclass(frozen=True, slots=True)
class Levels:
    """Order-up-to levels: `units[k]` from `at[k]` until the next. `at[0]` is where the run starts."""

    at: Floats
    units: Ints

    @classmethod
    def constant(cls, start: float, units: int) -> Levels:
        return cls(np.array([start]), np.array([units], dtype=np.int64))

    @classmethod
    def sampled(cls, at: Floats, units: Ints) -> Levels:
        """Only where the level differs from the one before."""
        keep = np.concatenate(([True], units[1:] != units[:-1]))
        return cls(at[keep], units[keep])

    def shifted(self, by: int) -> Levels:
        """Everywhere so many units more (or less, but never less than none)."""
        return Levels.sampled(self.at, np.maximum(0, self.units + by))

    def mean(self, end: float) -> float:
        """Units, averaged over the time until `end`."""
        spans = np.diff(np.append(self.at, end))
        return float((self.units * spans).sum() / spans.sum())

    def ups(self) -> int:
        """Units that were ordered because the level rose."""
        return int(np.maximum(0, np.diff(self.units)).sum())


@dataclass(frozen=True, slots=True)
class Run:
    """`waits`: seconds each claim waited; `idle_hours`: ready units times hours until somebody took them."""

    waits: Floats
    idle_hours: float
    created: int
    cancelled: int

    def share(self, wait: float = 0.0) -> float:
        """Of the claims, those that waited no longer than so many seconds."""
        return float((self.waits <= wait).mean()) if self.waits.size else 1.0


@dataclass(slots=True)
class _Stock:
    """Orders in flight (when placed, when ready) and the units that became ready, in the order of time."""

    placed: Floats
    due: Floats
    supply: list[Floats] = field(default_factory=list)
    supplied: int = 0
    removed_idle: float = 0.0
    created: int = 0
    cancelled: int = 0

    def advance(self, placed: Floats, due: Floats, until: float) -> None:
        """Order what is placed before `until`, and take in what becomes ready before then."""
        placed, due = np.concatenate((self.placed, placed)), np.concatenate((self.due, due))
        ready = due < until
        arrived = np.sort(due[ready])
        self.supply.append(arrived)
        self.supplied += arrived.size
        self.placed, self.due = placed[~ready], due[~ready]

    def order(self, at: float, leads: Floats) -> None:
        self.placed = np.concatenate((self.placed, np.full(leads.size, at)))
        self.due = np.concatenate((self.due, at + leads))
        self.created += leads.size

    def drop(self, at: float, count: int) -> None:
        """Youngest orders first; then units that are ready."""
        cancel = min(count, self.placed.size)
        if cancel:
            kept = np.argsort(self.placed, kind="stable")[: self.placed.size - cancel]
            self.placed, self.due = self.placed[kept], self.due[kept]
            self.cancelled += cancel
        for _ in range(count - cancel):
            while not self.supply[-1].size:
                self.supply.pop()
            self.removed_idle += at - float(self.supply[-1][-1])
            self.supply[-1] = self.supply[-1][:-1]
            self.supplied -= 1


def run(arrivals: Floats, leads: Floats, levels: Levels, end: float, extra: Floats) -> Run:
    """Serve `arrivals` from a buffer that starts full at `levels.at[0]`.

    `extra`: lead times for the orders that a rising level makes; used over and over when there are too few.
    """
    stock = _Stock(np.empty(0), np.empty(0))
    first = np.full(int(levels.units[0]), levels.at[0])
    stock.supply.append(first)
    stock.supplied = stock.created = first.size
    due = arrivals + leads
    edges = np.append(levels.at[1:], end)
    cuts = np.searchsorted(arrivals, edges)
    used, begin = 0, int(np.searchsorted(arrivals, levels.at[0]))
    for index, (edge, cut) in enumerate(zip(edges.tolist(), cuts.tolist(), strict=True)):
        stock.advance(arrivals[begin:cut], due[begin:cut], edge)
        stock.created += cut - begin
        begin = cut
        if index + 1 == levels.units.size:
            break
        change = int(levels.units[index + 1] - levels.units[index])
        if change > 0:
            stock.order(edge, np.take(extra, np.arange(used, used + change), mode="wrap"))
            used += change
        else:
            stock.drop(edge, -change)
    return _settled(arrivals[np.searchsorted(arrivals, levels.at[0]) : begin], stock, end)


def _settled(arrivals: Floats, stock: _Stock, end: float) -> Run:
    """The i-th claim takes the i-th unit; a claim that is still waiting at the end gets what is in flight."""
    supply = np.concatenate([*stock.supply, np.sort(stock.due)])
    taken = supply[: arrivals.size]
    idle = np.maximum(0.0, arrivals - taken).sum()
    left = np.maximum(0.0, end - supply[arrivals.size :]).sum()
    return Run(
        np.maximum(0.0, taken - arrivals),
        float(idle + left + stock.removed_idle) / HOUR,
        stock.created,
        stock.cancelled,
    )
