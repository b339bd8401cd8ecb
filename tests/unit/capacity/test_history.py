"""The history knows what was asked for, leaves out what does not count, and forgets what is too old."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.history import DAY, HOUR, KEPT, MOST_ARRIVALS, MOST_GAPS, QUARTER, RECENT, WEEK, History

START = 1_700_000_000.0 // HOUR * HOUR


def history(*ages: float, watched: float = DAY) -> History:
    """What arrived so many seconds after START."""
    of = History(since=START)
    for age in ages:
        of.arrive(START + age)
    of.roll(START + watched)
    return of


def test_a_batch_counts_as_its_units() -> None:
    of = History(since=START)
    of.arrive(START + 10, units=5)
    assert list(of.arrivals) == [START + 10] * 5
    assert of.quarters[int(START // QUARTER)].arrived == 5


@given(st.lists(st.integers(0, 5000), max_size=50))
def test_arrivals_are_sorted_in_whatever_order_they_are_told(ages: list[int]) -> None:
    of = history(*ages)
    assert list(of.arrivals) == sorted(START + age for age in ages)
    assert of.claims == len(ages)
    assert sum(quarter.arrived for quarter in of.quarters.values()) == len(ages)


def test_what_was_before_watching_began_is_unknown_and_not_counted() -> None:
    of = History(since=START)
    of.arrive(START - 1)
    of.arrive(START + 1, units=0)
    assert not of.arrivals
    assert not of.quarters


def test_a_retry_after_a_refusal_is_the_same_wish() -> None:
    of = History(since=START)
    of.arrive(START, who="team-a")
    of.refused(START + 1, who="team-a")
    of.arrive(START + 30, who="team-a")
    of.refused(START + 31, who="team-a")
    of.arrive(START + 80, who="team-a")
    assert len(of.arrivals) == 1


def test_a_retry_of_a_larger_batch_counts_what_is_more() -> None:
    of = History(since=START)
    of.refused(START, units=3, who="team-a")
    of.arrive(START + 5, units=5, who="team-a")
    assert len(of.arrivals) == 2
    of.refused(START + 10, units=5, who="team-a")
    of.arrive(START + 11, units=2, who="team-a")
    of.arrive(START + 12, units=3, who="team-a")
    assert len(of.arrivals) == 2


@pytest.mark.parametrize(("who", "after"), [("team-b", 10.0), ("team-a", 61.0), ("", 10.0)])
def test_somebody_else_or_somewhat_later_is_a_new_wish(who: str, after: float) -> None:
    of = History(since=START)
    of.arrive(START, who="team-a")
    of.refused(START, who="team-a")
    of.refused(START)
    of.arrive(START + after, who=who)
    assert len(of.arrivals) == 2


def test_two_claims_of_one_tenant_without_a_refusal_are_two() -> None:
    of = History(since=START)
    of.arrive(START, who="team-a")
    of.arrive(START + 1, who="team-a")
    assert len(of.arrivals) == 2


def test_refusals_are_forgotten_after_a_minute_and_bounded() -> None:
    of = History(since=START)
    for number in range(5000):
        of.refused(START, who=f"tenant-{number}")
    assert len(of._refused) <= 1000
    of.refused(START, units=10**9, who="tenant-0")
    assert len(of._refused["tenant-0"]) <= 1000
    of.roll(START + 61)
    assert not of._refused


def test_single_arrivals_are_kept_a_week_and_their_number_four() -> None:
    of = history(0, WEEK - 100, WEEK + 100, watched=WEEK + 200)
    assert list(of.arrivals) == [START + WEEK - 100, START + WEEK + 100]
    assert of.detail_since == START + 200
    assert sum(of.snapshot(START + WEEK + 200).arrived) == 3
    of.roll(START + KEPT + 2 * HOUR)
    assert sum(of.snapshot(START + KEPT + 2 * HOUR).arrived) == 2
    assert of.since == START + 2 * HOUR


def test_memory_is_bounded_whatever_the_demand() -> None:
    of = History(since=START)
    for second in range(0, 3000, 10):
        of.arrive(START + second, units=500)
        of.roll(START + second)
        assert len(of.arrivals) <= MOST_ARRIVALS
    assert of.detail_since > START
    assert sum(of.snapshot(START + 3000).arrived) == 150_000
    for number in range(MOST_GAPS + 50):
        of.gap(START + 10 * number, START + 10 * number + 5)
    assert len(of.gaps) <= MOST_GAPS


def test_a_late_told_arrival_from_before_the_detail_is_counted_by_its_hour() -> None:
    of = history(0, WEEK, watched=WEEK + HOUR)
    of.arrive(START + 20)
    assert len(of.arrivals) == 1
    assert of.quarters[int(START // QUARTER)].arrived == 2


def test_gaps_that_overlap_are_one_and_their_time_counts_once() -> None:
    of = history(5)
    of.gap(START + 100, START + 200)
    of.gap(START + 150, START + 300)
    of.gap(START + 150, START + 160)
    of.gap(START + 400, START + 400)
    assert of.gaps == [(START + 100, START + 300)]
    past = of.snapshot(START + HOUR)
    assert past.seen[0] == QUARTER - 200
    assert past.gaps.tolist() == [[START + 100, START + 300]]


def test_a_gap_over_hours_takes_from_each_what_it_covers() -> None:
    of = history()
    of.gap(START + QUARTER / 2, START + 2 * QUARTER + 60)
    assert of.snapshot(START + 3 * QUARTER).seen.tolist() == [QUARTER / 2, 0, QUARTER - 60, 0]


def test_arrivals_within_a_gap_do_not_count_whenever_they_are_told() -> None:
    of = history(100, 200, 300)
    of.gap(START + 150, START + 250)
    of.arrive(START + 160)
    assert of.quarters[int(START // QUARTER)].arrived == 2
    assert len(of.arrivals) == 4  # their orders are outstanding all the same


def test_the_hit_ratio_is_of_the_window_and_unknown_without_claims() -> None:
    of = history()
    assert of.hit_ratio(START + HOUR) is None
    for hour in range(10):
        of.served(START + hour * HOUR, warm=hour >= 5)
    assert of.hit_ratio(START + 10 * HOUR) == 0.5
    assert of.hit_ratio(START + 9 * HOUR + 10, window=3 * HOUR) == 1.0
    of.served(START + 9 * HOUR, warm=False, units=3)
    assert of.hit_ratio(START + 9 * HOUR + 10, window=3 * HOUR) == 0.5


def test_claims_per_hour_is_the_rate_of_the_last_hour() -> None:
    of = history(*range(0, 2 * HOUR, 60))
    assert of.claims_per_hour(START + 2 * HOUR) == pytest.approx(60, abs=1)
    assert history(*range(0, 600, 60)).claims_per_hour(START + 600) == pytest.approx(60, abs=7)
    assert (
        history(1, 2, 3).claims_per_hour(START + 3) == 180
    )  # a minute's worth, not a claim a second for ever


def test_recent_demand_has_a_window_each_and_what_of_it_was_seen() -> None:
    of = history(*range(0, 600, 10))
    of.gap(START + 590, START + 600)
    recent = of.recent(START + 600)
    assert recent.arrived[RECENT.index(60)] == 4  # at 550 .. 580; 540 is a minute ago, 590 in the gap
    assert recent.arrived[RECENT.index(3600)] == 58  # nor the first, in the very second of the start
    assert recent.seen[RECENT.index(60)] == 50
    assert recent.seen[RECENT.index(3600)] == 590


def test_after_an_outage_recent_demand_says_nothing_of_what_came_in_it() -> None:
    of = history(*range(0, 2 * HOUR, 3))
    of.gap(START + HOUR, START + 2 * HOUR)
    recent = of.recent(START + 2 * HOUR + 1)
    assert recent.arrived[RECENT.index(3600)] == 0
    assert recent.seen[RECENT.index(3600)] == 1
    assert recent.arrived[RECENT.index(6 * HOUR)] == pytest.approx(1200, abs=2)


def test_a_snapshot_is_a_copy() -> None:
    of = history(1, 2, 3)
    of.lead(20.0)
    past = of.snapshot(START + 4)
    of.arrive(START + 5)
    of.lead(30.0)
    of.gap(START, START + 1)
    assert past.arrivals.tolist() == [START + 1, START + 2, START + 3]
    assert past.leads.count == 1
    assert past.gaps.size == 0


def test_a_snapshot_of_nothing_is_empty_and_has_the_hour_that_began() -> None:
    past = History(since=START + 60).snapshot(START + 120)
    assert past.arrivals.size == 0
    assert past.quarters.tolist() == [START // QUARTER]
    assert past.seen.tolist() == [60]
    assert past.leads.count == 0


def test_quarters_without_claims_are_quarters_of_no_demand() -> None:
    past = history(0, 5 * QUARTER).snapshot(START + 6 * QUARTER - 1)
    assert past.arrived.tolist() == [1, 0, 0, 0, 0, 1]
    assert past.seen == pytest.approx([QUARTER] * 5 + [QUARTER - 1])
    assert np.array_equal(np.diff(past.quarters), np.ones(5))
