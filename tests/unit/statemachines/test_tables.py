"""What holds for every table, and what the design says about each."""

from typing import Any

import pytest

from statemachines import claim, instance
from statemachines.base import Machine, Transition, Word, path

MACHINES = pytest.mark.parametrize(
    "machine", [instance.MACHINE, claim.MACHINE], ids=lambda machine: str(machine.kind)
)


@MACHINES
def test_every_state_can_be_reached_from_the_initial_one(machine: Machine[Any, Any]) -> None:
    unreachable = [state for state in machine.states if path(machine, machine.initial, state) is None]

    assert unreachable == []


@MACHINES
def test_every_state_can_reach_an_end_and_nothing_leads_out_of_one(machine: Machine[Any, Any]) -> None:
    stuck = [
        s for s in machine.states if not any(path(machine, s, end) is not None for end in machine.finals)
    ]

    assert stuck == []
    assert [state for state in machine.states if not machine.exits(state)] == [
        state for state in machine.states if state in machine.finals
    ]


@MACHINES
def test_no_trigger_leads_to_two_places_from_one_state(machine: Machine[Any, Any]) -> None:
    pairs = [(row.source, row.trigger) for row in machine.table]

    assert len(pairs) == len(set(pairs))


@MACHINES
def test_every_word_and_every_move_is_explained(machine: Machine[Any, Any]) -> None:
    for state in machine.states:
        assert state.meaning.endswith("."), state
        assert state.observed, state
    for row in machine.table:
        assert row.reason.endswith("."), row
        assert row.guard.isidentifier(), row
        assert row.source is not row.dest


@MACHINES
def test_every_trigger_is_used(machine: Machine[Any, Any]) -> None:
    words: type[Word] = type(machine.table[0].trigger)

    assert {row.trigger for row in machine.table} == set(words)


@MACHINES
def test_the_engine_has_exactly_the_moves_of_the_table(machine: Machine[Any, Any]) -> None:
    drawn = {(str(row.trigger), row.source.name, row.dest.name) for row in machine.table}

    engine = {
        (event.name, transition.source, transition.dest)
        for event in machine.engine.events.values()
        for transitions in event.transitions.values()
        for transition in transitions
    }

    assert engine == drawn
    assert machine.engine.models == []


def test_a_table_with_an_ambiguous_trigger_is_refused() -> None:
    S, T = claim.State, claim.Trigger  # noqa: N806 - as the tables themselves write them
    rows = (
        Transition(T.BIND, S.PENDING, S.BOUND, "one", "One."),
        Transition(T.BIND, S.PENDING, S.FAILED, "two", "Two."),
    )

    with pytest.raises(ValueError, match="two places from Pending"):
        Machine("claim", S.PENDING, frozenset({S.FAILED}), rows)


def _moves(source: instance.State) -> set[instance.State]:
    return {row.dest for row in instance.MACHINE.exits(source)}


def test_a_claimed_vm_never_goes_back_without_a_reset() -> None:
    assert _moves(instance.State.CLAIMED) == {
        instance.State.RECYCLING,
        instance.State.RETAINED,
        instance.State.DRAINING,
        instance.State.TERMINATING,
    }


@pytest.mark.parametrize("state", [instance.State.DRAINING, instance.State.RETAINED])
def test_what_was_taken_out_of_use_can_only_be_deleted(state: instance.State) -> None:
    assert _moves(state) == {instance.State.TERMINATING}


def test_only_a_vm_that_can_serve_or_will_is_handed_over() -> None:
    sources = {row.source for row in instance.TRANSITIONS if row.trigger is instance.Trigger.HAND_OVER}

    assert sources == {
        instance.State.WARM,
        instance.State.STANDBY,
        instance.State.WAKING,
        instance.State.PROVISIONING,
    }


def test_we_delete_an_unclaimed_vm_only_through_draining() -> None:
    sources = {row.source for row in instance.TRANSITIONS if row.trigger is instance.Trigger.DESTROY}

    assert sources == {instance.State.DRAINING, instance.State.CLAIMED}


def test_somebody_may_delete_a_vm_in_any_state_but_a_dying_one() -> None:
    sources = {row.source for row in instance.TRANSITIONS if row.trigger is instance.Trigger.DELETED}

    assert set(instance.State) - sources == {instance.State.TERMINATING, instance.State.GONE}


def test_a_claim_is_bound_once_and_released_only_through_releasing() -> None:
    rows = {(row.source.value, row.dest.value) for row in claim.TRANSITIONS}

    assert rows == {
        ("Pending", "Bound"),
        ("Pending", "Expired"),
        ("Pending", "Failed"),
        ("Bound", "Releasing"),
        ("Bound", "Lost"),
        ("Releasing", "Released"),
    }
