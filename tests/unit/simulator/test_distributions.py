"""Times as distributions."""

from __future__ import annotations

from random import Random
from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.kubevirt.distributions import REALISTIC, Fixed, LogNormal, Uniform, parse


def samples(text: str, count: int = 4000) -> list[float]:
    random = Random(7)
    distribution = parse(text)
    return [distribution.sample(random) for _ in range(count)]


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("1s", Fixed(1.0)),
        ("1m30s", Fixed(90.0)),
        ("0s", Fixed(0.0)),
        ("500ms..2s", Uniform(0.5, 2.0)),
        (" 2s..2s ", Uniform(2.0, 2.0)),
        ("p50=16s,p95=27s", LogNormal(16.0, 27.0)),
    ],
)
def test_each_form_is_read(text: str, distribution: object) -> None:
    assert parse(text) == distribution


@pytest.mark.parametrize(
    "text", ["", "1", "fast", "2s..1s", "1s..", "p50=0s,p95=2s", "p50=9s,p95=2s", "p95=2s", "1 s"]
)
def test_what_cannot_be_read_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"500ms\.\.2s"):
        parse(text)


def test_a_range_stays_within_its_bounds_and_uses_them() -> None:
    drawn = samples("500ms..2s")
    assert 0.5 <= min(drawn) < 0.52
    assert 1.98 < max(drawn) <= 2.0


def test_realistic_boots_have_the_quantiles_they_are_named_by() -> None:
    hundredths = quantiles(samples(REALISTIC), n=100)
    assert hundredths[49] == pytest.approx(16, rel=0.05)
    assert hundredths[94] == pytest.approx(27, rel=0.05)


@given(p50=st.integers(1, 100_000), more=st.integers(0, 100_000), seed=st.integers(0, 10_000))
def test_a_lognormal_is_never_negative_nor_beyond_four_deviations(p50: int, more: int, seed: int) -> None:
    distribution = LogNormal(p50 / 1000, (p50 + more) / 1000)
    drawn = distribution.sample(Random(seed))
    assert 0 < drawn <= distribution.p50 * (distribution.p95 / distribution.p50) ** (4 / 1.64) * 1.001
