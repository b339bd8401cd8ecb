"""A leak is found, and work that comes and goes is none."""

from __future__ import annotations

import math
from random import Random

import pytest

from tests.soak.flatness import (
    FEWEST,
    SHORTEST,
    Bound,
    Course,
    Series,
    bounds,
    course,
    creeping,
    unjudged,
)

RSS = next(each for each in bounds() if each.figure == "rss_mib")
FDS = next(each for each in bounds() if each.figure == "fds")


def series(value: object, *, seconds: float = 400.0, every: float = 3.0) -> Series:
    """A sample every three seconds of `value(at)`."""
    assert callable(value)
    return [(1000.0 + each * every, float(value(each * every))) for each in range(int(seconds / every))]


def found(values: Series, bound: Bound) -> list[str]:
    return creeping({"controller 1": {bound.figure: values}}, [bound])


def test_a_steady_figure_is_flat() -> None:
    assert found(series(lambda _: 80.0), RSS) == []


def test_memory_that_settles_in_the_warm_up_is_flat() -> None:
    assert found(series(lambda at: 90.0 - 30.0 * math.exp(-at / 30.0)), RSS) == []


def test_noise_is_no_leak() -> None:
    random = Random(1)
    assert found(series(lambda _: random.gauss(80.0, 4.0)), RSS) == []


def test_waves_are_no_leak() -> None:
    assert found(series(lambda at: 40.0 + 10.0 * math.sin(at / 15.0)), FDS) == []


def test_a_spike_at_the_end_is_no_leak() -> None:
    assert found(series(lambda at: 500.0 if at > 380 else 80.0), RSS) == []


def test_a_slow_leak_of_memory_is_found_and_said() -> None:
    [sentence] = found(series(lambda at: 80.0 + at * 5.0 / 60.0), RSS)
    assert sentence.startswith("rss_mib of controller 1 grew: ")


def test_a_leak_in_steps_under_noise_is_found() -> None:
    random = Random(2)
    assert found(series(lambda at: 80.0 + 10.0 * (at // 60) + random.gauss(0.0, 2.0)), RSS)


def test_one_handle_every_quarter_of_a_minute_is_found() -> None:
    assert found(series(lambda at: 40 + at // 15), FDS)


def test_memory_that_falls_is_fine() -> None:
    assert found(series(lambda at: 120.0 - at / 10.0), RSS) == []


@pytest.mark.parametrize(
    "values", [series(lambda at: at, seconds=SHORTEST - 5), series(lambda at: at, every=60.0)]
)
def test_too_little_is_not_judged(values: Series) -> None:
    assert course(values, 0.25) is None
    assert found(values, RSS) == []


def test_an_empty_series_is_not_judged() -> None:
    assert course([], 0.25) is None


def test_the_course_is_the_medians_of_the_first_and_last_third_after_the_warm_up() -> None:
    values = [(float(10 * each), float(each)) for each in range(FEWEST + 1)]
    # 0 to 120 s, of which 30 are warm-up: 3 … 6 and 9 … 12.
    assert course(values, 0.25) == Course(4.5, 10.5)
    assert str(Course(4.5, 10.5)) == "4.5 → 10.5"


def test_every_bound_of_the_file_lets_a_flat_line_pass_and_stops_a_steep_one() -> None:
    for bound in bounds():
        assert found(series(lambda _: 50.0), bound) == []
        assert found(series(lambda at: 50.0 + 5 * at), bound)


def test_a_calm_without_a_leader_to_judge_shows_nothing_and_says_so() -> None:
    whole, short = series(lambda _: 80.0), series(lambda _: 80.0, seconds=SHORTEST / 2)
    assert unjudged([], [RSS])
    assert unjudged([{"rss_mib": short}], [RSS])
    assert unjudged([{"rss_mib": whole}], [RSS, FDS]), "its handles were never seen"
    assert not unjudged([{"rss_mib": short}, {"rss_mib": whole}], [RSS])
