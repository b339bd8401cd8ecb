"""What every state machine shares: a row of its table, the flyweight machine over it, the check of a move.

State is derived from what is observed and never kept here: a machine only says whether a move exists. One
`transitions.Machine` serves every object of its kind, because a registered model costs 20 kB and 50 us and a
kind has thousands of objects. This module must never know a particular machine, do I/O or read a clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Generic, Self, TypeVar

import transitions


class Word(StrEnum):
    """A state or a trigger: its name, what it means, and (for a state) what it is recognised by."""

    meaning: str
    observed: str

    def __new__(cls, value: str, meaning: str, observed: str = "") -> Self:
        word = str.__new__(cls, value)
        word._value_ = value
        word.meaning = meaning
        word.observed = observed
        return word


S = TypeVar("S", bound=Word)
T = TypeVar("T", bound=Word)


@dataclass(frozen=True, slots=True)
class Transition(Generic[S, T]):
    """One legal move.

    The guard names the fact that whoever makes the move has established; the machine cannot look for itself.
    """

    trigger: T
    source: S
    dest: S
    guard: str
    reason: str


class IllegalTransition(Exception):  # noqa: N818 - the design's name for it
    """A move that the table does not have. It is counted and never written."""

    def __init__(self, kind: str, state: Word, trigger: Word, allowed: tuple[Word, ...]) -> None:
        self.kind = kind
        self.state = state
        self.trigger = trigger
        self.allowed = allowed
        ways = f"allowed there: {', '.join(allowed)}" if allowed else "nothing leads out of it"
        super().__init__(f"{kind}: no '{trigger}' from {state}; {ways}")


IllegalHook = Callable[[IllegalTransition], None]
_hooks: list[IllegalHook] = []


def set_illegal_hook(hook: IllegalHook | None) -> None:
    """Have `hook` called with every refused move, before it is raised; None takes the hook away."""
    _hooks[:] = [] if hook is None else [hook]


class _Token:
    """What the flyweight moves: one state for the length of one call, so that threads cannot meet."""

    __slots__ = ("state",)

    def __init__(self, state: Word) -> None:
        self.state = state


class Machine(Generic[S, T]):
    """One kind's table and the `transitions.Machine` over it.

    Args:
        kind: the name that errors and metrics carry, in lower case.
        initial: where a life begins; `finals`: where it ends.
        table: every legal move; the order is the order of the reference page.

    Raises:
        ValueError: two rows have the same source and trigger.
    """

    def __init__(
        self, kind: str, initial: S, finals: frozenset[S], table: tuple[Transition[S, T], ...]
    ) -> None:
        self.kind = kind
        self.initial = initial
        self.finals = finals
        self.table = table
        self.states: tuple[S, ...] = tuple(type(initial))
        self._exits: dict[S, tuple[Transition[S, T], ...]] = {
            state: tuple(row for row in table if row.source is state) for state in self.states
        }
        for state, rows in self._exits.items():
            if len({row.trigger for row in rows}) != len(rows):
                raise ValueError(f"{kind}: a trigger leads to two places from {state}")
        self.engine = transitions.Machine(
            model=None,
            states=list(self.states),
            initial=None,
            transitions=[
                {"trigger": str(row.trigger), "source": row.source, "dest": row.dest} for row in table
            ],
            auto_transitions=False,
        )

    def exits(self, state: S) -> tuple[Transition[S, T], ...]:
        """The legal moves out of `state`, in table order."""
        return self._exits[state]


def advance(machine: Machine[S, T], state: S, trigger: T) -> S:
    """The state that `trigger` leads to from `state`.

    Raises:
        IllegalTransition: the table has no such move; the hook was told.
    """
    event = machine.engine.events.get(trigger)
    token = _Token(state)
    if event is not None:
        with suppress(transitions.MachineError):
            event.trigger(token)
            return token.state  # type: ignore[return-value]  # the engine only holds states of this machine
    refused = IllegalTransition(
        machine.kind, state, trigger, tuple(row.trigger for row in machine.exits(state))
    )
    for hook in _hooks:
        hook(refused)
    raise refused


def trigger_between(machine: Machine[S, T], source: S, dest: S) -> T | None:
    """The trigger of the first row that leads from `source` straight to `dest`; None without one."""
    return next((row.trigger for row in machine.exits(source) if row.dest is dest), None)


@cache
def path(machine: Machine[S, T], source: S, dest: S) -> tuple[T, ...] | None:
    """The shortest legal sequence of triggers from `source` to `dest`; None when there is none.

    Levels are observed, not edges: what lay between two observations may have been missed, and this names it.
    """
    ways: dict[S, tuple[T, ...]] = {source: ()}
    ahead = deque([source])
    while ahead and dest not in ways:
        state = ahead.popleft()
        for row in machine.exits(state):
            if row.dest not in ways:
                ways[row.dest] = (*ways[state], row.trigger)
                ahead.append(row.dest)
    return ways.get(dest)
