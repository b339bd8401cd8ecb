"""The count of outstanding orders gives the target; a replay of each unit, one by one, says it is right."""

import heapq
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.counts import lost, outstanding, reached, replay_servers, smallest, time_to_fill
from capacity.sketch import LeadTimes
from capacity.theory import erlang_b, loss_target, quantile_target

trace = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 60)), min_size=1, max_size=60).map(
    lambda pairs: (np.cumsum([gap for gap, _ in pairs]).tolist(), [lead for _, lead in pairs])
)


def waits_of_a_pool(arrivals: list[int], leads: list[int], units: int) -> list[float]:
    """A pool of so many units, each by itself: how long each claim waits, first come first served."""
    ready: list[float] = [-1.0] * units
    waiting: deque[int] = deque()
    waits = [0.0] * len(arrivals)
    coming: list[tuple[float, int]] = []

    def until(now: float) -> None:
        while coming and coming[0][0] <= now:
            done, _ = heapq.heappop(coming)
            if waiting:
                first = waiting.popleft()
                waits[first] = done - arrivals[first]
            else:
                ready.append(done)

    for claim, (at, lead) in enumerate(zip(arrivals, leads, strict=True)):
        until(at)
        heapq.heappush(coming, (at + lead, claim))
        if ready:
            ready.pop()
        else:
            waiting.append(claim)
    until(float("inf"))
    return waits


def poisson(load: float, claims: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Arrivals, and lead times of 20 s spread as KubeVirt's boots are, at load = rate · mean lead time."""
    random = np.random.default_rng(seed)
    return np.cumsum(random.exponential(20 / load, claims)), random.gamma(6, 20 / 6, claims)


@given(trace, st.integers(1, 8))
def test_a_claim_is_served_at_once_exactly_if_fewer_orders_than_the_target_are_outstanding(
    trace: tuple[list[int], list[int]], units: int
) -> None:
    arrivals, leads = trace
    waits = waits_of_a_pool(arrivals, leads, units)
    assert (outstanding(arrivals, leads) < units).tolist() == [wait == 0 for wait in waits]


@given(trace)
def test_the_smallest_target_reaches_the_level_and_one_less_does_not(
    trace: tuple[list[int], list[int]],
) -> None:
    counts = outstanding(*trace)
    for level in (0.5, 0.9, 0.99, 0.9999, 1.0):
        units = smallest(counts, level)
        assert reached(counts, units) >= level
        assert units == 1 or reached(counts, units - 1) < level


@given(trace, st.integers(0, 40))
def test_patience_never_needs_more_units(trace: tuple[list[int], list[int]], wait: int) -> None:
    assert (outstanding(*trace, wait=wait) <= outstanding(*trace)).all()


@given(trace, st.integers(0, 40), st.integers(1, 8))
def test_the_count_with_patience_is_never_too_low_for_first_come_first_served(
    trace: tuple[list[int], list[int]], wait: int, units: int
) -> None:
    arrivals, leads = trace
    waits = waits_of_a_pool(arrivals, leads, units)
    for count, waited in zip(outstanding(arrivals, leads, wait=wait), waits, strict=True):
        assert count >= units or waited <= wait


def test_without_claims_there_is_no_smallest_target() -> None:
    with pytest.raises(ValueError, match="no claims"):
        smallest([], 0.99)
    assert reached([], 1) == 1


def test_a_batch_needs_as_many_units_as_it_has() -> None:
    counts = outstanding([100.0] * 5, [20.0] * 5)
    assert counts.tolist() == [0, 1, 2, 3, 4]
    assert smallest(counts, 1.0) == 5
    assert smallest(counts, 0.8) == 4


@pytest.mark.parametrize(
    ("load", "waits"),
    [(0.1, 2), (0.5, 4), (1, 5), (2, 7), (3, 9), (5, 12), (10, 19), (20, 32), (50, 68), (100, 125)],
)
def test_the_count_finds_the_poisson_quantile_within_sampling_error(load: float, waits: int) -> None:
    assert quantile_target(load, 0.99) == waits
    counts = outstanding(*poisson(load, 40_000 + int(2000 * load)))
    assert abs(smallest(counts, 0.99) - waits) <= 1 + load // 50
    assert reached(counts, waits) >= 0.99 - 0.003
    assert reached(counts, waits - 1) < 0.99 + 0.003


@pytest.mark.parametrize(
    ("load", "stock"),
    [(0.1, 2), (0.5, 4), (1, 5), (2, 7), (3, 8), (5, 11), (10, 18), (20, 30), (50, 64), (100, 117)],
)
def test_the_replay_of_the_loss_system_agrees_with_erlang_b(load: float, stock: int) -> None:
    assert loss_target(load, 0.99) == stock
    replayed = lost(*poisson(load, 40_000), stock)
    assert replayed == pytest.approx(erlang_b(load, stock), abs=0.003)
    assert replayed < 0.01 + 0.003
    assert lost(*poisson(load, 40_000), stock - 1) > 0.01 - 0.003


def test_a_loss_system_without_stock_loses_all_and_without_claims_nothing() -> None:
    assert lost([1.0, 2.0], [5.0, 5.0], 0) == 1
    assert lost([], [], 3) == 0


def test_rate_times_boot_time_lets_about_half_of_the_claims_wait() -> None:
    counts = outstanding(*poisson(50, 50_000))
    assert 0.4 < reached(counts, 50) < 0.6


def test_servers_take_turns_first_come_first_served() -> None:
    assert replay_servers([0, 0, 0, 1], [10, 10, 10, 10], 2).tolist() == [10, 10, 20, 20]
    assert replay_servers([0, 100], [10, 10], 1).tolist() == [10, 110]


@pytest.mark.parametrize("servers", [None, 5, 50])
def test_enough_servers_make_nobody_wait(servers: int | None) -> None:
    assert replay_servers([0, 0, 3, 4, 4], [9, 8, 7, 6, 5], servers).tolist() == [9, 8, 10, 10, 9]


@given(trace, st.integers(1, 5))
def test_more_servers_are_never_slower(trace: tuple[list[int], list[int]], servers: int) -> None:
    arrivals, leads = trace
    same = [7.0] * len(leads)  # with equal lead times; with others list scheduling knows anomalies
    assert (replay_servers(arrivals, same, servers + 1) <= replay_servers(arrivals, same, servers)).all()


def test_a_hundred_units_at_ten_servers_take_ten_boots() -> None:
    leads = LeadTimes([])
    leads.add(20, 100)
    assert time_to_fill(100, leads, 10) == pytest.approx(200, rel=0.02)
    assert time_to_fill(100, leads) == pytest.approx(20, rel=0.02)
    assert time_to_fill(101, leads, 10) == pytest.approx(220, rel=0.02)


def test_a_fill_of_thousands_is_bounded_without_a_replay() -> None:
    leads = LeadTimes([])
    leads.add(20, 100)
    assert time_to_fill(5000, leads, 10) == pytest.approx(10_020, rel=0.02)


def test_nothing_to_fill_or_nothing_known_takes_no_time() -> None:
    leads = LeadTimes()
    assert time_to_fill(10, leads, 1) == 0
    leads.add(5)
    assert time_to_fill(0, leads, 1) == 0


def test_the_time_to_fill_is_met_by_almost_every_fill() -> None:
    random = np.random.default_rng(2)
    leads = LeadTimes()
    samples = random.gamma(6, 20 / 6, 2000)
    for each in samples:
        leads.add(float(each))
    allowed = time_to_fill(30, leads, 10)
    fills = [replay_servers(np.zeros(30), random.choice(samples, 30), 10).max() for _ in range(300)]
    assert np.mean(np.array(fills) <= allowed) > 0.6
    assert allowed < 1.4 * np.mean(fills)
