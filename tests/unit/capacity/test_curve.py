"""From a history to a target: enough on demand that was not learned from, and not more than is needed."""

import time
from dataclasses import replace

import numpy as np
import pytest

from capacity.counts import outstanding, reached, smallest
from capacity.curve import FEWEST, Basis, Curve, build
from capacity.history import DAY, HOUR, QUARTER, RECENT, WEEK, History, Recent
from capacity.profile import SLOTS
from capacity.theory import quantile_target
from tests.unit.capacity.demands import MONDAY, arrivals, history, leads, level, office, quarters

LEVELS = (0.9, 0.95, 0.99, 0.999)
NOW = MONDAY + 4 * WEEK


def learned(rates: np.ndarray, *, batch: float = 1.0, wait: float = 0.0, servers: int | None = None) -> Curve:
    until = MONDAY + rates.size * QUARTER
    past = history(arrivals(rates, batch=batch), until).snapshot(until)
    return build(past, servers=servers, wait=wait)


def judged(curve: Curve, level: float, rates: np.ndarray, *, batch: float = 1.0, less: int = 0) -> float:
    """The share served on a week that the curve has not seen."""
    times = arrivals(rates, seed=99, batch=batch)
    units = np.array(
        [curve.estimate(level, MONDAY + slot * QUARTER).units for slot in range(min(SLOTS, rates.size))]
    )
    of = ((times - MONDAY) // QUARTER).astype(int) % units.size
    return reached(outstanding(times, leads(times.size, seed=98)), units[of] - less)


def usual(at: float, a_second: float, times: float = 1.0) -> Recent:
    return Recent(at, tuple(round(window * a_second * times) for window in RECENT), tuple(map(float, RECENT)))


@pytest.mark.parametrize("a_second", [0.025, 0.25])
@pytest.mark.parametrize("level_", LEVELS)
def test_level_demand_gets_the_poisson_quantile_at_all_times(a_second: float, level_: float) -> None:
    curve = learned(quarters(level(a_second), 4.0 if a_second < 0.1 else 1.0))
    units = {curve.estimate(level_, NOW + hour * HOUR).units for hour in range(0, 168, 5)}
    assert len(units) == 1
    assert abs(units.pop() - quantile_target(a_second * 20, level_)) <= (1 if level_ > 0.99 else 0)


@pytest.mark.parametrize("level_", LEVELS)
def test_batches_are_served_like_single_claims(level_: float) -> None:
    rates = quarters(level(0.1), 1.0)
    curve = learned(rates, batch=5)
    allowed = 0.001 if level_ > 0.99 else 0.01
    assert judged(curve, level_, rates, batch=5) >= level_ - allowed
    times = arrivals(rates, seed=99, batch=5)
    static = smallest(outstanding(times, leads(times.size, seed=98)), level_)
    assert curve.estimate(level_, NOW).units <= 1.1 * static + 1


@pytest.mark.parametrize("level_", LEVELS)
def test_office_hours_are_met_and_one_unit_less_would_not_have_been_enough(level_: float) -> None:
    curve = learned(quarters(office(0.5), 4.0))
    week = quarters(office(0.5), 1.0)
    assert judged(curve, level_, week) >= level_ - (0.001 if level_ > 0.99 else 0.01)
    assert judged(curve, level_, week, less=1) < level_


def test_office_hours_need_far_fewer_units_than_a_static_pool() -> None:
    curve = learned(quarters(office(0.5), 4.0))
    times = arrivals(quarters(office(0.5), 1.0), seed=99)
    static = smallest(outstanding(times, leads(times.size, seed=98)), 0.99)
    mean = np.mean([curve.estimate(0.99, NOW + slot * QUARTER).units for slot in range(SLOTS)])
    assert mean < 0.57 * static


def test_a_ramp_is_seen_a_lead_time_early() -> None:
    curve = learned(quarters(office(0.5), 4.0))
    eight = NOW + 8 * HOUR
    assert curve.lead.p95 is not None
    early, late = (
        curve.estimate(0.99, eight - curve.ahead - 60),
        curve.estimate(0.99, eight - curve.ahead + 1),
    )
    assert early.units < 6
    assert late.units > 15
    assert curve.estimate(0.99, eight + HOUR).units == pytest.approx(late.units, abs=1)


def test_an_estimate_says_when_it_changes() -> None:
    curve = learned(quarters(office(0.5), 4.0))
    before = curve.estimate(0.99, NOW + 7.9 * HOUR)
    assert before.changes_at == pytest.approx(NOW + 8 * HOUR - curve.ahead, abs=0.1)
    assert before.changes_at is not None
    assert curve.estimate(0.99, before.changes_at).units > before.units
    after = curve.estimate(0.99, before.changes_at).changes_at
    assert after is not None
    assert after > before.changes_at
    assert learned(quarters(level(0.1), 1.0)).estimate(0.9, NOW).changes_at is None


def test_with_few_servers_a_ramp_is_seen_earlier() -> None:
    rates = quarters(office(2.5), 1.0)
    assert learned(rates, servers=60).ahead > learned(rates).ahead + 10
    assert learned(rates, servers=60).ahead < HOUR


def test_with_few_servers_a_burst_is_seen_as_early_as_all_of_it_takes_to_make() -> None:
    """Thirty at nine o'clock each day are three boots of a minute one after another."""
    until = MONDAY + 28 * DAY
    past = History(MONDAY)
    for day in range(28):
        for number in range(30):
            past.arrive(MONDAY + day * DAY + 9 * HOUR + 2 * number)
    for _ in range(100):
        past.lead(60.0)
    assert 170 <= build(past.snapshot(until), servers=10).ahead <= 300
    assert build(past.snapshot(until), servers=None).ahead == pytest.approx(60, rel=0.05)


def test_hours_in_which_nobody_ever_came_get_nothing() -> None:
    def mornings(hours: np.ndarray) -> np.ndarray:
        return np.where((hours % 24 >= 6) & (hours % 24 < 8), 0.5, 0.0)

    curve = learned(quarters(mornings, 4.0))
    assert curve.estimate(0.99, NOW + 12 * HOUR).units == 0
    assert curve.estimate(0.99, NOW + 7 * HOUR).units == pytest.approx(quantile_target(10, 0.99), abs=1)


def test_a_pool_that_is_hardly_used_keeps_one_unit_at_all_times() -> None:
    curve = learned(quarters(level(60 / WEEK), 4.0))
    assert curve.claims > FEWEST
    assert {curve.estimate(0.9, NOW + hour * HOUR).units for hour in range(168)} == {1}


def test_with_fewer_than_fifty_claims_the_floor_decides() -> None:
    curve = learned(quarters(level(20 / WEEK), 1.0))
    estimate = curve.estimate(0.99, NOW)
    assert (estimate.units, estimate.basis) == (0, Basis.FLOOR)
    assert "50 claims are needed" in estimate.because


def test_without_a_lead_time_the_floor_decides() -> None:
    times = arrivals(quarters(level(0.1), 1.0))
    curve = build(history(times, MONDAY + WEEK, boots=0).snapshot(MONDAY + WEEK), servers=None)
    estimate = curve.estimate(0.99, NOW)
    assert (estimate.units, estimate.basis) == (0, Basis.FLOOR)
    assert "no lead time" in estimate.because


def test_nothing_at_all_is_a_floor_and_no_error() -> None:
    curve = build(History(since=MONDAY).snapshot(MONDAY), servers=5)
    assert curve.estimate(0.99, MONDAY, Recent(MONDAY)).basis is Basis.FLOOR
    assert curve.demand(MONDAY).rate_per_hour == 0
    assert curve.busiest()[1] == 0


@pytest.mark.parametrize(
    ("level_", "basis"), [(0.9, Basis.EMPIRICAL), (0.99, Basis.EMPIRICAL), (0.9999, Basis.PARAMETRIC)]
)
def test_the_empirical_quantile_is_used_where_it_means_something(level_: float, basis: Basis) -> None:
    curve = learned(quarters(level(1000 / WEEK), 1.0))
    assert curve.estimate(level_, NOW).basis is basis


@pytest.mark.parametrize("level_", LEVELS)
def test_patience_needs_fewer_units_and_still_serves_in_time(level_: float) -> None:
    rates = quarters(level(0.5), 1.0)
    patient = learned(rates, wait=10.0)
    units = patient.estimate(level_, NOW).units
    assert units < learned(rates).estimate(level_, NOW).units
    times = arrivals(rates, seed=99)
    assert reached(outstanding(times, leads(times.size, seed=98), wait=10.0), units) >= level_ - 0.01


def test_an_estimate_with_patience_for_any_boot_is_one_unit() -> None:
    assert learned(quarters(level(0.5), 1.0), wait=600.0).estimate(0.99, NOW).units == 1


def test_turns_at_few_servers_are_replayed_and_need_more_units() -> None:
    rates = quarters(level(0.5), 1.0)
    assert learned(rates, servers=12).estimate(0.99, NOW).units > learned(rates).estimate(0.99, NOW).units


def test_a_deadline_bounds_what_one_outage_did_to_the_lead_times() -> None:
    until = MONDAY + WEEK
    of = history(arrivals(quarters(level(0.25), 1.0)), until, boots=0)
    for number, seconds in enumerate(leads(600).tolist()):
        of.lead(3600.0 if number % 16 == 0 else seconds)
    past = of.snapshot(until)
    assert build(past, servers=None).estimate(0.99, until).units > 30
    assert build(past, servers=None, deadline=60).estimate(0.99, until).units < 20


def test_the_usual_demand_changes_nothing() -> None:
    curve = learned(quarters(level(0.25), 1.0))
    times = arrivals(quarters(level(0.25), 2.0), seed=5)
    of = history(times, MONDAY + 2 * WEEK)
    units = {
        curve.estimate(0.99, at, of.recent(at)).units
        for at in np.arange(MONDAY + 9 * DAY, MONDAY + 12 * DAY, 120.0).tolist()
    }
    assert len(units) == 1


@pytest.mark.parametrize("batch", [1.0, 5.0])
def test_demand_that_doubled_is_met_within_minutes(batch: float) -> None:
    curve = learned(quarters(level(0.5), 1.0), batch=batch)
    at = NOW + 12 * HOUR
    before = curve.estimate(0.99, at, usual(at, 0.5)).units
    minutes = 60.0 * (5 if batch == 1 else 20)
    arrived = tuple(round(0.5 * (window + min(window, minutes))) for window in RECENT)
    later = curve.estimate(0.99, at, Recent(at, arrived, tuple(map(float, RECENT))))
    assert later.units > 1.4 * before
    assert "an hour came" in later.because
    assert later.units >= quantile_target(20, 0.99) - 4


def test_a_flash_crowd_in_a_quiet_hour_is_met_by_what_it_is_and_no_more() -> None:
    curve = learned(quarters(office(0.5), 4.0))
    at = NOW + 3 * HOUR
    arrived = tuple(round(0.01 * window) + min(120, 2 * window) for window in RECENT)
    units = curve.estimate(0.99, at, Recent(at, arrived, tuple(map(float, RECENT)))).units
    assert quantile_target(40, 0.99) <= units + 5  # 120 that came are believed to be 104 or so
    assert units <= quantile_target(45, 0.99)


def test_less_than_usual_for_a_while_takes_nothing_away() -> None:
    curve = learned(quarters(level(0.5), 1.0))
    assert curve.unusual(usual(NOW, 0.5, 0.1), 0.5) == 0
    assert curve.unusual(Recent(NOW), 0.5) == 0


def test_a_few_early_birds_before_a_ramp_are_not_multiplied_by_it() -> None:
    curve = learned(quarters(lambda hours: np.where((hours % 24 >= 6) & (hours % 24 < 8), 0.5, 0.0), 4.0))
    at = NOW + 6 * HOUR - curve.ahead + 1
    alone = curve.estimate(0.99, at).units
    early = Recent(at, (10,) * len(RECENT), tuple(map(float, RECENT)))
    assert alone > 15
    assert curve.estimate(0.99, at, early).units <= alone + 2


def test_the_demand_of_a_slot_prices_its_units() -> None:
    curve = learned(quarters(office(0.5), 4.0))
    noon = curve.demand(NOW + 12 * HOUR)
    assert noon.rate_per_hour == pytest.approx(1800, rel=0.1)
    assert noon.mean_outstanding == pytest.approx(10, rel=0.1)
    tail = noon.tail(np.arange(60))
    assert tail[0] == pytest.approx(1)
    assert (np.diff(tail) <= 0).all()
    assert tail[1:].sum() == pytest.approx(noon.mean_outstanding, rel=0.01)
    assert curve.demand(NOW + 2 * HOUR).rate_per_hour < 100


def test_the_busiest_time_is_named() -> None:
    curve = learned(quarters(lambda hours: np.where((hours >= 33) & (hours < 33.25), 2.0, 0.1), 4.0))
    name, rate = curve.busiest()
    assert name == "around Tue 09:00 UTC"
    assert rate == pytest.approx(7200, rel=0.1)


def test_a_higher_level_never_needs_fewer_units() -> None:
    curve = learned(quarters(office(0.2), 2.0))
    for hour in range(0, 168, 7):
        units = [
            curve.estimate(each, NOW + hour * HOUR).units for each in (0.5, 0.8, 0.9, 0.99, 0.999, 0.9999)
        ]
        assert units == sorted(units)


def test_claims_in_a_gap_teach_nothing() -> None:
    times = arrivals(quarters(level(0.25), 1.0))
    storm = np.sort(np.concatenate((times, np.full(2000, MONDAY + 5 * DAY + 100))))
    of = history(storm, MONDAY + WEEK)
    of.gap(MONDAY + 5 * DAY, MONDAY + 5 * DAY + HOUR)
    curve = build(of.snapshot(MONDAY + WEEK), servers=None)
    assert curve.estimate(0.99, NOW).units == pytest.approx(quantile_target(5, 0.99), abs=1)


def test_the_same_history_gives_the_same_curve() -> None:
    rates = quarters(office(0.1), 2.0)
    one, other = learned(rates), learned(rates)
    assert (one.rarities == other.rarities).all()
    assert one.estimate(0.99, NOW) == other.estimate(0.99, NOW)


@pytest.mark.thorough
def test_a_week_of_a_hundred_thousand_claims_is_built_within_a_second_and_decided_within_milliseconds() -> (
    None
):
    rates = quarters(office(0.5), 1.0)
    times = np.resize(arrivals(rates), 100_000)
    times.sort()
    past = replace(history(times, MONDAY + WEEK).snapshot(MONDAY + WEEK))
    began = time.process_time()
    curve = build(past, servers=30)
    assert time.process_time() - began < 1.5  # a tenth on an idle machine
    began = time.process_time()
    for slot in range(200):
        at = NOW + slot * QUARTER
        curve.estimate(0.999, at, usual(at, 0.5))
    assert (time.process_time() - began) / 200 < 0.005


def test_a_crowd_of_one_morning_is_not_kept_room_for_all_week() -> None:
    rates = quarters(level(0.25), 1.0)
    calm = learned(rates)
    rates[4 * 96 + 40] *= 6
    crowded = learned(rates)
    assert crowded.estimate(0.99, NOW).units <= calm.estimate(0.99, NOW).units + 1


@pytest.mark.parametrize("hours", [0.25, 1, 3, 8, 20])
def test_demand_that_doubled_today_is_met_however_long_ago_it_was(hours: float) -> None:
    rates = quarters(level(0.25), 1.0)
    rates[-round(4 * hours) :] *= 2
    until = MONDAY + WEEK
    of = history(arrivals(rates), until)
    curve = build(of.snapshot(until), servers=None)
    units = curve.estimate(0.99, until, of.recent(until)).units
    # After a quarter of an hour the windows that began before do still speak.
    assert quantile_target(9 if hours >= 1 else 8, 0.99) <= units <= quantile_target(11.5, 0.99)
