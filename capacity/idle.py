"""How many unit-hours stood idle today, which a budget is spent on. It must never know what a unit is."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from capacity.budget import Piece

STEP: Final = 900
"""Seconds of one entry: every zone's midnight falls on a quarter of an hour."""
_KEPT: Final = 26 * 3600 // STEP  # entries: the longest day has 25 hours
_HOUR: Final = 3600.0


def day_of(now: float, zone: str) -> tuple[float, float]:
    """When the day of `now` began and ends in this zone, in epoch seconds: 23, 24 or 25 hours apart.

    Raises:
        zoneinfo.ZoneInfoNotFoundError: nobody knows the zone; a spec that was parsed names none such.
    """
    where = ZoneInfo(zone)
    midnight = datetime.fromtimestamp(now, where).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return midnight.timestamp(), (midnight + timedelta(days=1)).timestamp()


class IdleSpent:
    """Unit-seconds that stood idle, by quarter of an hour, over the last day.

    Idle are units that are ready, unready or being reset: everything that costs and that nobody uses.
    """

    __slots__ = ("_at", "_spent", "_units", "remembered")

    def __init__(self, pairs: Iterable[tuple[int, float]] = ()) -> None:
        """Start with what `to_pairs` gave, perhaps by another process."""
        self._spent: dict[int, float] = {int(step): float(seconds) for step, seconds in pairs}
        self._at: float | None = None
        self._units = 0
        self.remembered: tuple[object, Sequence[Piece]] | None = None
        """What was last reckoned of the rest of the day, and what it rested on: it holds for an hour."""

    def observe(self, units: int, now: float) -> None:
        """So many units are idle from now on; what was idle until now is booked.

        The first call books nothing: what was before it is not known.
        """
        self._book(now)
        self._at, self._units = now, units

    def today(self, now: float, zone: str, until: float = math.inf) -> float:
        """Unit-hours that stood idle since the day began in this zone, or before a quarter-hour `until`."""
        self._book(now)
        start, end = day_of(now, zone)
        first, last = int(start // STEP), int(min(end, until) // STEP)
        return sum(seconds for step, seconds in self._spent.items() if first <= step < last) / _HOUR

    def to_pairs(self) -> list[tuple[int, float]]:
        """(quarter of an hour since the epoch, unit-seconds): about a hundred, for whoever writes it down."""
        return sorted((step, round(seconds, 1)) for step, seconds in self._spent.items())

    def _book(self, now: float) -> None:
        if self._at is None or now <= self._at:
            return
        # Whoever was away for longer than a day need not be told of more than that.
        start = max(self._at, now - _KEPT * STEP)
        for step in range(int(start // STEP), int(now // STEP) + 1):
            seconds = min(now, (step + 1) * STEP) - max(start, step * STEP)
            if self._units and seconds > 0:
                self._spent[step] = self._spent.get(step, 0.0) + seconds * self._units
        oldest = int(now // STEP) - _KEPT
        for step in [step for step in self._spent if step < oldest]:
            del self._spent[step]
        self._at = now
