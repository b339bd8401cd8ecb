"""The vectorised buffer against the plain one, and both against what can be worked out by hand."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.capacity import buffer, servers
from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.traces import HOUR
from capacity.counts import outstanding, smallest

NO_LEADS = np.array([10.0])


@dataclass(frozen=True)
class Story:
    arrivals: list[float]
    leads: list[float]
    changes: list[tuple[float, int]]
    first: int


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Arrivals and changes of the level at distinct times, so that nothing happens at once."""
    times = draw(st.lists(st.integers(1, 2_000), unique=True, min_size=1, max_size=60))
    change = draw(st.lists(st.booleans(), min_size=len(times), max_size=len(times)))
    arrivals = sorted(float(at) for at, is_change in zip(times, change, strict=True) if not is_change)
    changes = sorted(float(at) for at, is_change in zip(times, change, strict=True) if is_change)
    units = draw(st.lists(st.integers(0, 8), min_size=len(changes), max_size=len(changes)))
    return Story(arrivals, [], list(zip(changes, units, strict=True)), draw(st.integers(0, 8)))


def levels(story: Story) -> Levels:
    at = [0.0, *(at for at, _ in story.changes)]
    units = [story.first, *(units for _, units in story.changes)]
    return Levels(np.array(at), np.array(units))


@given(stories(), st.sampled_from([7.3, 41.7, 333.3]))
def test_both_buffers_tell_the_same_story_where_creations_are_not_bounded(story: Story, lead: float) -> None:
    arrivals = np.array(story.arrivals)
    fast = buffer.run(arrivals, np.full(arrivals.size, lead), levels(story), 2_500.0, np.array([lead]))
    slow, _ = servers.run(arrivals, levels(story), 2_500.0, servers=10_000, draw=lambda: lead)
    assert fast.waits == pytest.approx(slow.waits)
    assert fast.idle_hours == pytest.approx(slow.idle_hours)
    assert (fast.created, fast.cancelled) == (slow.created, slow.cancelled)


def test_both_buffers_agree_on_a_day_of_drawn_lead_times() -> None:
    random = np.random.default_rng(1)
    arrivals = np.sort(random.uniform(0, 86_400, 20_000))
    leads = random.lognormal(3.0, 0.4, arrivals.size)
    fast = buffer.run(arrivals, leads, Levels.constant(0.0, 7), 86_400.0, NO_LEADS)
    slow, _ = servers.run(
        arrivals, Levels.constant(0.0, 7), 86_400.0, servers=10_000, draw=iter(leads.tolist()).__next__
    )
    assert fast.share() == slow.share()
    assert fast.idle_hours == pytest.approx(slow.idle_hours)


def test_a_claim_takes_a_ready_unit_and_the_next_one_waits_for_the_order() -> None:
    run = buffer.run(np.array([10.0, 12.0]), np.array([20.0, 20.0]), Levels.constant(0.0, 1), 100.0, NO_LEADS)
    assert run.waits.tolist() == [0.0, 18.0]
    assert run.share() == 0.5
    assert run.share(18.0) == 1.0


def test_a_unit_is_idle_from_ready_to_taken_and_to_the_end() -> None:
    run = buffer.run(np.array([HOUR]), np.array([HOUR]), Levels.constant(0.0, 2), 4 * HOUR, NO_LEADS)
    assert run.idle_hours == pytest.approx(1 + 4 + 2)


def test_a_level_that_falls_cancels_what_boots_before_it_takes_what_is_ready() -> None:
    changes = Levels(np.array([0.0, 50.0]), np.array([3, 1]))
    run = buffer.run(np.array([40.0]), np.array([100.0]), changes, 200.0, NO_LEADS)
    assert run.cancelled == 1
    assert run.idle_hours * HOUR == pytest.approx(40 + 50 + 200)  # one taken, one removed, one left


def test_a_level_that_rises_orders_at_once() -> None:
    changes = Levels(np.array([0.0, 50.0]), np.array([0, 2]))
    run = buffer.run(np.array([55.0, 61.0]), np.array([100.0, 100.0]), changes, 200.0, NO_LEADS)
    assert run.waits.tolist() == [5.0, 0.0]
    assert run.created == 4


def test_one_that_waits_at_the_end_is_told_how_long_it_will_have_waited() -> None:
    run = buffer.run(np.array([90.0]), np.array([30.0]), Levels.constant(0.0, 0), 100.0, NO_LEADS)
    assert run.waits.tolist() == [30.0]


@given(st.lists(st.floats(0, 500), min_size=1, max_size=40), st.floats(0.1, 100), st.integers(0, 10))
def test_counting_says_what_serving_shows(times: list[float], lead: float, units: int) -> None:
    arrivals = np.sort(np.array(times))
    leads = np.full(arrivals.size, lead)
    counts = outstanding(arrivals, leads)
    run = buffer.run(arrivals, leads, Levels.constant(0.0, units), 1_000.0, NO_LEADS)
    served = counts < units
    # A unit that becomes ready in the very instant of a claim may go either way.
    near = np.array([any(abs(a + lead - at) < 1e-6 for a in arrivals) for at in arrivals])
    assert ((run.waits <= 0) == served)[~near].all()


@pytest.mark.parametrize(("level", "units"), [(0.5, 1), (0.75, 2), (0.9, 3), (1.0, 3)])
def test_the_smallest_buffer_is_the_quantile_of_the_counts(level: float, units: int) -> None:
    counts = np.array([0, 0, 1, 2])
    assert smallest(counts, level) == units
    assert (counts < units).mean() >= level
    assert (counts < units - 1).mean() < level


def test_a_level_is_said_only_where_it_changes() -> None:
    found = Levels.sampled(np.arange(6.0), np.array([1, 1, 2, 2, 2, 1]))
    assert found.at.tolist() == [0.0, 2.0, 5.0]
    assert found.units.tolist() == [1, 2, 1]
    assert found.mean(10.0) == pytest.approx((2 * 1 + 3 * 2 + 5 * 1) / 10)
    assert found.ups() == 1


def test_one_unit_less_is_never_less_than_none() -> None:
    assert Levels(np.array([0.0, 1.0]), np.array([0, 3])).shifted(-1).units.tolist() == [0, 2]


def test_creations_wait_for_a_free_server_and_are_never_more_than_there_are() -> None:
    arrivals = np.array([0.0, 0.1, 0.2, 0.3])
    run, after = servers.run(arrivals, Levels.constant(-1.0, 0), 100.0, servers=2, draw=lambda: 10.0)
    assert after.peak == 2
    assert (arrivals + run.waits).tolist() == pytest.approx([10.0, 10.1, 20.0, 20.1])


def test_in_an_outage_nothing_becomes_ready_and_boots_begin_anew_afterwards() -> None:
    outage = servers.Outage(100.0, 200.0)
    cases = itertools.starmap(outage, [(50.0, 20.0), (90.0, 20.0), (150.0, 20.0), (200.0, 20.0)])
    assert list(cases) == [70.0, 220.0, 220.0, 220.0]
