"""A sketch keeps every quantile within one percent, in little room, and draws the same again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.sketch import ERROR, LONGEST, SHORTEST, LeadTimes, uniform

times = st.lists(st.floats(SHORTEST, LONGEST), min_size=1, max_size=200)


def sketch(seconds: list[float]) -> LeadTimes:
    lead_times = LeadTimes()
    for each in seconds:
        lead_times.add(each)
    return lead_times


@given(times, st.floats(0, 1))
def test_every_quantile_is_within_one_percent_of_a_sample_of_that_rank(
    seconds: list[float], share: float
) -> None:
    exact = float(np.quantile(seconds, share, method="inverted_cdf"))
    assert sketch(seconds).quantile(share) == pytest.approx(exact, rel=ERROR * 1.0001)


@given(times)
def test_the_mean_is_within_one_percent(seconds: list[float]) -> None:
    assert sketch(seconds).mean == pytest.approx(np.mean(seconds), rel=ERROR * 1.0001)


@given(times)
def test_what_it_writes_it_reads_again(seconds: list[float]) -> None:
    assert LeadTimes(sketch(seconds).to_pairs()) == sketch(seconds)


@given(times, times)
def test_two_sketches_together_are_the_sketch_of_all_samples(one: list[float], other: list[float]) -> None:
    together = sketch(one) + sketch(other)
    assert together == sketch(one + other)
    assert together.count == len(one) + len(other)


def test_without_samples_there_is_no_quantile_and_nothing_to_draw() -> None:
    assert LeadTimes().quantile(0.5) is None
    assert LeadTimes().mean == 0
    with pytest.raises(ValueError, match="no lead time was measured"):
        LeadTimes().draw(np.array([1], dtype=np.uint64))


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_what_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="no lead time"):
        LeadTimes().add(seconds)


@pytest.mark.parametrize("pair", [(10**6, 1), (-(10**6), 1), (3, 0), (3, -1)])
def test_buckets_that_cannot_be_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no bucket"):
        LeadTimes([pair])


def test_any_number_of_samples_fits_into_a_thousand_buckets() -> None:
    everything = sketch(np.geomspace(1e-9, 1e9, 20_000).tolist())
    assert len(everything.to_pairs()) < 1100
    assert everything.count == 20_000


def test_draws_are_distributed_like_the_samples() -> None:
    lead_times = LeadTimes()
    lead_times.add(10, 500)
    lead_times.add(20, 400)
    lead_times.add(100, 100)
    drawn = lead_times.draw(np.arange(100_000, dtype=np.uint64))
    assert np.mean(drawn < 11) == pytest.approx(0.5, abs=0.01)
    assert np.mean(drawn > 90) == pytest.approx(0.1, abs=0.005)
    assert drawn.mean() == pytest.approx(lead_times.mean, rel=0.01)


def test_the_same_key_draws_the_same_lead_time_whatever_is_drawn_beside_it() -> None:
    lead_times = sketch([float(each) for each in range(1, 300)])
    keys = np.arange(1000, dtype=np.uint64)
    assert np.array_equal(lead_times.draw(keys)[::-1], lead_times.draw(keys[::-1]))


def test_hashes_of_neighbouring_keys_are_uniform_and_unrelated() -> None:
    hashed = uniform(np.arange(100_000, dtype=np.uint64))
    assert hashed.min() >= 0
    assert hashed.max() < 1
    assert np.histogram(hashed, bins=10, range=(0, 1))[0] == pytest.approx(10_000, rel=0.05)
    assert abs(np.corrcoef(hashed[:-1], hashed[1:])[0, 1]) < 0.01


def test_one_outage_does_not_reach_beyond_the_deadline() -> None:
    lead_times = LeadTimes()
    lead_times.add(20, 94)
    lead_times.add(3600, 6)
    cut = lead_times.cut(900)
    assert cut.count == 100
    assert cut.quantile(1.0) == pytest.approx(900, rel=ERROR)
    assert cut.mean == pytest.approx(0.94 * 20 + 0.06 * 900, rel=ERROR)
    assert lead_times.quantile(1.0) == pytest.approx(3600, rel=ERROR)  # the original is as it was


def test_logarithms_tell_mean_and_spread() -> None:
    random = np.random.default_rng(1)
    mean, variance = sketch(np.exp(random.normal(3, 0.4, 20_000)).tolist()).logarithms
    assert mean == pytest.approx(3, abs=0.02)
    assert variance == pytest.approx(0.16, rel=0.05)
    assert LeadTimes().logarithms == (0, 0)
