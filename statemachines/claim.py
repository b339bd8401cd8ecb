"""A claim, from the moment it is made until it needs nothing any more.

The phases are what `status.phase` says. What lies between the assignment of a VM and the write that publishes
it is never a phase; Ready is a condition, not a phase; and a claim that somebody deletes while it is Pending
is simply gone, which needs no move.
"""

from __future__ import annotations

from statemachines.base import Machine, Transition, Word


class State(Word):
    """The phase of a claim."""

    PENDING = "Pending", "Waiting for a VM.", "status.phase Pending, or no status yet"
    BOUND = "Bound", "Its VM was handed over and published; what the status names never changes.", "Bound"
    RELEASING = "Releasing", "Its VM is being given back by the policy recorded at the bind.", "Releasing"
    RELEASED = "Released", "Its VM was given back.", "Released"
    EXPIRED = "Expired", "It waited for longer than its timeout and never had a VM.", "Expired"
    FAILED = "Failed", "It cannot be served and never had a VM.", "Failed"
    LOST = "Lost", "Its VM disappeared; it is never given another one silently.", "Lost"


class Trigger(Word):
    """What moves a claim."""

    BIND = "bind", "The hand-over is published in the claim's status."
    TIME_OUT = "time-out", "The claim's timeout passed while it waited."
    REFUSE = "refuse", "The claim asks for what cannot be served."
    RELEASE = "release", "The claim is deleted, or its lifetime is over."
    FINISH = "finish", "The VM is gone, kept for a person, or no longer the claim's."
    LOSE = "lose", "The VM that the status names does not exist any more."


S, T = State, Trigger

TRANSITIONS: tuple[Transition[State, Trigger], ...] = (
    Transition(
        T.BIND, S.PENDING, S.BOUND, "vm_carries_claim", "The commit point: from here on the VM is published."
    ),
    Transition(
        T.TIME_OUT, S.PENDING, S.EXPIRED, "timeout_passed", "The claim said how long it is worth waiting."
    ),
    Transition(
        T.REFUSE,
        S.PENDING,
        S.FAILED,
        "never_servable",
        "whenEmpty says Fail, the pool was still missing at the end of the timeout, or it is impossible.",
    ),
    Transition(
        T.RELEASE,
        S.BOUND,
        S.RELEASING,
        "deleted_or_expired",
        "Said in the status before the VM is touched, so that a user who extends the lifetime in time wins.",
    ),
    Transition(
        T.LOSE, S.BOUND, S.LOST, "vm_absent", "An uncached read found no VM of that UID: its owner decides."
    ),
    Transition(T.FINISH, S.RELEASING, S.RELEASED, "vm_given_back", "Nothing of the claim is left on a VM."),
)

MACHINE = Machine("claim", S.PENDING, frozenset({S.RELEASED, S.EXPIRED, S.FAILED, S.LOST}), TRANSITIONS)
