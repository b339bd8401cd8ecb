"""What is noted of each claim for the pool's history: once when it comes, once when its waiting ends."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest

from controller.claims.aftercare import Aftercare
from controller.claims.handover import HandOver, Outcome
from controller.claims.outcomes import Outcomes
from controller.claims.plan import GiveUp
from controller.claims.protocol import Done
from controller.claims.records import PoolRecord
from controller.claims.router import Assignment, Hooks, Router
from controller.claims.status import Terms
from controller.claims.tally import MOST, Served, Tally, arrivals
from tests.support.builders import NOW, POOL_UID, make_bound_claim, make_claim, make_pool, make_vm, make_vmi


class Space:
    """A namespace with one pool, whose clock the test sets."""

    def __init__(self) -> None:
        self.time = NOW
        ignored = Hooks(lambda _: None, lambda _: None, lambda _: None)
        self.router = Router("ns", lambda: self.time, ignored, lambda _: None)
        self.record: PoolRecord = self.router.pool_seen(make_pool())
        self.in_hand: set[str] = set()
        self.executor = self
        self.answer = "done"

    def now(self) -> float:
        return self.time

    def put_down(self, _uid: str) -> None:
        pass

    def look_again(self, _uid: str, _at: float) -> None:
        pass

    async def drive(self, work: object) -> tuple[object, Done]:
        return work, Done(self.answer)

    def warms(self, name: str) -> None:
        self.router.vmi_seen(make_vmi(name, since=self.time - NOW))
        self.router.vm_seen(make_vm(name))

    def serves(self, after: float = 0.0) -> None:
        """Hand over what there is; the writes take so long."""
        for chosen in list(self.router.assign(self.record, 10)):
            self.time += after
            Outcomes(cast("Any", self)).follow(chosen, Outcome.BOUND, "", ended(chosen))

    @property
    def tally(self) -> Tally:
        return self.record.tally


def ended(chosen: Assignment) -> HandOver:
    terms = Terms("pool", POOL_UID, NOW, 0.0)
    return HandOver(chosen.entry.claim, chosen.instance.vm, chosen.instance.vmi, terms)


@pytest.fixture
def space() -> Space:
    return Space()


def test_a_claim_is_counted_once_by_when_it_was_made(space: Space) -> None:
    claim = make_claim(age=3.0)
    for _ in range(3):
        space.router.claim_seen(claim)
    space.router.claim_seen(make_bound_claim(age=3.0))
    assert list(space.tally.arrived) == [NOW - 3.0]


def test_a_claim_on_another_pool_or_on_none_is_not_counted_here(space: Space) -> None:
    space.router.claim_seen(make_claim(pool="other"))
    assert not space.tally.arrived


def test_the_claims_that_there_are_can_be_asked_for_by_pool() -> None:
    claims = [make_claim("b", age=2.0), make_claim("a", age=5.0), make_claim("c", pool="other")]
    assert arrivals(claims, "pool", NOW) == [NOW - 5.0, NOW - 2.0]


def test_a_claim_that_found_a_warm_vm_was_served_at_once_however_long_the_writes_took(space: Space) -> None:
    space.warms("a")
    space.time += 60.0
    space.router.claim_seen(make_claim())
    space.serves(after=5.0)
    assert list(space.tally.served) == [Served(NOW + 65.0, 0.0)]


def test_a_claim_that_waited_for_a_boot_was_late_by_when_its_vm_was_warm(space: Space) -> None:
    space.router.claim_seen(make_claim())
    space.time += 12.0
    space.warms("a")
    space.time += 1.0
    space.serves()
    assert list(space.tally.served) == [Served(NOW + 13.0, 12.0)]


async def test_a_claim_that_got_none_was_late_for_ever(space: Space) -> None:
    claim = make_claim(when_empty="Fail")
    await Aftercare(cast("Any", space)).carry_out(claim, GiveUp({}))
    assert list(space.tally.served) == [Served(NOW, math.inf)]


async def test_a_claim_whose_end_was_not_written_yet_is_not_counted_yet(space: Space) -> None:
    space.answer = "refused"
    await Aftercare(cast("Any", space)).carry_out(make_claim(), GiveUp({}))
    assert not space.tally.served


def test_what_is_taken_is_taken_once() -> None:
    tally = Tally()
    tally.arrived.append(1.0)
    tally.served.append(Served(2.0))
    assert tally.take() == ([1.0], [Served(2.0)])
    assert tally.take() == ([], [])


def test_nobody_has_to_come_for_it() -> None:
    """A standby sees every claim and takes nothing."""
    tally = Tally()
    for number in range(2 * MOST):
        tally.arrived.append(float(number))
    assert len(tally.arrived) == MOST
