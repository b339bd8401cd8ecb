"""The formulae are the ones of the textbooks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from capacity.theory import distribution, erlang_b, loss_target, quantile_target, room

LOADS = (0.1, 0.5, 1, 2, 3, 5, 10, 20, 50, 100)


def test_the_targets_at_which_one_percent_waits_are_the_known_ones() -> None:
    assert [quantile_target(load, 0.99) for load in LOADS] == [2, 4, 5, 7, 9, 12, 19, 32, 68, 125]


def test_the_stocks_at_which_one_percent_is_lost_are_the_known_ones() -> None:
    assert [loss_target(load, 0.99) for load in LOADS] == [2, 4, 5, 7, 8, 11, 18, 30, 64, 117]


@given(st.floats(0.01, 3000))
def test_the_distribution_without_dispersion_is_poisson(mean: float) -> None:
    size = room(mean, 0)
    ours = distribution(mean, 0.0, size)[0]
    assert ours == pytest.approx(stats.poisson.pmf(np.arange(size), mean), abs=1e-9)
    assert ours.sum() == pytest.approx(1, abs=1e-8)


@settings(max_examples=30)
@given(st.floats(0.01, 200), st.floats(0.01, 3))
def test_the_distribution_with_dispersion_is_the_negative_binomial(mean: float, dispersion: float) -> None:
    size = room(mean, dispersion)
    shape = 1 / dispersion
    theirs = stats.nbinom.pmf(np.arange(size), shape, shape / (shape + mean))
    assert distribution(mean, dispersion, size)[0] == pytest.approx(theirs, abs=1e-9)


@given(st.floats(0.01, 300), st.floats(0, 3), st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999, 0.9999]))
def test_there_is_room_for_every_level(mean: float, dispersion: float, level: float) -> None:
    assert distribution(mean, dispersion, room(mean, dispersion)).sum() > level
    assert quantile_target(mean, level, dispersion) < room(mean, dispersion)


@given(st.floats(0, 200), st.floats(0.5, 0.999))
def test_one_unit_less_would_not_have_been_enough(mean: float, level: float) -> None:
    units = quantile_target(mean, level)
    assert stats.poisson.cdf(units - 1, mean) >= level - 1e-9
    assert units == 1 or stats.poisson.cdf(units - 2, mean) < level + 1e-9


@given(st.floats(0.1, 100), st.floats(0.1, 2))
def test_more_dispersion_needs_more_units_at_a_high_level(mean: float, dispersion: float) -> None:
    assert quantile_target(mean, 0.999, dispersion) >= quantile_target(mean, 0.999)


def test_rows_are_means() -> None:
    table = distribution([1.0, 2.0, 30.0], 0.5, 400)
    assert table.shape == (3, 400)
    assert table @ np.arange(400) == pytest.approx([1, 2, 30], rel=1e-3)


def test_a_pool_that_nobody_uses_has_no_orders() -> None:
    assert distribution(0.0, 0.0, 3)[0] == pytest.approx([1, 0, 0])
    assert quantile_target(0, 0.999) == 1


@pytest.mark.parametrize("mean", [-1.0, 1e9, float("nan")])
def test_a_mean_that_no_pool_has_is_refused(mean: float) -> None:
    with pytest.raises(ValueError, match="outstanding orders"):
        quantile_target(mean, 0.99)


def test_erlang_b_is_the_share_of_a_truncated_poisson() -> None:
    for load, servers in ((0.5, 1), (3, 5), (20, 30), (100, 117)):
        truncated = stats.poisson.pmf(np.arange(servers + 1), load)
        assert erlang_b(load, servers) == pytest.approx(truncated[-1] / truncated.sum())
    assert erlang_b(3, 0) == 1
