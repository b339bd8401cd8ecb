"""What was asked for, when, and how long units took: all that the engine knows of the past.

One writer, no locks, no clock: every call says its own time, in epoch seconds UTC. It must never hold more
than a bounded number of anything.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capacity.leads import Leads
from capacity.sketch import LeadTimes

HOUR: Final = 3600
QUARTER: Final = 900  # seconds: what is counted together once single arrivals are forgotten
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
DETAILED: Final = WEEK  # how long each arrival is kept
KEPT: Final = 28 * DAY  # how long the numbers of each quarter of an hour are kept
MOST_ARRIVALS: Final = 100_000  # kept one by one; the oldest are only counted by the quarter then
MOST_GAPS: Final = 500
MOST_REFUSED: Final = 1000
RETRY_WITHIN: Final = 60.0  # seconds after a refusal in which the same claimant's next claim is the same wish
_LATE: Final = 8  # of the gaps, so many of the newest may still touch what is told now
RECENT: Final = (60, 120, 300, 600, 1200, HOUR, 6 * HOUR, DAY)  # seconds of the windows in `Recent`


_HOUR: Final = RECENT.index(HOUR)


@dataclass(slots=True)
class Quarter:
    """A quarter of an hour of the clock: units that arrived, seconds that do not count, claims served."""

    arrived: int = 0
    gap: float = 0.0
    served: int = 0
    warm: int = 0


@dataclass(frozen=True, slots=True)
class Recent:
    """Demand of the last minutes up to `now`: units that arrived, and seconds seen, by window of RECENT."""

    now: float
    arrived: tuple[int, ...] = (0,) * len(RECENT)
    seen: tuple[float, ...] = (0.0,) * len(RECENT)


@dataclass(frozen=True, slots=True)
class Past:
    """An immutable copy of a history, for the work that is done beside the event loop.

    `arrivals`: whole epoch seconds, sorted, one entry a unit. `quarters`: epoch quarters of an hour
    (seconds // 900), with `arrived` units in each and `seen` seconds of each in which demand was watched.
    `gaps`: (start, end) rows.
    """

    now: float
    since: float
    arrivals: NDArray[np.int64]
    quarters: NDArray[np.int64]
    arrived: NDArray[np.int64]
    seen: NDArray[np.float64]
    gaps: NDArray[np.float64]
    leads: LeadTimes


@dataclass(slots=True)
class History:
    """Arrivals, lead times, outcomes and gaps of one pool.

    `since`: when watching began; what is before it is not "no demand" but unknown.
    `detail_since`: from when on each arrival is kept by itself.
    `note`: a sentence about what was left out of it, for the status.
    """

    since: float
    detail_since: float = 0.0
    arrivals: "array[int]" = field(default_factory=lambda: array("q"))
    quarters: dict[int, Quarter] = field(default_factory=dict)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    leads: Leads = field(default_factory=Leads)
    note: str = ""
    _refused: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.detail_since = max(self.detail_since, self.since)

    def arrive(self, at: float, units: int = 1, who: str = "") -> None:
        """A claim of so many units arrived; a batch of k is k. A retry after `refused` is no new demand.

        One from before `since` is left out: nothing is known of what else was asked for then.
        """
        if at < self.since or units < 1:
            return
        units -= self._retried(at, units, who)
        second = int(at)
        if not any(start <= at < end for start, end in self.gaps[-_LATE:]):
            self._quarter(at).arrived += units
        if second < self.detail_since:
            return
        if not self.arrivals or self.arrivals[-1] <= second:
            self.arrivals.extend([second] * units)
        else:
            place = bisect_right(self.arrivals, second)
            self.arrivals[place:place] = array("q", [second] * units)

    def refused(self, at: float, units: int = 1, who: str = "") -> None:
        """A claim failed because nothing was ready; if `who` asks again within a minute it counts once."""
        if who and (who in self._refused or len(self._refused) < MOST_REFUSED):
            before = self._refused.setdefault(who, [])
            before.extend([at] * min(units, MOST_REFUSED - len(before)))

    def _retried(self, at: float, units: int, who: str) -> int:
        before = [then for then in self._refused.pop(who, ()) if at - then <= RETRY_WITHIN] if who else []
        known = min(units, len(before))
        if len(before) > known:
            self._refused[who] = before[known:]
        return known

    def served(self, at: float, *, warm: bool, units: int = 1) -> None:
        """A claim was served: `warm` if it waited no longer than the service level's maxWait."""
        quarter = self._quarter(at)
        quarter.served += units
        quarter.warm += units * warm

    def lead(self, seconds: float, tier: str = "", revision: str = "") -> None:
        """An order took so long from its creation to ready. Leave out what an outage or the brake delayed."""
        self.leads.add(seconds, tier, revision)

    def gap(self, start: float, end: float) -> None:
        """Time that does not count: nobody watched, or units could not be made. Overlaps are merged."""
        if end <= start:
            return
        before = self._covered()
        insort(self.gaps, (start, end))
        merged: list[tuple[float, float]] = []
        for begin, stop in self.gaps:
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
            else:
                merged.append((begin, stop))
        self.gaps = merged[-MOST_GAPS:]
        for number, seconds in self._covered().items():
            if (more := seconds - before.get(number, 0.0)) > 0:
                quarter = self._quarter(number * QUARTER)
                quarter.gap += more
                quarter.arrived = self._watched(number)

    def _watched(self, number: int) -> int:
        """Units that arrived in an epoch quarter outside of all gaps."""
        begin, stop = number * QUARTER, (number + 1) * QUARTER
        hidden = sum(
            max(0, self._between(max(start, begin), min(end, stop))) for start, end in self.gaps[-_LATE:]
        )
        return self._between(begin, stop) - hidden

    def _between(self, start: float, end: float) -> int:
        return bisect_left(self.arrivals, end) - bisect_left(self.arrivals, start)

    def _covered(self) -> dict[int, float]:
        """Seconds of each epoch quarter that the gaps cover."""
        covered: dict[int, float] = {}
        for start, end in self.gaps:
            first = max(start, end - KEPT)
            for number in range(int(first // QUARTER), int(end // QUARTER) + 1):
                inside = min(end, (number + 1) * QUARTER) - max(first, number * QUARTER)
                if inside > 0:
                    covered[number] = covered.get(number, 0.0) + inside
        return covered

    def roll(self, now: float) -> None:
        """Forget what is too old. Call it every few minutes."""
        oldest = now - DETAILED
        if len(self.arrivals) > MOST_ARRIVALS:
            oldest = max(oldest, self.arrivals[-MOST_ARRIVALS] + 1)
        self.forget_arrivals(oldest)
        for number in [number for number in self.quarters if (number + 1) * QUARTER <= now - KEPT]:
            del self.quarters[number]
        self.since = max(self.since, now - KEPT)
        self.gaps = [(start, end) for start, end in self.gaps if end > self.detail_since]
        for who, times in list(self._refused.items()):
            if now - times[-1] > RETRY_WITHIN:
                del self._refused[who]

    def forget_arrivals(self, before: float) -> None:
        """Keep arrivals one by one from then on only; the quarters still count the older ones."""
        del self.arrivals[: bisect_left(self.arrivals, before)]
        self.detail_since = max(self.detail_since, before)

    @property
    def claims(self) -> int:
        """Units asked for in the last four weeks, gaps left out."""
        return sum(quarter.arrived for quarter in self.quarters.values())

    def hit_ratio(self, now: float, window: float = WEEK) -> float | None:
        """The share (0..1) of claims served warm, by whole quarters of an hour; None if none was served."""
        first = int((now - window) // QUARTER)
        within = [quarter for number, quarter in self.quarters.items() if number > first]
        served = sum(quarter.served for quarter in within)
        return sum(quarter.warm for quarter in within) / served if served else None

    def claims_per_hour(self, now: float) -> float:
        """Units asked for in the last hour, or since watching began, as a rate."""
        recent = self.recent(now)
        return recent.arrived[_HOUR] * HOUR / max(recent.seen[_HOUR], float(RECENT[0]))

    def recent(self, now: float) -> Recent:
        """What arrived lately, for `Curve.estimate`."""
        last = bisect_right(self.arrivals, int(now))
        arrived, seen = [], []
        for window in RECENT:
            start = max(now - window, self.since)
            gaps = [(max(begin, start), min(end, now)) for begin, end in self.gaps[-_LATE:]]
            inside = [(begin, end) for begin, end in gaps if end > begin]
            hidden = sum(self._between(max(begin, int(start) + 1), end) for begin, end in inside)
            arrived.append(last - bisect_left(self.arrivals, int(start) + 1) - hidden)
            seen.append(max(0.0, now - start - sum(end - begin for begin, end in inside)))
        return Recent(now, tuple(arrived), tuple(seen))

    def snapshot(self, now: float, *, tier: str = "", revision: str | None = None) -> Past:
        """An immutable copy, with the lead times of one tier and revision (None: the one measured last)."""
        first = int(max(self.since, now - KEPT) // QUARTER)
        numbers = range(first, max(first, int(now // QUARTER)) + 1)
        nothing = Quarter()
        of = [self.quarters.get(number, nothing) for number in numbers]
        starts = np.fromiter(numbers, dtype=np.int64) * QUARTER
        watched = np.minimum(starts + QUARTER, now) - np.maximum(starts, self.since)
        return Past(
            now=now,
            since=self.since,
            arrivals=np.array(self.arrivals, dtype=np.int64),
            quarters=starts // QUARTER,
            arrived=np.array([quarter.arrived for quarter in of], dtype=np.int64),
            seen=np.clip(watched - np.array([quarter.gap for quarter in of]), 0.0, None),
            gaps=np.array(self.gaps, dtype=np.float64).reshape(-1, 2),
            leads=self.leads.of(tier, revision),
        )

    def _quarter(self, at: float) -> Quarter:
        return self.quarters.setdefault(int(at // QUARTER), Quarter())
