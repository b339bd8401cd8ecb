"""The line of a pool: first come, first served, with refusals in between."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller.claims.objects import Claim
from controller.claims.queue import Queue, Waiting, estimated_ready, worth_telling
from controller.machines.readiness import epoch
from tests.support.builders import NOW, make_claim

NOBODY: dict[str, set[str]] = {}


def _queue(*claims: Claim) -> Queue:
    queue = Queue()
    for number, claim in enumerate(claims):
        queue.push(claim, NOW + number)
    return queue


def _line(*names: str) -> Queue:
    return _queue(*map(make_claim, names))


def _head(queue: Queue) -> Waiting:
    found = queue.head(NOBODY)
    assert found is not None
    return found


def _served(queue: Queue) -> list[str]:
    found = []
    while (entry := queue.head(NOBODY)) is not None:
        queue.assign(entry)
        found.append(entry.claim.name)
    return found


# ---- first come, first served


def test_who_comes_first_is_served_first() -> None:
    assert _served(_line("c", "a", "b")) == ["c", "a", "b"]


def test_a_refusal_in_between_costs_nobody_his_place() -> None:
    queue = _line("a", "b", "c")
    first, second = _head(queue), None
    queue.assign(first)
    second = _head(queue)
    queue.assign(second)
    queue.unassign(first)
    assert _head(queue) is first
    queue.unassign(second)
    assert _served(queue) == ["a", "b", "c"]


def test_a_claim_that_is_seen_again_keeps_its_place_and_is_brought_up_to_date() -> None:
    queue = _line("a", "b")
    again = make_claim("a", timeout="1m")
    entry = queue.push(again, NOW + 99)
    assert entry.claim is again
    assert entry.arrived == NOW
    assert _served(queue) == ["a", "b"]


def test_a_claim_that_carries_a_vm_is_left_to_repair() -> None:
    queue = _line("a", "b")
    found = queue.head({"a-uid": {"vm-uid"}})
    assert found is not None
    assert found.claim.name == "b"


def test_a_claim_that_left_is_not_served() -> None:
    queue = _line("a", "b")
    queue.remove("a-uid")
    assert queue.remove("a-uid") is None
    assert _served(queue) == ["b"]


def test_at_the_start_of_a_leadership_the_oldest_come_first_and_then_the_uids() -> None:
    queue = _queue(
        *(make_claim(name, age=age) for name, age in (("b", 5), ("young", 1), ("a", 5), ("old", 9)))
    )
    queue.sort(_created)
    assert _served(queue) == ["old", "a", "b", "young"]
    assert queue.line["old-uid"].arrived == NOW - 9


def _created(claim: Claim) -> float:
    return epoch(claim.metadata.creation_timestamp) or 0.0


# ---- how many wait


def test_those_with_a_vm_on_its_way_do_not_count_as_waiting() -> None:
    queue = _line("a", "b", "c")
    entry = _head(queue)
    queue.assign(entry)
    assert len(queue) == 2
    assert [each.claim.name for each in queue.waiting()] == ["b", "c"]
    queue.remove(entry.uid)
    assert len(queue) == 2
    queue.unassign(entry)
    assert len(queue) == 2


def test_an_assignment_that_ends_after_the_claim_left_and_came_again_changes_nothing() -> None:
    queue = _line("a")
    entry = _head(queue)
    queue.assign(entry)
    queue.remove("a-uid")
    queue.push(make_claim("a"), NOW)
    queue.unassign(entry)
    assert len(queue) == 1
    assert not _head(queue).assigned


# ---- orders


@pytest.mark.parametrize(("policy", "orders"), [("Order", 1), ("OrderAfter", 0), ("Wait", 0), ("Fail", 0)])
def test_on_its_arrival_an_order_is_placed_by_policy(policy: str, orders: int) -> None:
    assert len(_queue(make_claim(when_empty=policy)).orders) == orders


def test_an_order_is_placed_once_for_a_claim_that_is_seen_twice() -> None:
    queue = _line("a")
    queue.push(make_claim("a"), NOW)
    assert queue.orders == {"a-uid"}


def test_a_claim_with_a_vm_on_its_way_needs_no_order_and_a_refusal_places_it_again() -> None:
    queue = _line("a")
    entry = _head(queue)
    queue.assign(entry)
    assert queue.orders == set()
    queue.unassign(entry)
    assert queue.orders == {"a-uid"}


def test_an_order_after_is_placed_when_its_patience_is_over_and_once() -> None:
    queue = _queue(make_claim("a", when_empty="OrderAfter"))
    assert queue.order("a-uid")
    assert not queue.order("a-uid")
    assert queue.orders == {"a-uid"}


def test_an_order_after_is_not_placed_for_one_that_has_a_vm_on_its_way_or_is_gone() -> None:
    queue = _queue(make_claim("a", when_empty="OrderAfter"))
    queue.assign(_head(queue))
    assert not queue.order("a-uid")
    assert not queue.order("nobody-uid")
    assert queue.orders == set()


def test_a_refusal_does_not_cut_the_patience_of_an_order_after_short() -> None:
    queue = _queue(make_claim("a", when_empty="OrderAfter"))
    entry = _head(queue)
    queue.assign(entry)
    queue.unassign(entry)
    assert queue.orders == set()
    assert queue.order("a-uid")
    queue.assign(entry)
    queue.unassign(entry)
    assert queue.orders == {"a-uid"}


@pytest.mark.parametrize("policy", ["Wait", "Fail"])
def test_a_refusal_places_no_order_for_who_wants_none(policy: str) -> None:
    queue = _queue(make_claim("a", when_empty=policy))
    entry = _head(queue)
    queue.assign(entry)
    queue.unassign(entry)
    assert queue.orders == set()


def test_who_leaves_takes_the_order_along() -> None:
    queue = _queue(make_claim("a"), make_claim("b", when_empty="Fail"))
    assert queue.impatient == {"b-uid"}
    queue.remove("a-uid")
    queue.remove("b-uid")
    assert (queue.orders, queue.impatient) == (set(), set())


# ---- stepping aside


def test_a_claim_that_is_itself_at_fault_steps_aside_and_the_line_goes_on() -> None:
    queue = _line("a", "b")
    entry = _head(queue)
    queue.assign(entry)
    queue.park(entry, NOW + 10)
    assert _head(queue).claim.name == "b"
    assert queue.orders == {"b-uid"}
    assert len(queue) == 2
    assert queue.find("a-uid") is entry
    assert entry.setbacks == 1


def test_it_comes_back_at_the_end_with_its_order_when_its_time_has_come() -> None:
    queue = _line("a", "b")
    queue.park(_head(queue), NOW + 10)
    assert not queue.unpark(NOW + 9.9)
    assert queue.unpark(NOW + 10)
    assert not queue.unpark(NOW + 10)
    assert queue.orders == {"a-uid", "b-uid"}
    assert _served(queue) == ["b", "a"]


def test_one_that_wants_no_order_comes_back_without_one() -> None:
    queue = _queue(make_claim("a", when_empty="Wait"), make_claim("b", when_empty="OrderAfter"))
    for _ in range(2):
        queue.park(_head(queue), NOW)
    queue.unpark(NOW)
    assert queue.orders == set()


def test_a_claim_that_stepped_aside_may_leave() -> None:
    queue = _line("a")
    queue.park(_head(queue), NOW + 10)
    assert queue.remove("a-uid") is not None
    assert len(queue) == 0
    assert not queue.unpark(NOW + 10)


def test_a_claim_that_stepped_aside_and_is_seen_again_does_not_jump_back_in() -> None:
    queue = _line("a")
    queue.park(_head(queue), NOW + 10)
    queue.push(make_claim("a"), NOW)
    assert queue.head(NOBODY) is None
    assert len(queue) == 1


def test_one_that_left_while_its_hand_over_failed_does_not_step_aside() -> None:
    queue = _line("a")
    entry = _head(queue)
    queue.assign(entry)
    queue.remove("a-uid")
    queue.park(entry, NOW + 10)
    assert len(queue) == 0
    assert not queue.parked


# ---- against a naive model

NAMES = st.sampled_from("abcdef")
POLICIES = st.sampled_from(["Order", "OrderAfter", "Wait", "Fail"])


class Line(RuleBasedStateMachine):
    """A list of names, and what is known of each."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue()
        self.line: list[str] = []
        self.aside: dict[str, float] = {}
        self.assigned: dict[str, Waiting] = {}
        self.wants_order: dict[str, bool] = {}
        self.policy: dict[str, str] = {}
        self.now = NOW

    @rule(name=NAMES, policy=POLICIES)
    def push(self, name: str, policy: str) -> None:
        policy = self.policy.setdefault(name, policy)
        self.queue.push(make_claim(name, when_empty=policy), self.now)
        if name not in self.line and name not in self.aside:
            self.line.append(name)
            self.wants_order[name] = policy == "Order"

    @rule()
    def assign(self) -> None:
        free = [name for name in self.line if name not in self.assigned]
        entry = self.queue.head(NOBODY)
        assert (entry.claim.name if entry else None) == (free[0] if free else None)
        if entry is not None:
            self.queue.assign(entry)
            self.assigned[free[0]] = entry

    @rule(name=NAMES)
    def unassign(self, name: str) -> None:
        if (entry := self.assigned.pop(name, None)) is not None:
            self.queue.unassign(entry)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.queue.remove(f"{name}-uid")
        self.policy.pop(name, None)
        self.aside.pop(name, None)
        self.assigned.pop(name, None)
        if name in self.line:
            self.line.remove(name)

    @rule(name=NAMES, wait=st.floats(0, 20))
    def park(self, name: str, wait: float) -> None:
        if (entry := self.assigned.pop(name, None)) is not None:
            self.queue.park(entry, self.now + wait)
            self.line.remove(name)
            self.aside[name] = self.now + wait

    @rule(name=NAMES)
    def patience_ends(self, name: str) -> None:
        if self.policy.get(name) == "OrderAfter":
            self.queue.order(f"{name}-uid")
            self.wants_order[name] |= name not in self.assigned

    @rule(wait=st.floats(0, 20))
    def time_passes(self, wait: float) -> None:
        self.now += wait
        self.queue.unpark(self.now)
        for name in [name for name, until in self.aside.items() if until <= self.now]:
            del self.aside[name]
            self.line.append(name)

    @invariant()
    def the_line_is_the_models(self) -> None:
        free = [name for name in self.line if name not in self.assigned]
        assert [entry.claim.name for entry in self.queue.waiting()] == free
        assert len(self.queue) == len(free) + len(self.aside)

    @invariant()
    def orders_are_those_of_who_waits_and_wants_one(self) -> None:
        free = {f"{name}-uid" for name in self.line if name not in self.assigned and self.wants_order[name]}
        assert self.queue.orders == free

    @invariant()
    def the_impatient_are_those_who_wait(self) -> None:
        there = {*self.line, *self.aside}
        assert self.queue.impatient == {f"{name}-uid" for name in there if self.policy[name] == "Fail"}


TestLine = Line.TestCase
TestLine.settings = settings(max_examples=80, stateful_step_count=40)


# ---- what is told


def test_an_estimate_needs_orders_and_a_boot() -> None:
    assert estimated_ready(1, [], 30.0, NOW) is None
    assert estimated_ready(1, [NOW], None, NOW) is None


@pytest.mark.parametrize(
    ("position", "ready"),
    [
        pytest.param(1, NOW + 10, id="the first is due when the oldest order is"),
        pytest.param(2, NOW + 25, id="the second with the second"),
        pytest.param(3, NOW + 10 + 30, id="the third with the next wave"),
        pytest.param(4, NOW + 25 + 30, id="the fourth with its second"),
        pytest.param(5, NOW + 10 + 60, id="and so on"),
    ],
)
def test_an_estimate_is_that_of_the_order_at_its_place(position: int, ready: float) -> None:
    assert estimated_ready(position, [NOW - 20, NOW - 5], 30.0, NOW) == ready


def test_an_order_that_is_late_is_expected_now_and_never_in_the_past() -> None:
    assert estimated_ready(1, [NOW - 100], 30.0, NOW) == NOW


@given(
    position=st.integers(1, 500),
    orders=st.lists(st.floats(NOW - 1000, NOW), min_size=1, max_size=20).map(sorted),
    boot=st.floats(0.1, 600),
)
def test_nobody_is_promised_more_than_those_before(position: int, orders: list[float], boot: float) -> None:
    here, behind = (estimated_ready(place, orders, boot, NOW) for place in (position, position + 1))
    assert here is not None
    assert behind is not None
    assert NOW <= here <= behind + 1e-6


def _entry(position: int = 0, told_at: float = NOW) -> Waiting:
    entry = Waiting(make_claim(), NOW)
    if position:
        entry.tell(position, told_at)
    return entry


def test_a_place_is_told_at_first() -> None:
    assert worth_telling(_entry(), 17, NOW)


@pytest.mark.parametrize(
    ("told", "now_at", "later", "worth"),
    [
        pytest.param(16, 8, 10.0, True, id="a halving"),
        pytest.param(16, 9, 10.0, False, id="less than a halving"),
        pytest.param(16, 8, 9.9, False, id="a halving too soon"),
        pytest.param(3, 1, 10.0, True, id="the first place"),
        pytest.param(2, 1, 10.0, True, id="from the second to the first"),
        pytest.param(1, 1, 1e6, False, id="the same place for ever"),
        pytest.param(4, 4, 1e6, False, id="no move"),
        pytest.param(4, 7, 1e6, False, id="a place further back"),
        pytest.param(1, 2, 1e6, False, id="off the first place again"),
    ],
)
def test_a_place_is_told_again_at(told: int, now_at: int, later: float, worth: bool) -> None:  # noqa: FBT001 - a table's column
    assert worth_telling(_entry(told), now_at, NOW + later) is worth


@given(length=st.integers(1, 100_000), data=st.data())
def test_a_claim_is_told_at_most_eight_times_however_long_the_line(length: int, data: st.DataObject) -> None:
    entry, position, now, told = _entry(), length, NOW, 0
    hops = data.draw(st.sampled_from([1, 2, 3, 7, 100, 10_000]))
    places = [*range(length, 0, -hops), 1] if hops > 1 else _interesting(length)
    for position in places:
        now += 10.0
        if worth_telling(entry, position, now):
            entry.tell(position, now)
            told += 1
    assert told <= 8
    assert entry.told_position == 1


def _interesting(length: int) -> list[int]:
    """Every place from the far end, without those in a long line between which nothing can be told."""
    return list(range(length, 0, -1)) if length < 2000 else sorted({*range(1, 2000), length}, reverse=True)


def test_what_is_told_in_a_long_line_is_spread_over_all_of_the_way() -> None:
    entry, told = _entry(), []
    for number, position in enumerate(range(10_000, 0, -1)):
        if worth_telling(entry, position, NOW + 10.0 * number):
            entry.tell(position, NOW + 10.0 * number)
            told.append(position)
    assert told[0] == 10_000
    assert told[-1] == 1
    assert len([place for place in told if place < 100]) >= 3
