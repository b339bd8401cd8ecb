"""As many units are stopped as the level bears, and no more: judged by claims one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.curve import SlotDemand
from capacity.sketch import LeadTimes
from capacity.split import Split, split
from capacity.theory import quantile_target

TEN = SlotDemand(rate_per_hour=1800, mean_outstanding=10, dispersion=0.0)


def wakes(seconds: float, slow: int = 0) -> LeadTimes:
    """A hundred wake times, some of them ten times as slow."""
    times = LeadTimes()
    if slow < 100:
        times.add(seconds, 100 - slow)
    if slow:
        times.add(seconds * 10, slow)
    return times


def test_units_that_wake_in_time_may_all_be_stopped() -> None:
    assert split(19, 0.99, TEN, wakes(3), wait=5.0) == Split(0, 19)


def test_units_that_never_wake_in_time_all_run() -> None:
    units = quantile_target(10, 0.99)
    assert split(units, 0.99, TEN, wakes(8), wait=5.0) == Split(units, 0)


def test_what_is_larger_than_the_level_needs_may_be_stopped_however_slowly_it_wakes() -> None:
    assert split(30, 0.99, TEN, wakes(8), wait=5.0) == Split(quantile_target(10, 0.99), 30 - 19)


def test_a_level_that_the_target_misses_is_not_asked_of_the_split() -> None:
    assert split(12, 0.99, TEN, wakes(8), wait=5.0).stopped == 0
    assert split(12, 0.99, TEN, wakes(3), wait=5.0).stopped == 12


def test_nothing_is_stopped_before_a_wake_time_is_known() -> None:
    assert split(5, 0.9, TEN, LeadTimes(), wait=60.0) == Split(5, 0)
    assert split(0, 0.9, TEN, wakes(1), wait=60.0) == Split(0, 0)


@given(st.floats(0.5, 40), st.floats(0, 0.5), st.integers(0, 100), st.sampled_from([0.9, 0.95, 0.99]))
@settings(max_examples=50)
def test_the_level_is_reached_with_the_running_units_and_not_with_one_less(
    mean: float, dispersion: float, slow: int, level: float
) -> None:
    demand = SlotDemand(rate_per_hour=100, mean_outstanding=mean, dispersion=dispersion)
    units = quantile_target(mean, level, dispersion) + 2
    found = split(units, level, demand, wakes(2, slow), wait=5.0)
    assert found.running + found.stopped == units
    tail = demand.tail(np.arange(units + 1))
    in_time = 1 - slow / 100

    def served(running: int) -> float:
        return float(1 - tail[running] + (tail[running] - tail[units]) * in_time)

    assert served(found.running) >= level - 0.006  # wake times are read at 200 places
    assert found.running == 0 or served(found.running - 1) < level + 0.006


def test_claims_one_by_one_find_what_the_split_promises() -> None:
    random = np.random.default_rng(7)
    found = random.poisson(10, 200_000)
    wake = np.where(random.random(found.size) < 0.8, 3.0, 30.0)
    chosen = split(22, 0.97, TEN, wakes(3, slow=20), wait=5.0)
    served = (found < chosen.running) | ((found < 22) & (wake <= 5))
    assert served.mean() == pytest.approx(0.97, abs=0.015)
    assert served.mean() >= 0.97 - 0.002
    assert 0 < chosen.stopped < 22
