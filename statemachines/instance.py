"""One VM of a pool, from its creation until there is no object any more.

The VM's label holds only what we decided (Pooled, Claimed, Draining, Recycling, Retained); the states
below add what is observed. So the machine names a move and checks it, and never remembers where a VM is.
"""

from __future__ import annotations

from statemachines.base import Machine, Transition, Word


class State(Word):
    """Where a VM of a pool is in its life."""

    PROVISIONING = (
        "Provisioning",
        "Created, not yet warm.",
        "Pooled; readiness not reached, before its deadline",
    )
    WARM = "Warm", "Readiness reached and still true: it may be handed over.", "Pooled; readiness holds now"
    UNREADY = (
        "Unready",
        "Was warm and is not now: not counted, not handed over, not yet given up.",
        "Pooled; readiness does not hold any more, its grace runs",
    )
    STANDBY = "Standby", "Kept stopped, as a tier of its own.", "Pooled; runStrategy Halted, disks ready"
    WAKING = "Waking", "A standby VM on its way to Warm or to a waiting claim.", "Pooled; start asked for"
    CLAIMED = "Claimed", "Handed over; it belongs to a claim.", "Claimed; claim-uid label, the claim owns it"
    RECYCLING = "Recycling", "Released, and being reset for reuse.", "Recycling; before readiness again"
    RETAINED = "Retained", "Released and kept for a person; never handed out again.", "Retained; no owner"
    DRAINING = "Draining", "Will be deleted and can't be claimed any more.", "Draining"
    TERMINATING = "Terminating", "Its deletion is under way.", "deletionTimestamp"
    FAILED = "Failed", "Never became warm in time, or was lost while warm.", "Pooled; VM status, deadline"
    GONE = "Gone", "There is no object any more.", "nothing"


class Trigger(Word):
    """What moves a VM of a pool."""

    READY = "ready", "Its readiness rule holds."
    LOSE = "lose", "Its readiness rule does not hold any more."
    RECOVER = "recover", "Its readiness rule holds again, within the grace."
    FAIL = "fail", "It is given up: deadline or grace over, crash loop, or refused by KubeVirt."
    PARK = "park", "It is stopped, to be kept as a standby."
    WAKE = "wake", "It is started again."
    HAND_OVER = "hand-over", "A claim gets it."
    RECYCLE = "recycle", "Its claim is released, policy Recycle."
    RESET = "reset", "Its reset is proved."
    RETAIN = "retain", "Its claim is released, policy Retain."
    DISCARD = "discard", "Its claim is released and it must be destroyed, where the policy is not Delete."
    DRAIN = "drain", "The pool does not want it any more."
    DESTROY = "destroy", "We delete it."
    DELETED = "deleted", "Somebody else deleted it."
    VANISH = "vanish", "The last finalizer came off."


S, T = State, Trigger

_ENDED = {S.TERMINATING, S.GONE}

TRANSITIONS: tuple[Transition[State, Trigger], ...] = (
    Transition(T.READY, S.PROVISIONING, S.WARM, "readiness_holds", "It has booted and a claim could use it."),
    Transition(T.PARK, S.PROVISIONING, S.STANDBY, "tier_wants_standby", "It was made to be kept stopped."),
    Transition(
        T.FAIL, S.PROVISIONING, S.FAILED, "deadline_passed", "It did not become warm in time, or never can."
    ),
    Transition(T.PARK, S.WARM, S.STANDBY, "tier_wants_standby", "More VMs run than the tier wants running."),
    Transition(T.WAKE, S.STANDBY, S.WAKING, "tier_wants_running", "A claim or the running tier needs it."),
    Transition(T.READY, S.WAKING, S.WARM, "readiness_holds", "It is awake."),
    Transition(T.FAIL, S.WAKING, S.FAILED, "deadline_passed", "It did not wake up in time."),
    Transition(
        T.LOSE, S.WARM, S.UNREADY, "readiness_lost", "It stops counting at once; a claim must not get it."
    ),
    Transition(T.RECOVER, S.UNREADY, S.WARM, "readiness_holds", "A short absence costs no VM."),
    Transition(T.FAIL, S.UNREADY, S.FAILED, "grace_over", "It was away for too long to be trusted."),
    Transition(T.HAND_OVER, S.WARM, S.CLAIMED, "claim_assigned", "What the pool is for."),
    Transition(
        T.HAND_OVER, S.STANDBY, S.CLAIMED, "claim_waiting", "Nothing warm is left: it wakes for its claim."
    ),
    Transition(
        T.HAND_OVER, S.WAKING, S.CLAIMED, "claim_waiting", "The claim waits for this one to be awake."
    ),
    Transition(
        T.HAND_OVER, S.PROVISIONING, S.CLAIMED, "claim_waiting", "The claim waits for this one to boot."
    ),
    Transition(T.RECYCLE, S.CLAIMED, S.RECYCLING, "claim_ended", "It is reset before anybody else gets it."),
    Transition(T.RETAIN, S.CLAIMED, S.RETAINED, "claim_ended", "A person wants to look at it."),
    Transition(
        T.DISCARD, S.CLAIMED, S.DRAINING, "claim_ended", "Marked first, so that no late reset revives it."
    ),
    Transition(
        T.DESTROY, S.CLAIMED, S.TERMINATING, "claim_ended", "Policy Delete: what it knew reaches nobody else."
    ),
    Transition(
        T.RESET, S.RECYCLING, S.WARM, "reset_proved", "A new guest: nothing of the last claim is left."
    ),
    Transition(T.FAIL, S.RECYCLING, S.FAILED, "reset_failed", "A reset that is not proved is not believed."),
    *(
        Transition(T.DRAIN, state, S.DRAINING, "not_wanted", "Surplus, stale or too old, by compare-and-set.")
        for state in (S.WARM, S.UNREADY, S.STANDBY, S.PROVISIONING)
    ),
    Transition(
        T.DRAIN,
        S.FAILED,
        S.DRAINING,
        "given_up",
        "Every deletion of ours of an unclaimed VM goes through it.",
    ),
    Transition(
        T.DESTROY, S.DRAINING, S.TERMINATING, "marked_draining", "Draining is terminal, so its UID is enough."
    ),
    *(
        Transition(
            T.DELETED, state, S.TERMINATING, "deletion_observed", "A person may delete any VM at any time."
        )
        for state in State
        if state not in _ENDED
    ),
    Transition(T.VANISH, S.TERMINATING, S.GONE, "object_absent", "The API server dropped the object."),
)

MACHINE = Machine("instance", S.PROVISIONING, frozenset({S.GONE}), TRANSITIONS)
