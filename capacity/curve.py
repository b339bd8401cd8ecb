"""From a history to a target for any level and any time of the week. It must never read a clock.

`build` does the work of a second, beside the event loop; `Curve.estimate` answers in a fraction of a
millisecond. Counts of outstanding orders (`capacity/counts.py`) are what it all rests on: the profile says
what mean to expect when, one negative binomial for the whole pool says how counts spread around it, and the
counts that really were say how far out in its tail the target must lie for the level to be reached.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capacity.counts import drawn, outstanding, replay_servers, time_to_fill
from capacity.history import HOUR, QUARTER, RECENT, Past, Recent
from capacity.profile import SLOTS, Profile, fit, name_of, slot_of
from capacity.sketch import LeadTimes
from capacity.theory import distribution, room

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST: Final = 50  # claims; with fewer there is nothing to say
_IN_TAIL: Final = 3  # claims beyond a level for its empirical quantile to mean something
_UNUSUAL: Final = 14.0  # of the logarithm: demand that chance makes once in a million windows
_CONTRADICTS: Final = 7.0  # of the logarithm: demand that chance makes once in a thousand windows
_DOUBT: Final = 1.5  # standard deviations
_GROWTH: Final = 2.0  # times that recent demand is taken to grow because the profile does
_LONGEST_LOOK: Final = 3600.0  # seconds ahead
_ROUNDING: Final = 0.01  # seconds by which an edge is passed for certain
_LEAST: Final = 1e-6  # orders outstanding
_GRID: Final = 0.01  # of the logarithm of means that are looked up together
_LEFT_TO_CHANCE: Final = 0.05  # of the claims that the level lets wait
_DEAD: Final = 0.01  # of the mean rate
_WIDEST: Final = 20_000  # counts that are told apart


class Basis(StrEnum):
    """What an estimate rests on."""

    FLOOR = "Floor"
    PARAMETRIC = "Parametric"
    EMPIRICAL = "Empirical"


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many units reach the level, on what basis, in a sentence.

    `changes_at`: epoch seconds from which on another quarter of the week counts; None: all are alike.
    """

    units: int
    basis: Basis
    because: str
    changes_at: float | None = None


@dataclass(frozen=True, slots=True)
class SlotDemand:
    """Demand at one time of the week: units an hour, and outstanding orders that an arrival finds."""

    rate_per_hour: float
    mean_outstanding: float
    dispersion: float

    def tail(self, k: Ints) -> Floats:
        """P(an arrival finds at least k outstanding), for each k."""
        at_least = _tails(np.array([self.mean_outstanding]), self.dispersion, int(np.max(k, initial=0)) + 1)[
            0
        ]
        return np.asarray(at_least[np.maximum(k, 0)])


@dataclass(frozen=True, slots=True)
class LeadFigures:
    """Seconds from the order to ready: the figures that a status shows. None: not measured yet."""

    mean: float | None = None
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """What a history says: immutable, for as many decisions as wanted.

    `claims`: units asked for in the window. `means`: outstanding orders that an arrival finds, for each
    quarter of the week. `rarities`: of each claim that was replayed, how rare (0..1) a count as high as its
    own was expected to be, sorted from the rarest. `leads`: what `lead` gives the figures of. `lead_left`:
    mean seconds of a lead time beyond `wait`. `ahead`: seconds to look ahead.
    """

    built_at: float
    claims: int
    lead: LeadFigures
    leads: LeadTimes
    lead_left: float
    profile: Profile
    means: Floats
    dispersion: float
    rarities: Floats
    ahead: float
    servers: int | None
    wait: float

    def estimate(self, level: float, at: float, recent: Recent | None = None) -> Estimate:
        """The smallest target that reaches the level (0..1) for claims that come at `at` and soon after."""
        if self.claims < FEWEST or self.lead.mean is None or not self.rarities.size:
            known = f"{self.claims} claims" if self.lead.mean is not None else "no lead time"
            return Estimate(0, Basis.FLOOR, f"too little is known yet ({known}; {FEWEST} claims are needed)")
        empirical = self.rarities.size * (1 - level) >= _IN_TAIL
        rarity = (1 - level) * (1 + 1e-9)
        if empirical:
            rarity = float(self.rarities[math.floor((1 - level) * self.rarities.size + 1e-9)])
        slots = np.unique(slot_of(np.append(np.arange(at, at + self.ahead, 450.0), at + self.ahead)))
        busiest = int(slots[np.argmax(self.means[slots])])
        units = _units(float(self.means[busiest]), self.dispersion, rarity)
        rate = float(self.profile.rate[busiest])
        if rate < self._dead(level):
            units = 0
        unusual = self.unusual(recent, rate) if recent is not None else 0.0
        lately = 0
        if unusual > rate:
            lately = _units(*_of_bursts(unusual * self.lead_left, self.profile.burst), 1 - level)
            rate = unusual
        return Estimate(
            max(units, lately),
            Basis.EMPIRICAL if empirical else Basis.PARAMETRIC,
            self._because(busiest, rate if lately > units else None),
            changes_at=self.next_change(at),
        )

    def _dead(self, level: float) -> float:
        """The rate (a second) below which a quarter of the week gets no unit: hardly any claim comes."""
        rates = np.sort(self.profile.rate)
        share = np.cumsum(rates) / max(float(rates.sum()), 1e-12)
        few = int(np.searchsorted(share, _LEFT_TO_CHANCE * (1 - level)))
        return min(float(rates[min(few, SLOTS - 1)]), _DEAD * float(rates.mean()))

    def next_change(self, at: float) -> float | None:
        """When the next quarter of the week comes into sight that has another mean; None: there is none."""
        edges = (np.floor((at + self.ahead) / QUARTER) + 1 + np.arange(SLOTS)) * QUARTER
        other = self.means[slot_of(edges)] != self.means[slot_of(edges - QUARTER)]
        return float(edges[np.argmax(other)]) - self.ahead + _ROUNDING if other.any() else None

    def _because(self, slot: int, lately: float | None) -> str:
        found = f"a claim finds {self.means[slot]:.3g} orders outstanding {self._when(slot)}"
        more = f", but lately {round(lately * HOUR)} an hour came" if lately is not None else ""
        return f"{found}{more}, of {self.claims} claims"

    def unusual(self, recent: Recent, rate: float) -> float:
        """The rate (a second) that recent demand speaks for where `rate` is usual; 0: chance explains it.

        How unlikely the units of a window are is Chernoff's bound for Poisson counts, in batches. What is
        believed is _DOUBT standard deviations less than what came: it grows with what is known, and the
        highest of several windows and of several minutes is not higher than what is true.
        """
        highest = found = 0.0
        windows = sorted(zip(RECENT, recent.arrived, recent.seen, strict=True), reverse=True)
        for window, arrived, seen in windows:
            if not arrived or seen < min(RECENT) / 2:
                continue
            expected = max(self.profile.expected(recent.now, float(window)) * seen / window, _LEAST)
            spread = self.profile.variance(expected, seen) / expected
            # A shorter window counts where a longer one does not explain it: it knows less, and trembles.
            again = _unlikely(arrived, found * seen) / spread > _CONTRADICTS if found else True
            if again and _unlikely(arrived, expected) / spread > _UNUSUAL:
                found = max(found, arrived / seen)
                believed = max(0.0, arrived - _DOUBT * math.sqrt(spread * arrived)) / seen
                highest = max(highest, believed * min(rate * seen / expected, _GROWTH))
        return highest

    def demand(self, at: float) -> SlotDemand:
        """Demand at a time of the week, for pricing units."""
        slot = int(slot_of(at))
        rate = float(self.profile.rate[slot]) * HOUR
        return SlotDemand(rate, float(self.means[slot]), self.dispersion)

    def busiest(self) -> tuple[str, float]:
        """When most is asked for as a person says it, and how many units an hour that are."""
        slot = int(np.argmax(self.profile.rate))
        return self._when(slot), float(self.profile.rate[slot]) * HOUR

    def _when(self, slot: int) -> str:
        return "at any time" if self.profile.level else f"around {name_of(slot)}"


def build(
    past: Past,
    *,
    servers: int | None,
    wait: float = 0.0,
    window: float = 28 * 86400.0,
    deadline: float = math.inf,
) -> Curve:
    """Replay what was asked for, and fit what is to be expected.

    Args:
        past: `History.snapshot(now)`.
        servers: units that can be in the making at a time; None: any number.
        wait: seconds that a claim may wait and still count as served.
        window: seconds of history that count.
        deadline: seconds after which an order is given up; no lead time is longer.
    """
    profile = fit(past, window)
    leads = past.leads.cut(deadline) if math.isfinite(deadline) else past.leads
    left = _beyond(leads, wait)
    usual = profile.rate * left
    counts, slots = _replayed(past, leads, servers, wait, _unusual_quarters(past, profile))
    means = usual * _seen_by(counts, usual[slots])
    means = np.exp(np.round(np.log(np.maximum(means, _LEAST)) / _GRID) * _GRID)
    found = means[slots]
    squares = float((found**2).sum())
    dispersion = max(0.0, float(((counts - found) ** 2 - found).sum()) / squares) if squares else 0.0
    return Curve(
        built_at=past.now,
        claims=int(past.arrived[past.quarters * QUARTER > past.now - window - QUARTER].sum()),
        lead=LeadFigures(leads.mean, leads.quantile(0.5), leads.quantile(0.95))
        if leads.count
        else LeadFigures(),
        leads=leads,
        lead_left=left,
        profile=profile,
        means=means,
        dispersion=dispersion,
        rarities=_rarities(counts, found, dispersion),
        ahead=min(_LONGEST_LOOK, (leads.quantile(0.95) or 0.0) + _filling(means, dispersion, leads, servers)),
        servers=servers,
        wait=wait,
    )


def _beyond(leads: LeadTimes, wait: float) -> float:
    """E[max(0, L - wait)], seconds."""
    if not wait:
        return leads.mean
    evenly = np.array([leads.quantile((each + 0.5) / 200) or 0.0 for each in range(200)])
    return float(np.maximum(evenly - wait, 0.0).mean())


def _of_bursts(usual: float, burst: float) -> tuple[float, float]:
    """Mean and dispersion of what an arrival finds if `usual` orders are outstanding on average over time.

    It finds those of earlier batches and, on average, half of its own; with geometric sizes for the spread.
    """
    own = (burst - 1) / 2
    mean = usual + own
    variance = usual * burst + own * (1 + own)
    return mean, max(0.0, variance - mean) / mean**2


def _unlikely(arrived: float, expected: float) -> float:
    """Minus the logarithm of how likely so many or more are, by Chernoff's bound for Poisson counts."""
    return arrived * math.log(arrived / expected) - arrived + expected if arrived > expected else 0.0


def _unusual_quarters(past: Past, profile: Profile) -> Ints:
    """The quarters of an hour in which far more came than the profile explains.

    In those recent demand decides, so a target by the profile is not made for them: a crowd of one morning
    would otherwise be kept room for in every hour of the week.
    """
    expected = np.maximum(profile.rate[slot_of(past.quarters * QUARTER)] * past.seen, _LEAST)
    unlikely = [
        _unlikely(arrived, meant) * meant / profile.variance(meant, seen) > _UNUSUAL
        for arrived, meant, seen in zip(
            past.arrived.tolist(), expected.tolist(), past.seen.tolist(), strict=True
        )
    ]
    return past.quarters[np.array(unlikely, dtype=np.bool_)]


def _replayed(
    past: Past, leads: LeadTimes, servers: int | None, wait: float, unusual: Ints
) -> tuple[Ints, Ints]:
    """Outstanding orders that each claim finds, and its quarter of the week.

    Claims after gaps are left out, and those of unusual quarters.
    """
    at = past.arrivals
    if not leads.count or not at.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    p95 = leads.quantile(0.95) or 0.0
    took = drawn(at, leads)
    counts = outstanding(at, took, wait)
    if servers is not None and counts.max(initial=0) >= servers:
        counts = outstanding(at, replay_servers(at, took, servers) - at, wait)
    # What was before watching began, or in a gap, is unknown: wait until its orders would have come.
    known = at >= at[0] + 2 * p95
    for start, end in past.gaps:
        known[np.searchsorted(at, start) : np.searchsorted(at, end + 2 * p95)] = False
    for quarter in unusual.tolist():
        begin, end = quarter * QUARTER, (quarter + 1) * QUARTER + 2 * p95
        known[np.searchsorted(at, begin) : np.searchsorted(at, end)] = False
    return counts[known], slot_of(at[known])


def _seen_by(counts: Ints, usual: Floats) -> float:
    """How many times the time's mean an arrival finds: more than 1 where claims come in batches."""
    return float(counts.sum()) / float(usual.sum()) if usual.sum() else 1.0


def _filling(means: Floats, dispersion: float, leads: LeadTimes, servers: int | None) -> float:
    """Seconds that the largest rise from one quarter to the next takes beyond one boot.

    The rise is in units that serve 99 of 100, bursts and all: those of the mean alone come too late.
    """
    if not servers:
        return 0.0
    before = int(np.argmax(np.roll(means, -1) - means))
    low, high = (_units(float(means[slot % SLOTS]), dispersion, 0.01) for slot in (before, before + 1))
    return max(0.0, time_to_fill(high - low, leads, servers) - time_to_fill(1, leads))


def _tails(means: Floats, dispersion: float, size: int) -> Floats:
    """P(count >= j) for j < size, a row for each mean; summed from the end, so that small ones are exact."""
    wide = max(size, room(float(means.max()), dispersion))
    shares = distribution(means, dispersion, wide)
    return np.asarray(np.cumsum(shares[:, ::-1], axis=1)[:, ::-1][:, :size])


def _units(mean: float, dispersion: float, rarity: float) -> int:
    """The smallest S for which P(count >= S) is less than the rarity."""
    size = min(_WIDEST, room(mean, dispersion) * 2)
    at_least = _tails(np.array([mean]), dispersion, size)[0]
    return max(1, int(np.searchsorted(-at_least, -rarity, side="right")))


def _rarities(counts: Ints, found: Floats, dispersion: float) -> Floats:
    """P(a count at least as high) for each claim, sorted from the rarest."""
    if not counts.size:
        return np.empty(0)
    means, row = np.unique(found, return_inverse=True)
    rarities = np.empty(counts.size)
    order = np.argsort(row, kind="stable")
    edges = np.searchsorted(row[order], np.arange(means.size + 1))
    for index, mean in enumerate(means.tolist()):
        mine = order[edges[index] : edges[index + 1]]
        theirs = np.minimum(counts[mine], _WIDEST - 1)
        rarities[mine] = _tails(np.array([mean]), dispersion, int(theirs.max()) + 1)[0][theirs]
    return np.sort(rarities)
