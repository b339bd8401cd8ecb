"""A back-test says what would have been: the same as a pool replayed unit by unit says."""

import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.backtest import Targets, backtest, of_level, trade_off
from capacity.counts import drawn, outstanding, smallest
from capacity.curve import build
from capacity.history import DAY, HOUR, WEEK
from tests.unit.capacity.demands import MONDAY, arrivals, history, leads, level, office, quarters

trace = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 60)), min_size=1, max_size=50).map(
    lambda pairs: (
        (MONDAY + np.cumsum([gap for gap, _ in pairs])).tolist(),
        [float(lead) for _, lead in pairs],
    )
)


def pool(times: list[float], took: list[float], units: int, end: float) -> tuple[int, float]:
    """Hits and idle unit-seconds of a pool of so many units, unit by unit."""
    ready, waiting = [times[0]] * units, 0
    coming: list[float] = []
    hits, idle = 0, 0.0
    for at, lead in [*zip(times, took, strict=True), (end, 0.0)]:
        while coming and coming[0] <= at:
            done = heapq.heappop(coming)
            if waiting:
                waiting -= 1
            else:
                ready.append(done)
        if at == end and lead == 0.0:
            break
        if ready:
            hits += 1
            idle += at - ready.pop(0)
        else:
            waiting += 1
        heapq.heappush(coming, at + lead)
    return hits, idle + sum(max(0.0, end - since) for since in ready)


@given(trace, st.integers(0, 8))
@settings(deadline=None)
def test_a_static_target_does_what_a_pool_does_unit_by_unit(
    trace: tuple[list[float], list[float]], units: int
) -> None:
    times, took = trace
    end = times[-1] + 100.0
    hits, idle = pool(times, took, units, end)
    result = backtest(times, took, units, end=end)
    assert result.claims == len(times)
    assert result.hit_ratio == pytest.approx(hits / len(times))
    assert result.idle_hours * HOUR == pytest.approx(idle, abs=1e-3)
    assert result.misses_by_hour.sum() == len(times) - hits


@given(trace)
@settings(deadline=None)
def test_the_trade_off_has_the_back_test_of_every_target(trace: tuple[list[float], list[float]]) -> None:
    points = trade_off(*trace)
    assert [point.units for point in points] == list(range(len(points)))
    for point in points:
        result = backtest(*trace, point.units)
        assert point.hit_ratio == pytest.approx(result.hit_ratio)
        assert point.idle_hours == pytest.approx(result.idle_hours, abs=1e-6)
    assert points[-1].hit_ratio == 1
    assert all(one.hit_ratio <= other.hit_ratio for one, other in itertools.pairwise(points))


def test_the_smallest_target_of_a_level_is_a_point_of_the_trade_off() -> None:
    times = arrivals(quarters(level(0.25), 0.2))
    took = leads(times.size)
    points = trade_off(times, took)
    units = smallest(outstanding(times, took), 0.99)
    assert points[units].hit_ratio >= 0.99 > points[units - 1].hit_ratio


def test_without_claims_there_is_nothing_to_say() -> None:
    assert trade_off([], []) == []
    assert backtest([], [], 3).hit_ratio == 1
    assert backtest([], [], 3).claims == 0


def test_misses_are_told_by_the_hour_of_the_week() -> None:
    nine = MONDAY + DAY + 9 * HOUR
    result = backtest([nine, nine + 1, nine + 2, nine + HOUR], [20.0] * 4, 1)
    assert result.misses_by_hour[24 + 9] == 2
    assert result.misses_by_hour.sum() == 2


def test_a_target_that_rises_helps_when_its_units_have_come() -> None:
    targets = Targets(np.array([MONDAY, MONDAY + 100]), np.array([0, 1]))
    assert backtest([MONDAY + 110.0], [20.0], targets).hit_ratio == 0
    assert backtest([MONDAY + 121.0], [20.0], targets).hit_ratio == 1


def test_a_target_that_falls_takes_idle_units_away_and_cancels_what_comes() -> None:
    targets = Targets(np.array([MONDAY, MONDAY + HOUR]), np.array([3, 1]))
    result = backtest([MONDAY + 2.0 * HOUR], [20.0], targets)
    assert result.idle_hours == pytest.approx(3 + 1)
    regretted = Targets(np.array([MONDAY, MONDAY + 10, MONDAY + 15]), np.array([0, 5, 0]))
    assert backtest([MONDAY + HOUR], [20.0], regretted).idle_hours == 0


def test_patience_turns_misses_into_hits() -> None:
    times, took = [MONDAY, MONDAY + 1.0], [20.0, 20.0]
    assert backtest(times, took, 1).hit_ratio == 0.5
    assert backtest(times, took, 1, wait=19.5).hit_ratio == 1


def test_few_servers_make_more_claims_wait() -> None:
    times = arrivals(quarters(level(0.5), 0.1))
    took = leads(times.size)
    assert backtest(times, took, 19, servers=11).hit_ratio < backtest(times, took, 19).hit_ratio


def test_a_service_level_on_office_hours_costs_far_less_than_a_static_target_of_the_same_hit_ratio() -> None:
    past = history(arrivals(quarters(office(0.3), 3.0)), MONDAY + 3 * WEEK).snapshot(MONDAY + 3 * WEEK)
    curve = build(past, servers=None)
    times = arrivals(quarters(office(0.3), 1.0), seed=50)
    took = leads(times.size, seed=51)
    targets = of_level(curve, 0.99, MONDAY, MONDAY + WEEK)
    result = backtest(times, took, targets, end=MONDAY + WEEK)
    static = backtest(times, took, smallest(outstanding(times, took), 0.99), end=MONDAY + WEEK)
    assert result.hit_ratio >= 0.98
    assert result.idle_hours < 0.57 * static.idle_hours


def test_the_targets_of_level_demand_are_one() -> None:
    past = history(arrivals(quarters(level(0.1), 1.0)), MONDAY + WEEK).snapshot(MONDAY + WEEK)
    targets = of_level(build(past, servers=None), 0.9, MONDAY, MONDAY + WEEK)
    assert targets.at.tolist() == [MONDAY]


def test_draws_for_a_history_do_not_change_when_it_grows() -> None:
    past = history(arrivals(quarters(level(0.2), 0.1)), MONDAY + DAY).snapshot(MONDAY + DAY)
    whole = drawn(past.arrivals, past.leads)
    assert (drawn(past.arrivals[:500], past.leads) == whole[:500]).all()
    assert whole.mean() == pytest.approx(past.leads.mean, rel=0.05)
