"""Floors for times of the week: which slots are open, or open early to be full in time.

It must never read a clock. Times are epoch seconds; a zone's rules are looked up by name.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from crds.durations import seconds
from crds.warm import Schedule

EARLIEST: Final = 3600.0  # seconds before its start that a slot may begin to fill
_BUCKET: Final = 6 * 3600  # seconds whose firings are reckoned and remembered together
_NEAR: Final = timedelta(hours=3)  # no clock is set by more
_MANY: Final = 4  # firings that may follow each other before a slot counts as open for good


@dataclass(frozen=True, slots=True)
class Slot:
    """One schedule at one instant. `units` is what it asks for now: nothing while it is closed.

    `until`: when it closes (open) or opens (closed), in epoch seconds; None: it does not, for all we know.
    `fills_from`: when units are made for it, or, more than an hour ahead, when that is worth another look.
    """

    schedule: Schedule
    units: int
    open: bool
    until: float | None
    fills_from: float | None = None

    @property
    def never(self) -> bool:
        """Whether no day comes on which it opens."""
        return not self.open and self.until is None

    @property
    def next_change(self) -> float | None:
        """When `units` changes by itself."""
        return self.until if self.units else self.fills_from

    @property
    def because(self) -> str:
        name = f"schedule {self.schedule.name}"
        if self.until is None:
            return f"{name} is open" if self.open else f"{name} never opens: no such day comes"
        when = written(self.until, self.schedule.time_zone)
        if self.open:
            return f"{name} is open until {when}"
        if self.units:
            return f"{name} opens at {when}, and is filled from now on to be full by then"
        return f"{name} opens at {when}"


def written(at: float, zone: str) -> str:
    """A time as people of the zone write it: `Mon 2026-12-07 07:30 Europe/Berlin`."""
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%a %Y-%m-%d %H:%M} {zone}"


def slots(
    schedules: Sequence[Schedule], now: float, *, floor: int, fill: Callable[[int], float]
) -> list[Slot]:
    """Every schedule at this instant, in the order of the spec.

    Args:
        schedules: of the spec.
        now: epoch seconds.
        floor: units that are kept in any case, and need not be made for a slot that opens.
        fill: seconds until so many units, ordered at once, are all ready.
    """
    seen = [_slot(schedule, now) for schedule in schedules]
    there = max([floor, *(slot.units for slot in seen)])
    return [slot if slot.open else _early(slot, now, there, fill) for slot in seen]


def units_at(schedules: Sequence[Schedule], at: float) -> int:
    """What the slots ask for that are open at this time; of several the largest counts."""
    return max((_slot(schedule, at).units for schedule in schedules), default=0)


def _slot(schedule: Schedule, now: float) -> Slot:
    length = seconds(schedule.duration)
    last, following = around(schedule.start, schedule.time_zone, now)
    if last is None or now >= last + length:
        return Slot(schedule, 0, open=False, until=following)
    closes = last + length
    for _ in range(_MANY):
        if following is None or following > closes:
            return Slot(schedule, schedule.replicas, open=True, until=closes)
        closes = following + length
        _, following = around(schedule.start, schedule.time_zone, following)
    return Slot(schedule, schedule.replicas, open=True, until=None)


def _early(slot: Slot, now: float, there: int, fill: Callable[[int], float]) -> Slot:
    opens, replicas = slot.until, slot.schedule.replicas
    if opens is None:
        return slot
    if now < opens - EARLIEST:
        return Slot(slot.schedule, 0, open=False, until=opens, fills_from=opens - EARLIEST)
    ahead = min(EARLIEST, fill(replicas - there)) if replicas > there else 0.0
    # By the whole minute, so that a boot that took a second longer is no news.
    fills_from = (opens - ahead) // 60 * 60
    units = replicas if now >= fills_from else 0
    return Slot(slot.schedule, units, open=False, until=opens, fills_from=fills_from)


def around(start: str, zone: str, at: float) -> tuple[float | None, float | None]:
    """The last firing that is not after this time, and the first one after it; None: there is none."""
    before, within, after = _firings(start, zone, int(at // _BUCKET))
    place = bisect_right(within, at)
    last = within[place - 1] if place else before
    return last, within[place] if place < len(within) else after


@lru_cache(maxsize=8192)
def _firings(start: str, zone: str, bucket: int) -> tuple[float | None, tuple[float, ...], float | None]:
    """The last firing before a bucket of time, those in it, and the first one after it.

    Cron is reckoned in the zone's local time and then put on the line of real time: a local time that a clock
    change skips is the end of what it skips; one that it repeats counts once, and both times where the hour
    is a star. (Debian's cron does the same with jobs at a fixed time.)
    """
    where = ZoneInfo(zone)
    first, end = bucket * _BUCKET, (bucket + 1) * _BUCKET
    # Where no clock is set near by, local time is real time.
    begin, stop = (datetime.fromtimestamp(edge, where).replace(tzinfo=None) for edge in (first, end))
    if (datetime.fromtimestamp(first, where) - _NEAR).utcoffset() != (
        datetime.fromtimestamp(end, where) + _NEAR
    ).utcoffset():
        begin, stop = begin - _NEAR, stop + _NEAR
    both = start.split()[1].startswith("*")
    found: set[float] = set()
    for local in _locals(start, begin, stop):
        found.update(_real(local, where, both=both))
    times = sorted(found)
    within = tuple(time for time in times if first <= time < end)
    before = max((time for time in times if time < first), default=None)
    after = min((time for time in times if time >= end), default=None)
    if before is None and (earlier := _one(start, begin, reverse=True)) is not None:
        before = max(_real(earlier, where, both=both))
    if after is None and (later := _one(start, stop - timedelta(seconds=1), reverse=False)) is not None:
        after = min(_real(later, where, both=both))
    return before, within, after


def _locals(start: str, begin: datetime, stop: datetime) -> list[datetime]:
    """The local times from `begin` on and before `stop` at which the expression fires."""
    found = []
    for local in _iterate(start, begin - timedelta(seconds=1), reverse=False):
        if local >= stop:
            break
        found.append(local)
    return found


def _one(start: str, beside: datetime, *, reverse: bool) -> datetime | None:
    return next(_iterate(start, beside, reverse=reverse), None)


def _iterate(start: str, beside: datetime, *, reverse: bool) -> Iterator[datetime]:
    try:
        return CronSim(start, beside, reverse=reverse)
    except CronSimError:
        return iter(())


def _real(local: datetime, where: ZoneInfo, *, both: bool) -> tuple[float, ...]:
    """The moments of real time that a local time stands for."""
    early, late = (local.replace(tzinfo=where, fold=fold).timestamp() for fold in (0, 1))
    if early == late:
        return (early,)
    if early < late:  # it comes twice
        return (early, late) if both else (early,)
    # It is skipped, and the clock is set between the two readings of it.
    low, high = late, early
    before = datetime.fromtimestamp(low, where).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        same = datetime.fromtimestamp(middle, where).utcoffset() == before
        low, high = (middle, high) if same else (low, middle)
    return (high,)
