"""Moves made through the machines: legal ones, refused ones, missed ones, many at once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statemachines import claim
from statemachines.base import (
    IllegalTransition,
    Machine,
    Word,
    advance,
    path,
    set_illegal_hook,
    trigger_between,
)
from statemachines.instance import MACHINE, State, Trigger


@pytest.fixture
def refused() -> Iterator[list[IllegalTransition]]:
    seen: list[IllegalTransition] = []
    set_illegal_hook(seen.append)
    yield seen
    set_illegal_hook(None)


def _every_move() -> list[tuple[Machine[Any, Any], Word, Word]]:
    return [
        (machine, state, trigger)
        for machine, triggers in ((MACHINE, Trigger), (claim.MACHINE, claim.Trigger))
        for state in machine.states
        for trigger in triggers
    ]


def test_every_move_of_the_table_is_made_and_every_other_is_refused_and_counted(
    refused: list[IllegalTransition],
) -> None:
    expected = 0
    for machine, state, trigger in _every_move():
        dest = next((row.dest for row in machine.exits(state) if row.trigger is trigger), None)
        if dest is not None:
            assert advance(machine, state, trigger) is dest
            continue
        expected += 1
        with pytest.raises(IllegalTransition):
            advance(machine, state, trigger)

    assert expected > 100
    assert len(refused) == expected


def test_a_refusal_says_what_is_allowed(refused: list[IllegalTransition]) -> None:
    with pytest.raises(
        IllegalTransition, match="instance: no 'drain' from Claimed; allowed there: recycle, retain"
    ) as raised:
        advance(MACHINE, State.CLAIMED, Trigger.DRAIN)

    assert raised.value.kind == "instance"
    assert raised.value.state is State.CLAIMED
    assert raised.value.trigger is Trigger.DRAIN
    assert refused == [raised.value]


def test_a_refusal_at_the_end_of_a_life_says_that_nothing_is_allowed() -> None:
    with pytest.raises(IllegalTransition, match="no 'destroy' from Gone; nothing leads out of it"):
        advance(MACHINE, State.GONE, Trigger.DESTROY)


def test_a_trigger_of_another_machine_is_refused() -> None:
    foreign: Any = claim.Trigger.BIND

    with pytest.raises(IllegalTransition, match="no 'bind' from Warm"):
        advance(MACHINE, State.WARM, foreign)


def test_without_a_hook_a_refusal_is_still_raised(refused: list[IllegalTransition]) -> None:
    set_illegal_hook(None)

    with pytest.raises(IllegalTransition):
        advance(MACHINE, State.RETAINED, Trigger.HAND_OVER)
    assert refused == []


def test_the_trigger_between_two_observed_levels_is_found() -> None:
    assert trigger_between(MACHINE, State.WARM, State.UNREADY) is Trigger.LOSE
    assert trigger_between(MACHINE, State.WARM, State.GONE) is None
    assert trigger_between(MACHINE, State.WARM, State.WARM) is None


def test_what_lay_between_two_observations_is_named() -> None:
    assert path(MACHINE, State.PROVISIONING, State.GONE) == (Trigger.DELETED, Trigger.VANISH)
    assert path(MACHINE, State.FAILED, State.TERMINATING) == (Trigger.DELETED,)
    assert path(MACHINE, State.CLAIMED, State.WARM) == (Trigger.RECYCLE, Trigger.RESET)
    assert path(MACHINE, State.WARM, State.WARM) == ()
    assert path(MACHINE, State.RETAINED, State.WARM) is None


@given(st.sampled_from(State), st.sampled_from(State))
def test_a_path_can_be_walked_and_ends_where_it_says(source: State, dest: State) -> None:
    way = path(MACHINE, source, dest)
    if way is None:
        return
    state = source
    for trigger in way:
        state = advance(MACHINE, state, trigger)
    assert state is dest
    assert len(way) <= 1 or trigger_between(MACHINE, source, dest) is None


@given(st.lists(st.sampled_from(Trigger), max_size=40))
def test_whatever_is_tried_no_walk_leaves_the_table_or_revives_the_dead(tried: list[Trigger]) -> None:
    state, dying = MACHINE.initial, False
    for trigger in tried:
        try:
            state = advance(MACHINE, state, trigger)
        except IllegalTransition:
            continue
        dying = dying or state in {State.DRAINING, State.TERMINATING}
        assert not dying or state in {State.DRAINING, State.TERMINATING, State.GONE}


def test_threads_that_move_at_once_do_not_meet() -> None:
    def walk(way: tuple[Trigger, ...]) -> State:
        state = State.PROVISIONING
        for trigger in way:
            state = advance(MACHINE, state, trigger)
        return state

    ways = [
        (Trigger.READY, Trigger.HAND_OVER, Trigger.DESTROY, Trigger.VANISH),
        (Trigger.READY, Trigger.LOSE, Trigger.FAIL, Trigger.DRAIN),
    ] * 500

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(walk, ways))

    assert ends == [State.GONE, State.DRAINING] * 500


def test_ten_thousand_moves_take_well_under_a_second() -> None:
    begun = process_time()
    for _ in range(10_000):
        advance(MACHINE, State.WARM, Trigger.HAND_OVER)

    assert process_time() - begun < 0.5
