"""How demand varies over the week, as far as the numbers prove it. It must never know a lead time.

From coarse to fine: the whole week, parts of a day, hours, quarters of an hour, the same for working days and
weekends, and each quarter of the week by itself. A finer cell departs from its coarser one only where its
cells differ by more than chance explains, and then by as much as its numbers weigh (an empirical-Bayes
shrinkage, Gamma prior and Poisson counts with dispersion: Robbins 1956, Efron and Morris 1975). So level
demand gives one number, and office hours give their ramps.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capacity.history import DAY, QUARTER, WEEK, Past

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLOTS: Final = WEEK // QUARTER  # from Monday 00:00 UTC
_A_DAY: Final = DAY // QUARTER
_SHIFT: Final = 3 * _A_DAY  # the epoch was a Thursday
_CERTAIN: Final = 4.0  # standard errors by which the variance between cells must exceed what chance makes
_FEW: Final = 30  # units of which nothing is said
_SET_ASIDE: Final = 0.1  # of the residuals: the largest
_OF_THE_REST: Final = (
    0.6235  # P(chi squared of 3 < its quantile) / 0.9 for the 90 % quantile of chi squared of 1
)
_LATELY: Final = (1, 3, 7)  # days
_SHAPED: Final = 2  # days of history from which on today is left out of the shape
_BUSY: Final = 0.7  # of the demand of an average day
_HALF_LIFE: Final = 2.0  # weeks after which an observation weighs half


def slot_of(at: float | Floats | Ints) -> Ints:
    """The quarter of the week (0 is Monday 00:00 UTC) of times in epoch seconds."""
    return np.asarray((np.asarray(at) // QUARTER).astype(np.int64) + _SHIFT) % SLOTS


def name_of(slot: int) -> str:
    """A quarter of the week as a person says it: `Mon 09:15 UTC`."""
    day, quarter = divmod(slot, _A_DAY)
    hour, part = divmod(quarter, 4)
    return f"{('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun')[day]} {hour:02}:{part * 15:02} UTC"


@dataclass(frozen=True, slots=True)
class Profile:
    """`rate`: units a second in each quarter of the week.

    `burst`: variance over mean of the units in a minute or more at a known rate (1: one by one, by chance).
    `unrest`: the same of a quarter of an hour, with what no profile explains; at least `burst`.
    """

    rate: Floats
    burst: float
    unrest: float

    @property
    def level(self) -> bool:
        """Whether demand varies over the week at all, as far as is proved."""
        return bool(np.ptp(self.rate) <= 1e-9 * self.rate.max(initial=0.0))

    def expected(self, end: float, window: float) -> float:
        """Units that the profile expects in so many seconds up to `end`."""
        edges = np.arange((end - window) // QUARTER, end // QUARTER + 1) * QUARTER
        inside = np.minimum(edges + QUARTER, end) - np.maximum(edges, end - window)
        return float((self.rate[slot_of(edges)] * inside).sum())

    def variance(self, expected: float, window: float) -> float:
        """Of the units in so many seconds of which `expected` are expected."""
        return expected * max(self.burst, 1 + (self.unrest - 1) * window / QUARTER)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Quarters that were watched: units and seconds of each, its place in the week, its day, its weight."""

    counts: Floats
    seconds: Floats
    slots: Ints
    days: Ints
    weights: Floats

    def part(self, which: NDArray[np.bool_]) -> "_Seen":
        """Only these quarters."""
        return _Seen(*(getattr(self, each)[which] for each in self.__slots__))


def fit(past: Past, window: float) -> Profile:
    """The profile of the last `window` seconds; of nothing it is level at no demand."""
    known = (past.seen >= 1) & (past.quarters * QUARTER > past.now - window - QUARTER)
    starts = past.quarters[known] * QUARTER
    counts = past.arrived[known].astype(np.float64)
    if not counts.sum():
        return Profile(np.zeros(SLOTS), 1.0, 1.0)
    age = (past.now - starts) / WEEK
    seen = _Seen(counts, past.seen[known], slot_of(starts), starts // DAY, 0.5 ** (age / _HALF_LIFE))
    # What came today says how high demand is now. Its shape is told by the days before, if there are enough.
    older = age > 1 / 7
    shape = seen.part(older) if float(age[0]) >= _SHAPED / 7 and counts[older].sum() else seen
    rate = np.full(SLOTS, float(shape.counts @ shape.weights) / float(shape.seconds @ shape.weights))
    unrest = burst = _burst(past)
    for cells in _groupings():
        rate, unrest = _refined(rate, cells, shape, burst)
    return Profile(_at_today(rate, seen, age, unrest), burst, unrest)


def _groupings() -> list[Ints]:
    """For each refinement the cell of each quarter of the week, from coarse to fine."""
    slots = np.arange(SLOTS)
    quarter, weekend = slots % _A_DAY, slots // (5 * _A_DAY)
    return [
        quarter // 16,
        quarter // 4,
        quarter,
        weekend,
        weekend * 24 + quarter // 4,
        weekend * _A_DAY + quarter,
        slots // 4,
        slots,
    ]


def _refined(rate: Floats, cells: Ints, seen: _Seen, burst: float) -> tuple[Floats, float]:
    """The rates with each cell's own part, and the dispersion of one day's units in a cell around it."""
    size = int(cells.max()) + 1
    # What is close in time is alike: the sum of a day's part in a cell is one observation and not several.
    _, day = np.unique(seen.days * size + cells[seen.slots], return_inverse=True)
    of = np.zeros(int(day.max()) + 1, dtype=np.int64)
    of[day] = cells[seen.slots]
    counts = np.bincount(day, seen.counts)
    expected = np.bincount(day, rate[seen.slots] * seen.seconds)
    weights = np.bincount(day, seen.weights) / np.bincount(day)
    known = np.bincount(of, counts * weights, size)
    meant = np.bincount(of, expected * weights, size)
    ratio = np.divide(known, meant, out=np.ones(size), where=meant > 0)
    spare = counts.size - np.count_nonzero(np.bincount(of, minlength=size))
    # Where each cell was seen once, nothing tells its own part from chance: all of it counts as chance.
    within: Floats = np.asarray(expected * ratio[of] if spare >= size else expected, dtype=np.float64)
    freedom = counts.size / max(int(spare), 1) if spare >= size else 1.0
    unrest = max(burst, _usual((counts - within) ** 2 / np.maximum(within, 1e-9), within) * freedom)
    noise = unrest * np.bincount(of, expected * weights**2, size)
    squares = float((meant**2).sum())
    variance = float(((known - meant) ** 2 - noise).sum()) / squares
    chance = np.sqrt(float((2 * noise**2 + unrest**2 * noise).sum())) / squares
    if variance <= _CERTAIN * chance:
        return rate, unrest
    effective = np.divide(meant**2, noise, out=np.zeros(size), where=noise > 0)  # meant over its dispersion
    shrunken = (effective * ratio + 1 / variance) / (effective + 1 / variance)
    finer = rate * shrunken[cells]
    weighed = seen.seconds * seen.weights
    return finer * float(rate[seen.slots] @ weighed) / float(finer[seen.slots] @ weighed), unrest


def _usual(squares: Floats, weights: Floats) -> float:
    """The mean of squared residuals without the largest tenth, as large as it would be with it for chance.

    What happened once (a crowd, demand that doubled this morning) must not pass for the way things are: the
    next one would not be noticed. Of squares of normal variables the rest has _OF_THE_REST of the mean.
    """
    order = np.argsort(squares, kind="stable")
    kept = order[np.cumsum(weights[order]) <= (1 - _SET_ASIDE) * weights.sum()]
    mass = float(weights[kept].sum())
    return float(squares[kept] @ weights[kept]) / mass / _OF_THE_REST if mass > 0 else 1.0


def _at_today(rate: Floats, seen: _Seen, age: Floats, unrest: float) -> Floats:
    """The rates at the level of the last days, if that differs by more than chance explains.

    They are raised by the days that speak for it the most, if these are busy ones (a Sunday says nothing of
    working days), and lowered only by a whole week: after a holiday demand is back at once.
    """
    surest, factor, week = _CERTAIN, 1.0, float(rate.sum()) * QUARTER
    for days in _LATELY:
        lately = age <= days / 7
        got, meant = float(seen.counts[lately].sum()), float((rate[seen.slots] * seen.seconds)[lately].sum())
        if meant <= 0 or (days < max(_LATELY) and (got < meant or meant < _BUSY * days / 7 * week)):
            continue
        certain = abs(got - meant) / np.sqrt(unrest * meant)
        if certain > surest:
            surest, factor = certain, got / meant
    return rate * factor


def _burst(past: Past) -> float:
    """Variance over mean of a minute's units, whatever the rate does from hour to hour: the size of batches.

    By the differences of neighbouring minutes (von Neumann 1941). For batches that come by chance it is
    E[size²] / E[size].
    """
    if past.arrivals.size < _FEW:
        return 1.0
    minutes = np.bincount((past.arrivals - past.arrivals[0]) // 60)
    steps = np.diff(minutes).astype(np.float64)
    return max(1.0, float(steps @ steps) / max(float((minutes[1:] + minutes[:-1]).sum()), 1.0))
