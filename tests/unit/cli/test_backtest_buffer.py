"""A buffer in virtual time, by hand and against sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.counts import outstanding, replay_servers
from capacity.sketch import LeadTimes
from cli.backtest.buffer import Targets, replay
from cli.backtest.replay import Fixed

MANY = 1000


def leads(*lengths: float) -> LeadTimes:
    found = LeadTimes()
    for each in lengths:
        found.add(each)
    return found


def waits(*arrivals: float, units: int, boot: float = 10.0, servers: int = MANY) -> list[float]:
    found = replay(np.array(arrivals), leads(boot), Targets((0.0,), (units,)), 1000.0, servers)
    return [round(each) for each in found.waits]


# ---- a fixed number


def test_who_finds_one_ready_does_not_wait() -> None:
    assert waits(5, 100, units=1) == [0, 0]


def test_who_comes_before_the_next_is_ready_waits_for_it() -> None:
    assert waits(5, 8, units=1) == [0, 7]


def test_claims_are_served_first_come_first_served() -> None:
    assert waits(5, 6, 7, units=1) == [0, 9, 9]


def test_without_a_buffer_everybody_waits_for_a_unit_of_their_own() -> None:
    assert waits(5, 6, units=0) == [10, 10]


def test_units_are_made_only_so_many_at_a_time() -> None:
    assert waits(5, 5, 5, units=0, servers=1) == [10, 20, 30]


def test_what_stands_ready_is_idle_until_somebody_takes_it() -> None:
    found = replay(np.array([3600.0]), leads(10), Targets((0.0,), (2,)), 7200.0, MANY)
    # One stood for an hour, one for two, and the one that was ordered for all but ten seconds of the second.
    assert found.idle_hours == pytest.approx(1 + 2 + 1 - 10 / 3600, abs=1e-4)


# ---- a target that changes


def changing(*changes: tuple[float, int], arrivals: tuple[float, ...], servers: int = MANY) -> list[float]:
    at, units = zip(*changes, strict=True)
    found = replay(np.array(arrivals), leads(10), Targets(at, units), 1000.0, servers)
    return [round(each) for each in found.waits]


def test_a_target_that_rises_orders_at_once_and_is_full_a_boot_later() -> None:
    assert changing((0, 0), (20, 2), arrivals=(25, 40, 40)) == [5, 0, 0]


def test_a_target_that_rises_is_filled_so_many_at_a_time() -> None:
    assert changing((0, 0), (20, 3), arrivals=(45, 45, 45), servers=1) == [0, 0, 5]


def test_a_target_that_falls_gives_up_what_is_on_its_way_before_what_is_ready() -> None:
    assert changing((0, 2), (12, 1), arrivals=(10, 15, 30)) == [0, 0, 0]


def test_a_target_that_falls_to_nothing_leaves_nothing() -> None:
    assert changing((0, 2), (5, 0), arrivals=(10,)) == [10]
    found = replay(np.array([9.0]), leads(10), Targets((0.0, 3600.0), (2, 0)), 7200.0, MANY)
    assert found.idle_hours < 2.1


def test_what_changes_after_the_last_claim_counts_as_well() -> None:
    found = replay(np.array([0.0]), leads(1), Targets((0.0, 3600.0), (1, 5)), 7200.0, MANY)
    assert found.idle_hours == pytest.approx(1 + 5, abs=0.01)


def test_only_changes_are_kept() -> None:
    assert Targets.changes([0, 1, 2, 3], [4, 4, 5, 5]) == Targets((0.0, 2.0), (4, 5))


# ---- the two ways to reckon say the same


WORLDS = st.tuples(
    st.lists(st.integers(0, 500), min_size=1, max_size=40),
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.integers(0, 8),
    st.sampled_from([1, 2, 5, MANY]),
    st.sampled_from([0.0, 7.5]),
)


@given(WORLDS)
def test_events_and_sorting_agree_on_every_fixed_number(
    world: tuple[list[int], list[int], int, int, float],
) -> None:
    times, lengths, units, servers, wait = world
    arrivals, sketch = np.sort(np.array(times, dtype=np.float64)), leads(*map(float, lengths))
    drawn = sketch.draw(np.arange(arrivals.size, dtype=np.uint64))
    ready = np.sort(replay_servers(arrivals, drawn, servers))
    fixed = Fixed(arrivals, ready, 0.0, 2000.0, wait)
    found = replay(arrivals, sketch, Targets((0.0,), (units,)), 2000.0, servers)
    assert np.array_equal(found.waits > wait, fixed.missed(units))
    assert found.idle_hours == pytest.approx(fixed.idle_hours(units), abs=1e-9)


@given(WORLDS)
def test_a_claim_misses_where_the_engine_counts_too_many_orders(
    world: tuple[list[int], list[int], int, int, float],
) -> None:
    times, lengths, units, _, _ = world
    arrivals, sketch = np.sort(np.array(times, dtype=np.float64)), leads(*map(float, lengths))
    drawn = sketch.draw(np.arange(arrivals.size, dtype=np.uint64))
    fixed = Fixed(arrivals, np.sort(arrivals + drawn), 0.0, 2000.0, 0.0)
    assert np.array_equal(fixed.missed(units), outstanding(arrivals, drawn) >= units)


@given(WORLDS, st.sampled_from([0.5, 0.9, 0.99, 0.9999, 1.0]))
def test_the_smallest_number_meets_the_level_and_one_less_does_not(
    world: tuple[list[int], list[int], int, int, float], level: float
) -> None:
    times, lengths, _, servers, wait = world
    arrivals, sketch = np.sort(np.array(times, dtype=np.float64)), leads(*map(float, lengths))
    drawn = sketch.draw(np.arange(arrivals.size, dtype=np.uint64))
    fixed = Fixed(arrivals, np.sort(replay_servers(arrivals, drawn, servers)), 0.0, 2000.0, wait)
    least = fixed.smallest(level)
    assert 1 - fixed.missed(least).mean() >= level - 1e-9
    if least:
        assert 1 - fixed.missed(least - 1).mean() < level


@given(WORLDS)
def test_more_units_never_miss_more_nor_stand_idle_for_less(
    world: tuple[list[int], list[int], int, int, float],
) -> None:
    times, lengths, units, servers, _ = world
    arrivals, sketch = np.sort(np.array(times, dtype=np.float64)), leads(*map(float, lengths))
    few, more = (
        replay(arrivals, sketch, Targets((0.0,), (number,)), 2000.0, servers) for number in (units, units + 1)
    )
    assert (more.waits <= few.waits + 1e-9).all()
    assert more.idle_hours >= few.idle_hours - 1e-9
