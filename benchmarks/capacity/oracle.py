"""What can be known at best: an oracle that knows the true rate of every moment, past and to come.

Units outstanding at t are Poisson with mean m(t) = ∫ rate(t - u) P(L > u) du: an M_t/G/∞ queue (Eick, Massey,
Whitt, "The physics of the M_t/G/∞ queue", Operations Research 41(4), 1993). Its S(t) is the smallest with
P(outstanding < S) >= level, ordered one long lead time ahead.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import stats

from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.traces import CELL, DAY, Demand, Floats, Lead, Trace, batches
from capacity.counts import outstanding, smallest

_AHEAD = 0.99  # quantile of the lead time that the oracle orders ahead by
_FRESH_DAYS = 80


def levels(demand: Demand, lead: Lead, level: float) -> Levels:
    """The oracle's order-up-to levels over the judged part."""
    if demand.trace.batch > 1.0:
        units = _batched(demand.trace, lead, level)
        return Levels.constant(demand.judged_from, units)
    need = poisson(mean_outstanding(demand.rate, lead), level)
    ahead = int(np.ceil(lead.quantile(_AHEAD) / CELL))
    windows = np.lib.stride_tricks.sliding_window_view(
        np.concatenate((need, np.full(ahead, need[-1]))), ahead + 1
    )
    first = round((demand.judged_from - demand.start) / CELL)
    at: Floats = demand.start + np.arange(need.size, dtype=np.float64) * CELL
    return Levels.sampled(at[first:], windows.max(axis=1)[first:])


def mean_outstanding(rate: Floats, lead: Lead) -> Floats:
    """m(t) for each cell, `rate` in units a second for each cell."""
    survival = lead.survival(int(np.ceil(lead.quantile(0.99999) / CELL)) + 1) * CELL
    survival *= lead.mean / survival.sum()  # the sum over cells is a little off
    return np.convolve(rate, survival)[: rate.size]


def poisson(mean: Floats, level: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Smallest S with P(N <= S - 1) >= level, N Poisson; none where nothing comes."""
    known, index = np.unique(np.round(mean, 6), return_inverse=True)
    units = np.where(known > 0, stats.poisson.ppf(level, known) + 1, 0).astype(np.int64)
    return units[index]


@lru_cache(maxsize=32)
def _batched(trace: Trace, lead: Lead, level: float) -> int:
    """Of a level stream of batches: counted on claims that nobody else sees."""
    random = np.random.default_rng(20_260_105)
    rate = np.full(int(_FRESH_DAYS * DAY / CELL), trace.erlangs / lead.mean)
    arrivals = batches(rate, trace.batch, random)
    return smallest(outstanding(arrivals, lead.draw(random, arrivals.size)), level)
