import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds.durations import MAX_LENGTH, PATTERN, exact, seconds, text
from tests.unit.crds.strategies import durations


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0s", 0),
        ("35ms", 0.035),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5_400),
        ("672h", 2_419_200),
        ("1h1m1s1ms", 3_661.001),
        ("1m1m", 120),
    ],
)
def test_a_duration_means_so_many_seconds(written: str, meant: float) -> None:
    assert seconds(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "",
        "10",
        "10 minutes",
        "1d",
        "-5m",
        "1.5h",
        "m",
        "5M",
        "1h 30m",
        "123456s",
        "1h1m1s1ms1ms",
        "10m\n",
        "\uff11m",  # a digit, of another script
    ],
)
def test_anything_else_is_refused_with_how_to_write_it(written: str) -> None:
    with pytest.raises(ValueError, match="write a duration as whole numbers with the units h, m, s or ms"):
        seconds(written)


def test_a_refusal_shows_the_beginning_of_what_was_written_only() -> None:
    with pytest.raises(ValueError, match="is no duration") as refusal:
        seconds("9" * 100_000)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("length", "written"),
    [
        (-1, "0s"),
        (0, "0s"),
        (0.0004, "0s"),
        (0.035, "35ms"),
        (2.34, "2s340ms"),
        (9.9996, "10s"),
        (10.4, "10s"),
        (59.6, "1m"),
        (90, "1m30s"),
        (5_400, "1h30m"),
        (2_419_200, "672h"),
    ],
)
def test_a_length_of_time_is_written_as_people_do(length: float, written: str) -> None:
    assert text(length) == written


@given(st.floats(min_value=0, max_value=3_600 * 99_999))
def test_what_is_written_is_a_duration_and_means_the_same(length: float) -> None:
    written = text(length)
    assert re.fullmatch(PATTERN, written)
    assert len(written) <= MAX_LENGTH
    assert seconds(written) == pytest.approx(length, abs=0.0006 if length < 9.99 else 0.51)


@given(st.integers(0, 3_600_000 * 99_999))
def test_a_duration_may_be_written_to_the_millisecond(length: int) -> None:
    assert seconds(exact(length / 1000)) == length / 1000


@given(durations())
def test_every_duration_that_the_pattern_lets_in_can_be_read(written: str) -> None:
    assert seconds(written) >= 0


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_longer_time_is_never_written_as_a_shorter_one(one: float, other: float) -> None:
    shorter, longer = sorted((one, other))
    assert seconds(text(shorter)) <= seconds(text(longer))
