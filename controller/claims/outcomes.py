"""What follows from how a hand-over came out: when the claim, the VM or the pool may be tried again.

It writes nothing but a claim's condition. A refusal never takes a claim's place in the line, unless the claim
itself is at fault.
"""

from typing import TYPE_CHECKING

import structlog

from controller.claims.handover import HandOver, Outcome
from controller.claims.records import PoolRecord
from controller.claims.router import Assignment
from controller.claims.tally import Served
from controller.machines.privacy import private_texts, redacted
from controller.metrics import CLAIM_WAIT, CLAIMS, HAND_OVERS_REFUSED
from crds.conditions import ClaimReason

if TYPE_CHECKING:
    from controller.claims.loop import Namespace

log = structlog.get_logger()

REFUSED_AGAIN = 1.0  # s: a VM that looks free and was refused is not tried again at once
DENIED_AGAIN = 5.0  # s: admission said no to a hand-over: the pool's other claims wait as long
# s, first and longest: 409, 429, or the API server could not be reached
NOT_APPLIED_AGAIN = (0.1, 2.0)
TELL_AFTER = 3  # setbacks in a row: less is a blip
METADATA_AGAIN = (10.0, 300.0)  # s, first and longest: a claim's metadata can't be put onto a VM


class Outcomes:
    """The hand-overs of one namespace, at their end."""

    def __init__(self, namespace: "Namespace") -> None:
        self._namespace = namespace

    def follow(self, chosen: Assignment, outcome: Outcome, why: str, ended: HandOver) -> None:
        """Count it, and see to it that the claim or the VM is looked at again when it makes sense."""
        now = self._namespace.now()
        if outcome is Outcome.BOUND:
            chosen.pool.denied, chosen.pool.setbacks = "", 0
            CLAIM_WAIT.labels(chosen.pool.name, "bound").observe(max(0.0, ended.terms.waited))
            CLAIMS.labels("warm" if chosen.entry.told_position == 0 else "waited").inc()
            chosen.pool.tally.served.append(_served(chosen, now))
            return
        HAND_OVERS_REFUSED.labels(outcome.value).inc()
        why = redacted(why, (*chosen.entry.claim.private_texts, *private_texts(chosen.pool.pool)))
        log.info(
            "hand-over refused",
            claim=chosen.entry.claim.name,
            vm=chosen.instance.name,
            outcome=outcome,
            why=why,
        )
        match outcome:
            case Outcome.VM_TAKEN:
                self._set_aside(chosen)
            case Outcome.METADATA_REFUSED:
                self._park(chosen, why, now)
            case Outcome.DENIED:
                chosen.pool.denied = why
                self._hold(chosen.pool, DENIED_AGAIN)
            case Outcome.NOT_APPLIED:
                first, longest = NOT_APPLIED_AGAIN
                if why and chosen.pool.setbacks >= TELL_AFTER:
                    chosen.pool.denied = why
                self._hold(chosen.pool, min(longest, first * 2 ** min(chosen.pool.setbacks, 10)))
            case _:
                pass  # held: `check` suspects the VM, and repair decides by its table

    def _hold(self, pool: PoolRecord, delay: float) -> None:
        """Hand nothing over from this pool for a while; its claims keep their places."""
        if not pool.held:  # those that were under way together are one setback
            pool.setbacks += 1
        pool.held += 1

        def go_on() -> None:
            pool.held -= 1
            self._namespace.changed(pool.name)

        self._namespace.later(delay, go_on)

    def _set_aside(self, chosen: Assignment) -> None:
        """The VM was refused: what the read showed decides; one that still looks free waits a little."""
        instance, inventory = chosen.instance, chosen.pool.inventory
        inventory.reserve(instance, "set-aside")

        def free() -> None:
            inventory.release(instance)
            self._namespace.changed(chosen.pool.name)

        self._namespace.later(REFUSED_AGAIN, free)

    def _park(self, chosen: Assignment, why: str, now: float) -> None:
        first, longest = METADATA_AGAIN
        delay = min(longest, first * 2 ** min(chosen.entry.setbacks, 10))
        chosen.pool.queue.park(chosen.entry, now + delay)
        conflict = why.startswith("the VM has")
        reason = ClaimReason.METADATA_CONFLICT if conflict else ClaimReason.METADATA_REFUSED
        self._namespace.desk.start(
            self._namespace.aftercare.tell(
                chosen.entry, reason, f"spec.metadata can't be put onto a VM: {why}"
            )
        )


def _served(chosen: Assignment, now: float) -> Served:
    """By when the VM was warm, and not by how long the writes took: that is the API server's time."""
    warm_at = chosen.instance.warm_at
    return Served(now, max(0.0, (now if warm_at is None else warm_at) - chosen.entry.arrived))
