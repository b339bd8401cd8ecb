"""Counting outstanding orders, which is all that a service level needs. It must never assume a distribution.

One order is placed at every arrival. Claim i then finds a ready unit at a target S if and only if fewer than
S earlier orders are still outstanding: the rest of the S + i units that were ordered before it have come, and
only i claims were before it. So the smallest S of a level is a quantile of counts.
"""

import heapq
import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.sketch import LeadTimes

Times = NDArray[np.float64]
Counts = NDArray[np.int64]

_REPLAYED_UP_TO: Final = 500  # units; beyond, the bound is as good and costs nothing
_FILLS: Final = 5  # replays of one fill, of which the slowest counts


def outstanding(arrivals: ArrayLike, leads: ArrayLike, wait: float = 0.0) -> Counts:
    """How many earlier orders are outstanding when each claim arrives.

    With `wait` seconds of patience an order counts only until its lead time less the patience is over.

    Args:
        arrivals: epoch seconds, sorted.
        leads: seconds from each arrival to its unit's readiness, the same shape.
        wait: seconds that a claim may wait and still count as served.
    """
    at = np.asarray(arrivals, dtype=np.float64)
    left = np.asarray(leads, dtype=np.float64) - wait
    counts: NDArray[np.bool_] = left > 0
    earlier = np.cumsum(counts, dtype=np.int64) - counts
    ready = np.sort((at + left)[counts])
    return np.asarray(earlier - np.searchsorted(ready, at, side="right"), dtype=np.int64)


def smallest(counts: ArrayLike, level: float) -> int:
    """The smallest target at which at least this share (0..1) of claims finds fewer orders outstanding.

    Raises:
        ValueError: there is no claim to judge by.
    """
    found = np.asarray(counts, dtype=np.int64)
    if not found.size:
        raise ValueError("no claims, no service level")
    served = np.cumsum(np.bincount(found))
    return int(np.searchsorted(served, level * found.size - 1e-9)) + 1


def reached(counts: ArrayLike, units: ArrayLike) -> float:
    """The share (0..1) of claims that a target of so many units serves; 1 without claims."""
    served = np.asarray(counts) < np.asarray(units)
    return float(np.mean(served)) if served.size else 1.0


def replay_servers(orders: ArrayLike, leads: ArrayLike, servers: int | None) -> Times:
    """When each order is ready if at most `servers` of them are in work at a time, first come first served.

    The waiting of an order for its turn belongs here and never into the lead times: a lead time that held it
    would ask for a larger target, which would wait longer.
    """
    at, took = np.asarray(orders, dtype=np.float64), np.asarray(leads, dtype=np.float64)
    if servers is None or servers >= at.size:
        return at + took
    free = [-math.inf] * servers
    ready = []
    for order, lead in zip(at.tolist(), took.tolist(), strict=True):
        done = max(order, free[0]) + lead
        heapq.heapreplace(free, done)
        ready.append(done)
    return np.array(ready)


def drawn(arrivals: Counts, leads: LeadTimes) -> Times:
    """A lead time for each arrival (whole epoch seconds, sorted) of a history; always the same ones."""
    same = np.arange(arrivals.size) - np.searchsorted(arrivals, arrivals)
    return leads.draw((arrivals.astype(np.uint64) << np.uint64(20)) + same.astype(np.uint64))


def lost(arrivals: ArrayLike, leads: ArrayLike, stock: int) -> float:
    """The share (0..1) of claims lost if who finds nothing ready goes elsewhere and orders nothing."""
    at, took = np.asarray(arrivals, dtype=np.float64), np.asarray(leads, dtype=np.float64)
    if not at.size:
        return 0.0
    if stock < 1:
        return 1.0
    free = [-math.inf] * stock
    missed = 0
    for arrival, lead in zip(at.tolist(), took.tolist(), strict=True):
        if free[0] > arrival:
            missed += 1
        else:
            heapq.heapreplace(free, arrival + lead)
    return missed / at.size


def time_to_fill(units: int, leads: LeadTimes, servers: int | None = None) -> float:
    """Seconds until so many units, ordered at once, are all ready, in the slowest of a few draws.

    A hundred units at ten servers take ten boots, not one. For many units it is Graham's bound for list
    scheduling (work / servers + the longest, 1966) with the 99th percentile for the longest. 0 without
    samples.
    """
    if units < 1 or not leads.count:
        return 0.0
    if units > _REPLAYED_UP_TO:
        return units * leads.mean / min(servers or units, units) + (leads.quantile(0.99) or 0.0)
    drawn = leads.draw(np.arange(units * _FILLS, dtype=np.uint64)).reshape(_FILLS, units)
    return max(float(replay_servers(np.zeros(units), fill, servers).max()) for fill in drawn)
