"""What follows from a hand-over's outcome: who waits how long, and who keeps its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from controller.claims.handover import HandOver, Outcome
from controller.claims.outcomes import Outcomes
from controller.claims.router import Assignment, Hooks, Router
from controller.claims.status import Terms
from tests.support.builders import NOW, POOL_UID, make_claim, make_pool, make_vm, make_vmi


@dataclass
class Space:
    """A namespace whose timers ring when the test says so."""

    router: Router = field(init=False)
    timers: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    outcomes: Outcomes = field(init=False)

    def __post_init__(self) -> None:
        self.router = Router(
            "ns", self.now, Hooks(self.changed, lambda _: None, lambda _: None), lambda _: None
        )
        self.outcomes = Outcomes(cast("Any", self))
        self.desk = self.aftercare = self
        self.record = self.router.pool_seen(make_pool())

    def now(self) -> float:
        return NOW

    def changed(self, pool: str) -> None:
        pass

    def later(self, delay: float, then: Callable[[], object]) -> None:
        self.timers.append((delay, then))

    def start(self, work: object) -> None:
        pass

    def tell(self, _entry: object, reason: str, message: str) -> None:
        self.told.append(f"{reason}: {message}")

    def assignments(self, count: int) -> list[Assignment]:
        for each in range(count):
            name = f"vm-{each}"
            self.router.vmi_seen(make_vmi(name))
            self.router.vm_seen(make_vm(name))
            self.router.claim_seen(make_claim(f"claim-{each}"))
        return list(self.router.assign(self.record, count))

    def ends(self, chosen: Assignment, outcome: Outcome, why: str = "") -> None:
        terms = Terms("pool", POOL_UID, NOW, 0.0)
        work = HandOver(chosen.entry.claim, chosen.instance.vm, chosen.instance.vmi, terms)
        self.outcomes.follow(chosen, outcome, why, work)
        if chosen.instance.busy == "hand-over":
            self.record.inventory.release(chosen.instance)
        self.record.queue.unassign(chosen.entry)

    def ring(self) -> float:
        """Let all timers ring; the longest delay among them."""
        timers, self.timers = self.timers, []
        for _, then in timers:
            then()
        return max(delay for delay, _ in timers)


@pytest.fixture
def space() -> Space:
    return Space()


def test_while_writes_are_not_applied_the_pool_waits_longer_each_time_up_to_two_seconds(space: Space) -> None:
    [chosen] = space.assignments(1)
    delays = []
    for _ in range(7):
        space.ends(chosen, Outcome.NOT_APPLIED)
        assert list(space.router.assign(space.record, 1)) == []
        delays.append(space.ring())
        [chosen] = space.router.assign(space.record, 1)
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_hand_overs_that_were_refused_together_are_one_setback(space: Space) -> None:
    for chosen in space.assignments(5):
        space.ends(chosen, Outcome.NOT_APPLIED)
    assert space.record.setbacks == 1
    space.ring()
    assert space.record.held == 0


def test_a_bind_ends_the_row_of_setbacks(space: Space) -> None:
    first, second = space.assignments(2)
    space.ends(first, Outcome.NOT_APPLIED)
    space.ring()
    space.ends(second, Outcome.BOUND)
    assert space.record.setbacks == 0


def test_after_a_setback_one_alone_is_tried_and_the_others_when_it_went_well(space: Space) -> None:
    for chosen in space.assignments(4):
        space.ends(chosen, Outcome.NOT_APPLIED)
    space.ring()
    [probe] = space.router.assign(space.record, 4)
    assert list(space.router.assign(space.record, 4)) == [], "while it is under way nobody else is"
    space.ends(probe, Outcome.BOUND)
    space.router.claim_gone(probe.entry.claim)
    assert len(list(space.router.assign(space.record, 4))) == 3


def test_a_webhook_that_does_not_answer_is_told_when_it_is_no_blip(space: Space) -> None:
    [chosen] = space.assignments(1)
    told = []
    for _ in range(4):
        space.ends(chosen, Outcome.NOT_APPLIED, "failed calling webhook")
        told.append(space.record.denied)
        space.ring()
        [chosen] = space.router.assign(space.record, 1)
    assert told == ["", "", "", "failed calling webhook"]
    space.ends(chosen, Outcome.BOUND)
    assert space.record.denied == ""


def test_the_end_of_a_short_hold_does_not_end_a_long_one(space: Space) -> None:
    first, second = space.assignments(2)
    space.ends(first, Outcome.DENIED, "not on Fridays")
    space.ends(second, Outcome.NOT_APPLIED)
    min(space.timers, key=lambda timer: timer[0])[1]()
    assert list(space.router.assign(space.record, 2)) == []
    assert space.record.denied == "not on Fridays"


def test_a_refused_vm_is_set_aside_and_its_claim_gets_the_next_one(space: Space) -> None:
    first, second = space.assignments(2)
    space.ends(second, Outcome.HELD)
    space.ends(first, Outcome.VM_TAKEN)
    [again] = space.router.assign(space.record, 2)
    assert (again.entry, again.instance) == (first.entry, second.instance)
    assert space.ring() == 1.0
    [late] = space.router.assign(space.record, 2)
    assert (late.entry, late.instance) == (second.entry, first.instance)


def test_a_claim_whose_metadata_is_at_fault_steps_aside_and_is_told(space: Space) -> None:
    first, second = space.assignments(2)
    space.ends(first, Outcome.METADATA_REFUSED, "the VM has team already")
    space.ends(second, Outcome.HELD)
    assert [each.entry for each in space.router.assign(space.record, 2)] == [second.entry]
    assert space.told == ["MetadataConflict: spec.metadata can't be put onto a VM: the VM has team already"]
