"""The profile follows what the numbers prove, and nothing else."""

import numpy as np
import pytest

from capacity.history import DAY, HOUR, KEPT, QUARTER, WEEK, History
from capacity.profile import SLOTS, Profile, fit, name_of, slot_of
from tests.unit.capacity.demands import MONDAY, arrivals, history, level, office, quarters

FOUR_WEEKS = 4.0


def profile(rates: np.ndarray, seed: int = 1, batch: float = 1.0) -> Profile:
    until = MONDAY + rates.size * QUARTER
    return fit(history(arrivals(rates, seed, batch), until).snapshot(until), KEPT)


def test_the_week_begins_on_monday_at_midnight_utc() -> None:
    assert slot_of(MONDAY) == 0
    assert slot_of(MONDAY - 1) == SLOTS - 1
    assert slot_of(MONDAY + WEEK + 3 * HOUR) == 12
    assert slot_of(np.array([MONDAY, MONDAY + QUARTER])).tolist() == [0, 1]
    assert (name_of(0), name_of(4 * 96 + 37)) == ("Mon 00:00 UTC", "Fri 09:15 UTC")


@pytest.mark.parametrize("a_second", [0.001, 0.02, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_level_demand_gives_one_number(a_second: float, seed: int) -> None:
    found = profile(quarters(level(a_second), FOUR_WEEKS), seed)
    assert found.level
    assert found.rate[0] == pytest.approx(a_second, rel=0.1)
    assert found.unrest == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_batches_are_no_profile(seed: int) -> None:
    found = profile(quarters(level(0.1), FOUR_WEEKS), seed, batch=5)
    assert found.level
    assert found.burst == pytest.approx(9, rel=0.15)  # E[size²] / E[size] of a geometric size of mean 5


def test_office_hours_are_seen_within_a_week_and_sharply_after_four() -> None:
    for weeks, error in ((1.0, 0.3), (FOUR_WEEKS, 0.15)):
        rates = quarters(office(0.05), weeks)
        found = profile(rates)
        truth = quarters(office(0.05), 1.0)
        busy = truth > 0.01
        assert not found.level
        assert np.abs(found.rate[busy] / 0.05 - 1).mean() < error
        assert found.rate[~busy].mean() < 0.003


def test_a_ramp_is_followed_by_the_quarter_of_an_hour() -> None:
    found = profile(quarters(lambda hours: 0.02 + 0.5 * np.clip(hours % 24 - 7, 0, 2), FOUR_WEEKS))
    morning = found.rate[28:36]  # Monday from 07:00 to 09:00
    assert (np.diff(morning) > 0).all()
    assert morning[-1] == pytest.approx(0.02 + 0.5 * 1.875, rel=0.1)


def test_one_week_proves_no_difference_between_mondays_and_tuesdays_but_four_do() -> None:
    def mondays(hours: np.ndarray) -> np.ndarray:
        return np.where(hours < 24, 0.1, 0.02)

    one, four = profile(quarters(mondays, 1.0)), profile(quarters(mondays, FOUR_WEEKS))
    assert one.rate[:96].mean() == pytest.approx(one.rate[96:192].mean(), rel=0.01)
    assert four.rate[:96].mean() == pytest.approx(0.1, rel=0.1)
    assert four.rate[96:192].mean() == pytest.approx(0.02, rel=0.15)


def test_hours_that_are_busy_on_other_days_each_week_are_called_unrest() -> None:
    random = np.random.default_rng(3)
    rates = quarters(level(0.0), FOUR_WEEKS)
    for day in range(28):
        start = day * 96 + random.integers(0, 88)
        rates[start : start + 8] = 0.5
    found = profile(rates)
    assert found.unrest > 100
    assert found.rate.max() < 0.25


def test_no_demand_has_a_profile_without_demand() -> None:
    found = fit(History(since=MONDAY).snapshot(MONDAY + DAY), KEPT)
    assert found.level
    assert not found.rate.any()
    assert found.expected(MONDAY + DAY, HOUR) == 0


def test_demand_that_doubled_for_a_week_is_the_demand_of_today() -> None:
    rates = quarters(office(0.05), FOUR_WEEKS)
    rates[3 * SLOTS :] *= 2
    found = profile(rates)
    truth = quarters(office(0.1), 1.0)
    assert found.rate.sum() == pytest.approx(truth.sum(), rel=0.05)


@pytest.mark.parametrize("hours", [2, 6, 12])
def test_what_happened_only_today_is_neither_the_shape_of_the_week_nor_unrest(hours: int) -> None:
    rates = quarters(level(0.25), 2.0)
    rates[-4 * hours :] *= 2
    found = profile(rates)
    assert found.level
    assert found.unrest == pytest.approx(1, abs=0.2)
    assert 0.25 * 0.98 <= found.rate[0] <= 0.25 * (1 + hours / 24) * 1.03  # the last day's level, at the most


@pytest.mark.parametrize("days", [1, 3, 5])
def test_demand_that_doubled_some_days_ago_is_the_demand_of_today(days: int) -> None:
    rates = quarters(level(0.25), FOUR_WEEKS)
    rates[-96 * days :] *= 2
    assert profile(rates).rate.mean() == pytest.approx(0.5, rel=0.12)


def test_after_a_holiday_demand_is_back_at_once() -> None:
    rates = quarters(level(0.25), FOUR_WEEKS)
    rates[-96:] = 0.01
    assert profile(rates).rate.mean() > 0.2


def test_a_sunday_says_nothing_of_working_days() -> None:
    truth = quarters(office(0.5), 1.0)
    rates = quarters(office(0.5), FOUR_WEEKS)
    rates[-96:] = 3 * rates[-96:] + 0.002  # three times of next to nothing
    assert profile(rates).rate.sum() == pytest.approx(truth.sum(), rel=0.05)


def test_what_is_older_than_the_window_does_not_count() -> None:
    rates = quarters(level(0.5), 2.0)
    rates[SLOTS:] = 0.02
    until = MONDAY + 2 * WEEK
    past = history(arrivals(rates), until).snapshot(until)
    assert fit(past, DAY).rate[0] == pytest.approx(0.02, rel=0.1)


def test_an_outage_is_no_quiet_time() -> None:
    times = arrivals(quarters(level(0.2), 1.0))
    outage = (MONDAY + 2 * DAY, MONDAY + 4 * DAY)
    of = history(times[(times < outage[0]) | (times >= outage[1])], MONDAY + WEEK)
    of.gap(*outage)
    found = fit(of.snapshot(MONDAY + WEEK), KEPT)
    assert found.level
    assert found.rate[0] == pytest.approx(0.2, rel=0.05)


def test_what_is_expected_of_a_window_follows_the_profile_over_its_edges() -> None:
    rate = np.zeros(SLOTS)
    rate[0], rate[1] = 1.0, 2.0
    found = Profile(rate, 1.0, 1.0)
    assert found.expected(MONDAY + QUARTER + 10, 30) == pytest.approx(20 * 1 + 10 * 2)
    assert found.expected(MONDAY + WEEK, HOUR) == 0
    assert found.expected(MONDAY + WEEK + 5, HOUR) == pytest.approx(5)


def test_unrest_counts_more_the_longer_the_window() -> None:
    found = Profile(np.ones(SLOTS), burst=2.0, unrest=10.0)
    assert found.variance(60, 60) == 120
    assert found.variance(900, 900) == 9000
    assert found.variance(1800, 1800) > 2 * 9000
