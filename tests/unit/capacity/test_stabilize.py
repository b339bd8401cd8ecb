from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.stabilize import Stabilizer

WINDOW = 300.0
stories = st.lists(st.tuples(st.floats(0, 400), st.integers(0, 50)), min_size=1, max_size=40)


def test_it_rises_at_once() -> None:
    lately = Stabilizer()
    assert [lately.highest(units, now, WINDOW) for now, units in ((0, 1), (1, 7), (2, 9))] == [1, 7, 9]


def test_it_falls_when_it_has_been_lower_for_the_whole_window() -> None:
    lately = Stabilizer()
    lately.highest(9, 0, WINDOW)
    assert lately.highest(2, 1, WINDOW) == 9
    assert lately.highest(2, 300.9, WINDOW) == 9
    assert lately.highest(2, 301, WINDOW) == 2


def test_it_falls_to_the_highest_of_the_window_and_not_to_the_last() -> None:
    lately = Stabilizer()
    for now, units in ((0, 9), (10, 4), (20, 6), (30, 2)):
        lately.highest(units, now, WINDOW)
    assert lately.highest(2, 315, WINDOW) == 6
    assert lately.highest(2, 331, WINDOW) == 2


def test_a_recommendation_holds_until_the_next_one_is_made() -> None:
    seldom = Stabilizer()
    seldom.highest(9, 0, WINDOW)
    assert seldom.highest(2, 600, WINDOW) == 9
    assert seldom.highest(2, 899, WINDOW) == 9
    assert seldom.highest(2, 900, WINDOW) == 2


def test_it_says_when_it_falls() -> None:
    lately = Stabilizer()
    lately.highest(9, 0, WINDOW)
    assert lately.falls_at(WINDOW) is None
    lately.highest(2, 10, WINDOW)
    assert lately.falls_at(WINDOW) == 310
    lately.highest(2, 250, WINDOW)
    assert lately.falls_at(WINDOW) == 310


def test_at_the_time_that_it_said_it_has_fallen_and_just_before_it_has_not() -> None:
    lately = Stabilizer()
    lately.highest(9, 0, WINDOW)
    lately.highest(2, 10, WINDOW)
    assert lately.highest(2, 309.999, WINDOW) == 9
    assert lately.highest(2, 310, WINDOW) == 2


def test_after_a_restart_it_goes_on_from_the_target_that_was_written_last() -> None:
    lately = Stabilizer()
    lately.seed(9, 1_000)
    assert lately.highest(0, 1_001, WINDOW) == 9
    assert lately.highest(0, 1_302, WINDOW) == 0


def test_a_seed_does_not_hold_back_what_is_higher() -> None:
    lately = Stabilizer()
    lately.seed(9, 1_000)
    assert lately.highest(12, 1_001, WINDOW) == 12


def test_what_was_forgotten_holds_nothing_up() -> None:
    lately = Stabilizer()
    lately.highest(9, 0, WINDOW)
    lately.forget()
    assert lately.highest(2, 1, WINDOW) == 2


def test_a_clock_that_is_set_back_makes_nothing_fall_sooner() -> None:
    lately = Stabilizer()
    lately.highest(9, 1_000, WINDOW)
    assert lately.highest(2, 0, WINDOW) == 9
    assert lately.highest(2, 1_290, WINDOW) == 9


def test_with_no_window_it_follows_at_once() -> None:
    lately = Stabilizer()
    lately.highest(9, 0, 0)
    assert lately.highest(2, 0.001, 0) == 2


def test_a_million_recommendations_take_no_room() -> None:
    lately = Stabilizer()
    for now in range(20_000):
        lately.highest(now % 7, now, WINDOW)
    assert len(lately._held) <= 8


@given(stories)
def test_it_is_the_highest_of_all_that_held_within_the_window(story: list[tuple[float, int]]) -> None:
    lately, now, told = Stabilizer(), 0.0, list[tuple[float, int]]()
    for wait, units in story:
        now += wait
        told.append((now, units))
        ends = [later for (_, _), (later, _) in pairwise(told)] + [now]
        held = [units for (_, units), end in zip(told, ends, strict=True) if end > now - WINDOW]
        assert lately.highest(units, now, WINDOW) == max(held)


@given(stories, st.integers(1, 20))
def test_who_asks_often_gets_the_same_answer(story: list[tuple[float, int]], times: int) -> None:
    once, often, now, before = Stabilizer(), Stabilizer(), 0.0, 0
    for stabilizer in (once, often):
        stabilizer.highest(before, now, WINDOW)
    for wait, units in story:
        for step in range(1, times + 1):
            often.highest(before, now + wait * step / times, WINDOW)
        now, before = now + wait, units
        assert often.highest(units, now, WINDOW) == once.highest(units, now, WINDOW)


@pytest.mark.parametrize("window", [0.0, 30.0, 86_400.0])
def test_it_never_falls_below_what_is_recommended(window: float) -> None:
    lately = Stabilizer()
    assert all(lately.highest(n % 13, n * 17, window) >= n % 13 for n in range(500))
