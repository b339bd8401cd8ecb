"""The failure brake: when it opens, how it probes, what closes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.pools.brake import FIRST_DELAY, LONGEST_DELAY, OPENS_AFTER, BrakeState, restored
from controller.pools.status import status
from crds.pool import VirtualMachinePool
from tests.support.builders import NOW, make_pool, make_snapshot


def _failed(times: int, state: BrakeState = BrakeState(), now: float = NOW) -> BrakeState:  # noqa: B008 - a frozen value
    for _ in range(times):
        state = state.failed(now, created=now - 60)
    return state


OPEN = _failed(OPENS_AFTER)


def test_a_failure_or_two_leave_it_closed() -> None:
    state = _failed(OPENS_AFTER - 1)
    assert not state.open
    assert state.failures == OPENS_AFTER - 1
    assert state.allows(7, NOW) is None


def test_the_third_in_a_row_opens_it_and_the_first_probe_is_a_pause_away() -> None:
    assert OPEN.open
    assert (OPEN.open_since, OPEN.next_probe, OPEN.pause) == (NOW, NOW + FIRST_DELAY, FIRST_DELAY)


def test_a_success_between_two_failures_begins_the_count_anew() -> None:
    state = _failed(2, _failed(2).succeeded())
    assert not state.open


def test_it_waits_for_the_pause_and_then_tries_one_at_a_time() -> None:
    assert OPEN.allows(0, NOW) == 0
    assert OPEN.allows(0, NOW + FIRST_DELAY - 0.1) == 0
    assert OPEN.allows(0, NOW + FIRST_DELAY) == 1
    assert OPEN.allows(1, NOW + FIRST_DELAY) == 0


def test_the_rest_of_a_wave_that_was_made_before_it_opened_lengthens_no_pause() -> None:
    state = _failed(40, OPEN, NOW + 5)
    assert state.failures == OPENS_AFTER + 40
    assert (state.next_probe, state.pause) == (OPEN.next_probe, OPEN.pause)


def test_each_probe_that_fails_doubles_the_pause_up_to_the_longest() -> None:
    state, now, pauses = OPEN, NOW, []
    for _ in range(8):
        assert state.next_probe is not None
        created = state.next_probe
        now = created + 30
        state = state.failed(now, created)
        assert state.next_probe == now + state.pause
        pauses.append(state.pause)
    assert pauses == [20, 40, 80, 160, 300, 300, 300, 300]
    assert state.open_since == NOW


def test_a_success_closes_it() -> None:
    state = OPEN.succeeded()
    assert state == BrakeState()
    assert state.allows(3, NOW) is None


def test_after_it_closed_it_opens_again_with_the_first_pause() -> None:
    long = OPEN.failed(NOW + 50, NOW + 20).failed(NOW + 100, NOW + 70)
    again = _failed(OPENS_AFTER, long.succeeded(), NOW + 1000)
    assert (again.open_since, again.pause) == (NOW + 1000, FIRST_DELAY)


@pytest.mark.parametrize("unit", [0.5, 10.0, 60.0])
def test_its_first_pause_may_be_set(unit: float) -> None:
    state = BrakeState()
    for _ in range(OPENS_AFTER):
        state = state.failed(NOW, NOW - 60, unit)
    assert state.next_probe == NOW + unit
    assert state.failed(NOW + unit, NOW + unit, unit).pause == min(LONGEST_DELAY, 2 * unit)


@given(
    events=st.lists(st.tuples(st.booleans(), st.floats(0, 400), st.floats(0, 400)), max_size=40),
    in_flight=st.integers(0, 5),
)
def test_however_it_goes_an_open_brake_lets_one_through_at_most(
    events: list[tuple[bool, float, float]], in_flight: int
) -> None:
    state, now = BrakeState(), NOW
    for success, later, age in events:
        now += later
        state = state.succeeded() if success else state.failed(now, now - age)
        allowed = state.allows(in_flight, now)
        assert state.open == (state.failures >= OPENS_AFTER)
        assert (allowed is None) is not state.open
        if allowed:
            assert (allowed, in_flight) == (1, 0)
        assert state.pause <= LONGEST_DELAY


# ---- a restart does not let go of it


def _after_a_restart(state: BrakeState, later: float = 0.0) -> BrakeState:
    written = status(make_snapshot(brake=state), {})
    return restored(make_pool(status=written), NOW + later)


def test_it_is_read_back_from_the_last_status() -> None:
    state = BrakeState(5, NOW - 100, NOW + 80, 80.0)
    assert _after_a_restart(state) == state


def test_a_restart_long_after_the_next_probe_tries_one_at_once() -> None:
    state = _after_a_restart(BrakeState(5, NOW - 100, NOW + 80, 80.0), later=3600)
    assert state.open
    assert state.allows(0, NOW + 3600) == 1
    assert state.allows(1, NOW + 3600) == 0
    assert state.pause >= FIRST_DELAY


@pytest.mark.parametrize(
    "pool", [make_pool(), make_pool(status={}), make_pool(status={"brake": {"failures": 2}})]
)
def test_one_that_was_closed_is_closed(pool: VirtualMachinePool) -> None:
    assert restored(pool, NOW) == BrakeState()
