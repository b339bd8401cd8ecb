"""Textbook formulae: to check the counts against, and for the shape where there are too few of them.

It must never read a history.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Shares = NDArray[np.float64]

_LARGEST: Final = 1_000_000  # units; a number beyond is a mistake of the caller's
_POISSON_BELOW: Final = 1e-6  # dispersion at which the two distributions are the same for every use here


def distribution(means: ArrayLike, dispersion: float, size: int) -> Shares:
    """P(count = j) for j < size, one row for each mean: negative binomial with Var = mean + dispersion mean².

    At dispersion 0 it is Poisson. In logarithms, so that a mean of thousands does not underflow.
    """
    mean = np.maximum(np.atleast_1d(np.asarray(means, dtype=np.float64)), 1e-12)[:, None]
    j = np.arange(size, dtype=np.float64)[None, :]
    if dispersion < _POISSON_BELOW:
        factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, size)))))
        return np.exp(j * np.log(mean) - mean - factorials)
    shape = 1 / dispersion
    steps = np.arange(1, size)
    ways = np.concatenate(([0.0], np.cumsum(np.log((shape + steps - 1) / steps))))
    return np.exp(ways - shape * np.log1p(mean * dispersion) + j * np.log(mean / (mean + shape)))


def room(mean: float, dispersion: float) -> int:
    """A size of `distribution` beyond which (for levels up to 99.99 %) nothing is left to be found."""
    return int(mean + 14 * np.sqrt(mean + dispersion * mean**2) + 40 * max(1.0, dispersion * mean)) + 1


def quantile_target(mean: float, level: float, dispersion: float = 0.0) -> int:
    """The smallest S with P(count < S) >= level: the target at which at most 1 - level of claims wait.

    Counts of outstanding orders are Poisson for Poisson arrivals, whatever the lead times (M/G/infinity,
    Palm 1938); the negative binomial stands for arrivals in batches and for rates that vary.

    Raises:
        ValueError: a mean that no pool has.
    """
    if not 0 <= mean <= _LARGEST:
        raise ValueError(f"{mean} outstanding orders on average")
    below = np.cumsum(distribution(mean, dispersion, room(mean, dispersion))[0])
    return int(np.searchsorted(below, level - 1e-12)) + 1


def erlang_b(load: float, servers: int) -> float:
    """The share (0..1) of claims lost by `servers` units at `load` = rate · mean lead time (Erlang 1917)."""
    blocked = 1.0
    for each in range(1, servers + 1):
        blocked = load * blocked / (each + load * blocked)
    return blocked


def loss_target(load: float, level: float) -> int:
    """The smallest stock that loses at most 1 - level of claims that go elsewhere when it is empty."""
    blocked, servers = 1.0, 0
    while blocked > 1 - level + 1e-12:
        servers += 1
        blocked = load * blocked / (servers + load * blocked)
    return servers
