from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given
from hypothesis import strategies as st

from capacity.schedules import EARLIEST, Slot, _firings, around, slots, units_at
from crds.warm import Schedule

BERLIN = "Europe/Berlin"
MINUTE, HOUR = 60.0, 3600.0


def at(text: str, zone: str = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def schedule(**changed: Any) -> Schedule:
    written = {
        "name": "office",
        "start": "30 7 * * mon-fri",
        "timeZone": BERLIN,
        "duration": "10h",
        "replicas": 20,
    }
    return Schedule.model_validate({**written, **changed})


def boots(seconds: float, servers: int = 10) -> Callable[[int], float]:
    """How long so many units take if each boots for so long and so many boot at once."""
    return lambda units: math.ceil(units / servers) * seconds


THIRTY_SECONDS = boots(30)


def one(now: float, *, floor: int = 0, fill: Callable[[int], float] = THIRTY_SECONDS, **changed: Any) -> Slot:
    return slots([schedule(**changed)], now, floor=floor, fill=fill)[0]


@pytest.mark.parametrize(
    ("time", "units"),
    [
        ("2026-12-02T07:28", 0),
        ("2026-12-02T07:30", 20),
        ("2026-12-02T12:00", 20),
        ("2026-12-02T17:29:59", 20),
        ("2026-12-02T17:30", 0),
        ("2026-12-05T12:00", 0),  # a Saturday
    ],
)
def test_a_slot_asks_for_its_units_while_it_is_open(time: str, units: int) -> None:
    assert one(at(time)).units == units


def test_a_slot_that_is_open_already_when_the_engine_starts_counts() -> None:
    _firings.cache_clear()
    assert one(at("2026-12-02T16:00")).units == 20


def test_an_open_slot_says_until_when_in_its_own_zone() -> None:
    slot = one(at("2026-12-02T16:00"))
    assert slot.because == "schedule office is open until Wed 2026-12-02 17:30 Europe/Berlin"
    assert slot.next_change == at("2026-12-02T17:30")


def test_a_closed_slot_says_when_it_opens() -> None:
    slot = one(at("2026-12-04T18:00"))
    assert slot.because == "schedule office opens at Mon 2026-12-07 07:30 Europe/Berlin"
    assert not slot.open


def test_a_slot_opens_early_enough_to_be_full_in_time() -> None:
    opening = at("2026-12-02T07:30")
    assert one(opening - 6 * MINUTE, replicas=100).units == 0
    early = one(opening - 5 * MINUTE, replicas=100)  # ten boots, one after another
    assert (early.units, early.open) == (100, False)
    assert "is filled from now on to be full by then" in early.because
    assert early.next_change == opening


def test_what_is_kept_anyway_need_not_be_made_for_a_slot() -> None:
    opening = at("2026-12-02T07:30")
    assert one(opening - 4 * MINUTE, floor=60, replicas=100).units == 0
    assert one(opening - 2 * MINUTE, floor=60, replicas=100).units == 100
    assert one(opening - 1, floor=100, replicas=100).units == 0


def test_what_another_open_slot_keeps_need_not_be_made_either() -> None:
    day = schedule(name="day", start="0 0 * * *", duration="24h", replicas=60)
    peak = schedule(replicas=100)
    opening = at("2026-12-02T07:30")
    before = slots([day, peak], opening - 4 * MINUTE, floor=0, fill=boots(30))
    assert [slot.units for slot in before] == [60, 0]
    after = slots([day, peak], opening - 2 * MINUTE, floor=0, fill=boots(30))
    assert [slot.units for slot in after] == [60, 100]


def test_a_slot_opens_no_more_than_an_hour_early() -> None:
    opening = at("2026-12-02T07:30")
    assert one(opening - EARLIEST - MINUTE, fill=boots(9_999)).units == 0
    assert one(opening - EARLIEST, fill=boots(9_999)).units == 20


def test_a_closed_slot_says_when_its_filling_begins() -> None:
    opening = at("2026-12-02T07:30")
    assert one(opening - HOUR, replicas=100).next_change == opening - 5 * MINUTE


def test_what_a_fill_takes_is_not_reckoned_before_the_last_hour() -> None:
    def never(_: int) -> float:
        raise AssertionError

    opening = at("2026-12-02T07:30")
    assert one(opening - 2 * HOUR, fill=never).next_change == opening - EARLIEST


def test_a_boot_that_took_a_second_longer_is_no_news() -> None:
    opening = at("2026-12-02T07:30")
    first, second = (one(opening - 10 * MINUTE, fill=boots(seconds, 20)).fills_from for seconds in (100, 101))
    assert first == second == opening - 2 * MINUTE


def test_several_open_slots_each_say_what_they_ask_for() -> None:
    both = [schedule(), schedule(name="lunch", start="0 12 * * *", duration="1h", replicas=35)]
    noon = at("2026-12-02T12:10")
    assert [slot.units for slot in slots(both, noon, floor=0, fill=boots(30))] == [20, 35]
    assert units_at(both, noon) == 35
    assert units_at(both, at("2026-12-02T13:10")) == 20
    assert units_at(both, at("2026-12-02T20:10")) == 0
    assert units_at([], noon) == 0


def test_slots_that_follow_each_other_without_a_gap_are_open_until_the_last_one_closes() -> None:
    slot = one(at("2026-12-02T08:10"), start="0 8-10 * * *", duration="1h")
    assert slot.until == at("2026-12-02T11:00")


def test_a_slot_that_opens_before_it_closes_is_open_for_good_and_does_not_tick() -> None:
    told = {
        one(at("2026-12-02T08:00") + 17 * n, start="*/5 * * * *", duration="10m").because for n in range(200)
    }
    assert told == {"schedule office is open"}


def test_a_slot_may_be_longer_than_the_time_between_its_openings() -> None:
    assert one(at("2026-12-05T12:00"), start="0 8 * * fri", duration="72h").units == 20
    assert one(at("2026-12-07T08:01"), start="0 8 * * fri", duration="72h").units == 0


@pytest.mark.parametrize("start", ["0 8 30 2 *", "0 8 31 4 *"])
def test_a_day_that_never_comes_never_opens_and_says_so(start: str) -> None:
    slot = one(at("2026-12-02T12:00"), start=start)
    assert (slot.units, slot.next_change) == (0, None)
    assert slot.because == "schedule office never opens: no such day comes"


def test_a_leap_day_is_found_years_ahead() -> None:
    slot = one(at("2026-12-02T12:00"), start="0 8 29 2 *")
    assert slot.until == at("2028-02-29T08:00")


class TestWhenTheClockIsSet:
    def test_a_time_in_the_lost_hour_fires_at_its_end(self) -> None:
        last, following = around("30 2 * * *", BERLIN, at("2026-03-29T01:00"))
        assert last == at("2026-03-28T02:30")
        assert following == at("2026-03-29T03:00")

    def test_several_times_in_the_lost_hour_fire_together_at_its_end(self) -> None:
        lost = at("2026-03-29T01:59")
        assert around("*/20 2 * * *", BERLIN, lost)[1] == at("2026-03-29T03:00")
        assert around("*/20 2 * * *", BERLIN, at("2026-03-29T03:00"))[1] == at("2026-03-30T02:00")

    def test_a_time_in_the_repeated_hour_fires_once(self) -> None:
        first = at("2026-10-25T02:30")
        assert around("30 2 * * *", BERLIN, first - 1)[1] == first
        assert around("30 2 * * *", BERLIN, first)[1] == at("2026-10-26T02:30")

    def test_what_fires_every_hour_fires_in_both(self) -> None:
        first, second = at("2026-10-25T02:30"), at("2026-10-25T02:30", fold=1)
        assert second - first == HOUR
        assert around("30 * * * *", BERLIN, first)[1] == second
        assert around("30 * * * *", BERLIN, second)[1] == at("2026-10-25T03:30")

    def test_a_slot_is_open_for_its_length_in_real_time(self) -> None:
        slot = one(at("2026-03-29T01:30"), start="0 1 * * *", duration="2h")
        assert slot.until == at("2026-03-29T04:00")

    def test_a_slot_that_opens_all_the_time_is_open_through_both_changes(self) -> None:
        for day in ("2026-03-29T00:30", "2026-10-25T00:30"):
            for minute in range(240):
                assert one(at(day) + minute * MINUTE, start="*/5 * * * *", duration="5m").units == 20

    def test_half_an_hour_may_be_lost_as_well(self) -> None:
        # Lord Howe sets its clock by half an hour, at 2:00 on 4 October 2026.
        assert around("15 2 * * *", "Australia/Lord_Howe", at("2026-10-04T01:00", "Australia/Lord_Howe"))[
            1
        ] == at("2026-10-04T02:30", "Australia/Lord_Howe")


ZONES = st.sampled_from(["UTC", BERLIN, "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"])
STARTS = st.sampled_from(
    ["30 7 * * mon-fri", "*/7 * * * *", "0 */3 * * *", "15 2 * * *", "0 0 1 * *", "5 2 29 2 *"]
)
TIMES = st.floats(at("2026-01-01T00:00"), at("2027-06-01T00:00"))


@given(STARTS, ZONES, TIMES)
def test_time_lies_between_the_last_firing_and_the_next(start: str, zone: str, now: float) -> None:
    last, following = around(start, zone, now)
    assert last is not None
    assert following is not None
    assert last <= now < following


@given(STARTS, ZONES, TIMES)
def test_the_firing_after_the_last_one_is_the_next_one(start: str, zone: str, now: float) -> None:
    last, following = around(start, zone, now)
    assert last is not None
    assert around(start, zone, last) == (last, following)


@given(STARTS, TIMES)
@example("*/7 * * * *", 1811800799.9999998)
def test_in_a_zone_without_changes_cronsim_says_the_same(start: str, now: float) -> None:
    # By whole seconds: a datetime rounds to the next microsecond, and may be past what is asked about.
    expected = next(CronSim(start, datetime.fromtimestamp(math.floor(now), ZoneInfo("UTC"))))
    assert around(start, "UTC", now)[1] == expected.timestamp()


@given(STARTS, ZONES, TIMES, st.sampled_from(["7m", "45m", "10h", "200h"]))
def test_a_slot_changes_no_sooner_than_it_says(start: str, zone: str, now: float, duration: str) -> None:
    slot = one(now, start=start, timeZone=zone, duration=duration)
    if slot.next_change is not None:
        assert slot.next_change > now
        soon = now + (slot.next_change - now) * 0.99
        assert one(soon, start=start, timeZone=zone, duration=duration).units == slot.units
        later = one(slot.next_change, start=start, timeZone=zone, duration=duration)
        looked = later.fills_from != slot.fills_from
        assert later.units != slot.units or later.open != slot.open or looked


def test_a_week_of_asking_costs_a_few_reckonings() -> None:
    _firings.cache_clear()
    start = at("2026-12-02T00:00")
    for minute in range(0, 7 * 24 * 60, 7):
        one(start + minute * MINUTE)
    assert _firings.cache_info().misses <= 30


def test_days_of_another_zone_are_days_there() -> None:
    tokyo = timedelta(hours=9)
    opening = datetime(2026, 12, 7, 7, 30, tzinfo=ZoneInfo("UTC")) - tokyo
    slot = one(opening.timestamp() - HOUR, timeZone="Asia/Tokyo")
    assert slot.until == opening.timestamp()
    assert "Mon 2026-12-07 07:30 Asia/Tokyo" in slot.because
