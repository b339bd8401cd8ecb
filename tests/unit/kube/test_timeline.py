"""How old a stamp is when clocks were set: never older than it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.kube.timeline import Timeline

NOON = 1e9
HOUR = 3600.0


def heard(*settings: tuple[float, float], host: float = NOON) -> Timeline:
    """(at, offset from NOON) each."""
    found = Timeline(host=host)
    for at, offset in settings:
        found = found.heard(NOON + offset, at)
    return found


@pytest.mark.parametrize(
    ("settings", "stamp", "restated"),
    [
        pytest.param([], 5.0, 5.0, id="nothing heard yet"),
        pytest.param([(0, 0)], 50.0, 50.0, id="since we came"),
        pytest.param([(0, 0)], -5000.0, -5000.0, id="before we came"),
        pytest.param([(0, 0), (50, 1.9)], 10.0, 10.0, id="a better estimate is no setting"),
        pytest.param([(0, 0), (50, HOUR)], 10.0, 10.0 + HOUR, id="set forward since"),
        pytest.param([(0, 0), (50, HOUR)], -99.0, -99.0 + HOUR, id="set forward, stamped before we came"),
        pytest.param([(0, 0), (50, HOUR)], HOUR + 60.0, HOUR + 60.0, id="stamped after it was set"),
        pytest.param(
            [(0, 0), (50, HOUR)], HOUR - 60.0, HOUR + 49.0, id="a time that never was: the youngest"
        ),
        pytest.param([(0, 0), (50, HOUR), (60, 0)], 55.0 + HOUR, 55.0 + HOUR, id="stamped in a false hour"),
        pytest.param([(0, 0), (50, HOUR), (60, 0)], 10.0, 10.0, id="forward and back again"),
        pytest.param([(0, 0), (50, -HOUR)], 10.0, 10.0, id="set back: in doubt the younger"),
        pytest.param([(0, 0), (9000, -HOUR)], 10.0, 10.0 - HOUR, id="set back, and surely from before"),
        pytest.param([(0, 0), (50, -HOUR), (60, 0)], 10.0, 10.0, id="back and forward again"),
    ],
)
def test_a_stamp_is_restated_as_the_present_setting_would_have_it(
    settings: list[tuple[float, float]], stamp: float, restated: float
) -> None:
    assert heard(*settings).restated(NOON + stamp) == NOON + restated


@pytest.mark.parametrize(
    ("host", "younger_by"),
    [(0.0, 0.0), (-1.9, 0.0), (-HOUR, HOUR), (HOUR, 0.0)],
    ids=["agrees", "nearly", "is behind", "is ahead"],
)
def test_what_is_older_than_we_are_is_as_old_as_the_younger_clock_says(
    host: float, younger_by: float
) -> None:
    assert heard((0, 0), host=NOON + host).restated(NOON - 99.0) == NOON - 99.0 + younger_by


def test_a_host_whose_clock_is_put_right_delays_nothing_any_longer() -> None:
    behind = heard((0, 0), host=NOON - HOUR)
    assert Timeline(behind.stretches, host=NOON).restated(NOON - 99.0) == NOON - 99.0


SETTINGS = st.lists(
    st.tuples(st.floats(0.5, 5000.0), st.sampled_from([-2 * HOUR, -HOUR, -10.0, 0.0, 10.0, HOUR, 2 * HOUR])),
    min_size=1,
    max_size=40,
)


@given(SETTINGS, st.data())
def test_nothing_is_ever_older_than_it_is(steps: list[tuple[float, float]], data: st.DataObject) -> None:
    """However often the clock is set; stamped at any moment since we came."""
    at, settings = 0.0, []
    for gap, offset in steps:
        settings.append((at, offset))
        at += gap
    when = data.draw(st.floats(0.0, at))
    offset = next(offset for began, offset in reversed(settings) if began <= when)
    now = NOON + at + settings[-1][1]
    age = now - heard(*settings).restated(NOON + when + offset)
    assert age <= at - when + 3.0


@given(SETTINGS)
def test_what_is_remembered_is_bounded(steps: list[tuple[float, float]]) -> None:
    assert len(heard(*((n * 10.0, offset) for n, (_, offset) in enumerate(steps))).stretches) <= 16
