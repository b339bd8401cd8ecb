from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.idle import STEP, IdleSpent, day_of

BERLIN = "Europe/Berlin"
HOUR = 3600.0


def at(text: str, zone: str = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


NOON = at("2026-12-02T12:00")


def test_units_that_stand_idle_cost_their_time() -> None:
    spent = IdleSpent()
    spent.observe(10, NOON)
    spent.observe(4, NOON + 2 * HOUR)
    assert spent.today(NOON + 3 * HOUR, BERLIN) == pytest.approx(10 * 2 + 4)


def test_what_was_before_the_first_look_is_not_known() -> None:
    spent = IdleSpent()
    assert spent.today(NOON, BERLIN) == 0
    spent.observe(10, NOON)
    assert spent.today(NOON, BERLIN) == 0


def test_a_new_day_begins_at_midnight_of_its_zone() -> None:
    spent = IdleSpent()
    spent.observe(10, at("2026-12-02T20:00"))
    midnight = at("2026-12-03T00:00")
    assert spent.today(midnight - 1, BERLIN) == pytest.approx(40, rel=1e-3)
    assert spent.today(midnight + HOUR / 2, BERLIN) == pytest.approx(5)
    assert spent.today(midnight + HOUR / 2, "UTC") == pytest.approx(45)


@pytest.mark.parametrize("zone", [BERLIN, "UTC", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns"])
def test_midnight_falls_on_a_step_wherever_one_lives(zone: str) -> None:
    start, end = day_of(NOON, zone)
    assert start % STEP == end % STEP == 0
    assert start <= NOON < end


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-12-02", 24), ("2026-03-29", 23), ("2026-10-25", 25), ("2026-10-26", 24)]
)
def test_a_day_is_as_long_as_its_clock_makes_it(day: str, hours: int) -> None:
    start, end = day_of(at(f"{day}T15:00"), BERLIN)
    assert (end - start) / HOUR == hours
    assert start == at(f"{day}T00:00")


def test_it_survives_a_restart() -> None:
    before = IdleSpent()
    before.observe(6, NOON)
    before.observe(6, NOON + HOUR)
    after = IdleSpent(before.to_pairs())
    after.observe(6, NOON + 2 * HOUR)
    after.observe(0, NOON + 3 * HOUR)
    assert after.today(NOON + 9 * HOUR, BERLIN) == pytest.approx(12)


def test_a_clock_that_is_set_back_books_nothing_twice() -> None:
    spent = IdleSpent()
    spent.observe(6, NOON)
    spent.observe(6, NOON + HOUR)
    spent.observe(6, NOON)
    assert spent.today(NOON + HOUR, BERLIN) == pytest.approx(12)
    assert spent.today(NOON, BERLIN) >= 6


def test_it_keeps_a_day_and_a_bit() -> None:
    spent = IdleSpent()
    for hour in range(24 * 30):
        spent.observe(3, NOON + hour * HOUR)
    assert len(spent.to_pairs()) <= 106


def test_whoever_slept_for_a_year_books_the_last_day_only() -> None:
    spent = IdleSpent()
    spent.observe(2, NOON)
    spent.observe(2, NOON + 365 * 24 * HOUR)
    assert len(spent.to_pairs()) <= 106
    assert spent.today(NOON + 365 * 24 * HOUR, BERLIN) == pytest.approx(24, rel=1e-3)


@given(st.lists(st.tuples(st.floats(0.1, 2_000), st.integers(0, 50)), min_size=1, max_size=20))
def test_it_is_the_area_under_the_idle_units_however_it_is_cut(story: list[tuple[float, int]]) -> None:
    spent, now = IdleSpent(), NOON - 11 * HOUR
    for length, units in story:
        spent.observe(units, now)
        now += length
    area = sum(length * units for length, units in story)
    assert spent.today(now, BERLIN) * HOUR == pytest.approx(area)
