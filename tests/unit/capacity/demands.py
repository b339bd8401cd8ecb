"""Demand for the tests of the engine: drawn by a seed, from a rate for each quarter of the week."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from capacity.history import QUARTER, WEEK, History, Quarter

MONDAY = 1_767_571_200.0  # 2026-01-05 00:00 UTC
Floats = NDArray[np.float64]


def quarters(rate: Callable[[Floats], Floats], weeks: float) -> Floats:
    """Units a second in each quarter of an hour from MONDAY on; `rate` is told hours since Monday 00:00."""
    hours = (np.arange(int(weeks * WEEK / QUARTER)) + 0.5) / 4 % 168
    return np.broadcast_to(rate(hours), hours.shape).astype(np.float64)


def level(a_second: float) -> Callable[[Floats], Floats]:
    return lambda hours: np.full(hours.shape, a_second)


def office(a_second: float) -> Callable[[Floats], Floats]:
    """Busy on working days from 8 to 18, quiet otherwise."""
    return lambda hours: np.where(
        (hours < 120) & (hours % 24 >= 8) & (hours % 24 < 18), a_second, a_second / 50
    )


def arrivals(rates: Floats, seed: int = 1, batch: float = 1.0) -> Floats:
    """Epoch seconds of a Poisson stream of batches with geometric sizes."""
    random = np.random.default_rng(seed)
    begun = np.repeat(np.arange(rates.size), random.poisson(rates * QUARTER / batch))
    times = np.sort((begun + random.random(begun.size)) * QUARTER) + MONDAY
    return np.repeat(times, random.geometric(1 / batch, times.size))


def leads(count: int, mean: float = 20.0, seed: int = 2) -> Floats:
    return np.random.default_rng(seed).gamma(9, mean / 9, count)


def history(times: Floats, until: float, lead: float = 20.0, boots: int = 600) -> History:
    """What `arrive` would have made of it, at once."""
    of = History(since=MONDAY)
    numbers, counts = np.unique((times // QUARTER).astype(int), return_counts=True)
    of.quarters = {
        int(number): Quarter(arrived=int(count)) for number, count in zip(numbers, counts, strict=True)
    }
    of.arrivals = array("q", times.astype(np.int64).tolist())
    of.roll(until)
    for seconds in leads(boots, lead):
        of.lead(float(seconds))
    return of
