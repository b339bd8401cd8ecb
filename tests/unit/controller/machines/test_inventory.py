"""A pool's VMs in order: who is next, who is where, and nothing twice."""

from __future__ import annotations

import pytest

from controller.machines.inventory import Instance, Inventory, revision_of
from controller.machines.objects import Node
from controller.machines.readiness import ReadinessRule
from crds import names
from crds.pool import ClaimOrder, ReadinessWhen
from statemachines.instance import State
from tests.support.builders import NOW, make_node, make_vm, make_vmi

RULE = ReadinessRule(deadline=900.0, unready_grace=120.0)


def _inventory(order: ClaimOrder = ClaimOrder.OLDEST, rule: ReadinessRule = RULE) -> Inventory:
    inventory = Inventory("pool-uid")
    inventory.configure(rule, order, NOW)
    return inventory


def _warm(inventory: Inventory, name: str, age: float = 600.0, now: float = NOW) -> Instance:
    return inventory.observe(make_vm(name, age=age), make_vmi(name), None, now)


def _unready(inventory: Inventory, name: str, now: float = NOW) -> Instance:
    return inventory.observe(make_vm(name), make_vmi(name, ready=False), None, now)


def _taken(inventory: Inventory) -> list[str]:
    found = []
    while (instance := inventory.take("test")) is not None:
        found.append(instance.name)
    return found


# ---- who is next


def test_the_oldest_vm_goes_first() -> None:
    inventory = _inventory()
    for name, age in (("b", 20), ("a", 10), ("c", 30)):
        _warm(inventory, name, age)
    assert _taken(inventory) == ["c", "b", "a"]


def test_the_newest_vm_goes_first_where_the_pool_says_so() -> None:
    inventory = _inventory(ClaimOrder.NEWEST)
    for name, age in (("b", 20), ("a", 10), ("c", 30)):
        _warm(inventory, name, age)
    assert _taken(inventory) == ["a", "b", "c"]


def test_age_is_that_of_the_vm_and_not_of_its_warmth() -> None:
    inventory = _inventory()
    _warm(inventory, "young", 10)
    _warm(inventory, "old", 500, NOW + 60)
    assert _taken(inventory) == ["old", "young"]


def test_vms_of_one_second_go_by_name() -> None:
    inventory = _inventory()
    for name in ("c", "a", "b"):
        _warm(inventory, name)
    assert _taken(inventory) == ["a", "b", "c"]


def test_a_changed_order_holds_for_those_that_are_warm_already() -> None:
    inventory = _inventory()
    for name, age in (("b", 20), ("a", 10), ("c", 30)):
        _warm(inventory, name, age)
    inventory.configure(RULE, ClaimOrder.NEWEST, NOW)
    assert _taken(inventory) == ["a", "b", "c"]


def test_a_changed_order_offers_nothing_that_is_busy() -> None:
    inventory = _inventory()
    _warm(inventory, "a", 10)
    _warm(inventory, "b", 20)
    assert inventory.take("hand-over") is inventory.instances["b-uid"]
    inventory.configure(RULE, ClaimOrder.NEWEST, NOW)
    assert _taken(inventory) == ["a"]


# ---- nothing twice


def test_a_vm_that_was_taken_is_busy_and_is_not_taken_again() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    taken = inventory.take("hand-over")
    assert taken is not None
    assert taken.busy == "hand-over"
    assert inventory.take("hand-over") is None


def test_no_event_about_a_busy_vm_offers_it_again() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    inventory.take("hand-over")
    _warm(inventory, "a")
    _unready(inventory, "a")
    _warm(inventory, "a")
    assert inventory.take("hand-over") is None


def test_a_vm_that_comes_and_goes_is_offered_once() -> None:
    inventory = _inventory()
    for _ in range(3):
        _warm(inventory, "a")
        _unready(inventory, "a")
    _warm(inventory, "a")
    assert _taken(inventory) == ["a"]


def test_a_released_vm_that_is_warm_still_is_offered_again_in_its_place() -> None:
    inventory = _inventory()
    _warm(inventory, "old", 20)
    _warm(inventory, "young", 10)
    taken = inventory.take("hand-over")
    assert taken is not None
    inventory.release(taken)
    assert _taken(inventory) == ["old", "young"]


def test_a_released_vm_that_is_not_warm_any_more_is_not_offered() -> None:
    inventory = _inventory()
    instance = _warm(inventory, "a")
    inventory.reserve(instance, "hand-over")
    inventory.observe(make_vm("a", state=names.Mark.CLAIMED), make_vmi("a"), None, NOW)
    inventory.release(instance)
    assert inventory.take("hand-over") is None


def test_a_released_vm_that_is_gone_is_not_offered() -> None:
    inventory = _inventory()
    instance = _warm(inventory, "a")
    inventory.reserve(instance, "hand-over")
    inventory.forget("a-uid")
    inventory.release(instance)
    assert inventory.take("hand-over") is None
    assert inventory.total == 0


def test_an_unready_vm_is_not_offered() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    _unready(inventory, "a")
    assert inventory.take("hand-over") is None


def test_a_forgotten_vm_is_not_offered() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    assert inventory.forget("a-uid") is not None
    assert inventory.take("hand-over") is None
    assert inventory.forget("a-uid") is None


def test_idle_leaves_out_what_is_busy() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    _warm(inventory, "b")
    inventory.take("hand-over")
    assert (inventory.count(State.WARM), inventory.idle(State.WARM)) == (2, 1)


# ---- what time alone changes


def test_min_ready_seconds_pass_without_an_event() -> None:
    inventory = _inventory(rule=ReadinessRule(min_ready_seconds=30.0))
    instance = inventory.observe(make_vm("a"), make_vmi("a", since=-10), None, NOW)
    assert instance.state is State.PROVISIONING
    assert inventory.next_due() == NOW + 20
    assert inventory.tick(NOW + 19.9) == []
    assert inventory.tick(NOW + 20) == [instance]
    assert inventory.take("hand-over") is instance


def test_a_grace_and_a_deadline_pass_without_an_event() -> None:
    inventory = _inventory()
    booting = inventory.observe(make_vm("boots", age=0), None, None, NOW)
    _warm(inventory, "lost")
    lost = _unready(inventory, "lost")
    assert inventory.next_due() == NOW + 120
    assert inventory.tick(NOW + 120) == [lost]
    assert lost.state is State.FAILED
    assert inventory.next_due() == NOW + 900
    assert inventory.tick(NOW + 900) == [booting]
    assert inventory.count(State.FAILED) == 2
    assert inventory.next_due() is None


def test_a_tick_for_a_vm_that_changed_meanwhile_changes_nothing() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    _unready(inventory, "a")
    _warm(inventory, "a", now=NOW + 60)
    assert inventory.tick(NOW + 200) == []
    assert inventory.count(State.WARM) == 1


def test_a_tick_for_a_vm_that_is_gone_changes_nothing() -> None:
    inventory = _inventory()
    inventory.observe(make_vm("a", age=0), None, None, NOW)
    inventory.forget("a-uid")
    assert inventory.tick(NOW + 5000) == []


def test_a_grace_that_was_interrupted_begins_anew() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    _unready(inventory, "a", NOW)
    _warm(inventory, "a", now=NOW + 100)
    _unready(inventory, "a", NOW + 110)
    assert inventory.tick(NOW + 125) == []
    assert [each.name for each in inventory.tick(NOW + 230)] == ["a"]


def test_a_changed_rule_is_judged_over_all_vms() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    inventory.configure(ReadinessRule(conditions=("Extra",)), ClaimOrder.OLDEST, NOW)
    assert inventory.count(State.UNREADY) == 1
    inventory.configure(RULE, ClaimOrder.OLDEST, NOW)
    assert _taken(inventory) == ["a"]


# ---- what was decided stands


@pytest.mark.parametrize("label", [names.Mark.POOLED, None, "anything"])
def test_a_draining_vm_never_comes_back_when_a_person_sets_its_label(label: str | None) -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    inventory.observe(make_vm("a", state=names.Mark.DRAINING), make_vmi("a"), None, NOW)
    instance = inventory.observe(make_vm("a", state=label), make_vmi("a"), None, NOW)
    assert instance.state is State.DRAINING
    assert inventory.take("hand-over") is None


def test_a_failed_vm_that_recovers_is_not_used_again() -> None:
    inventory = _inventory()
    inventory.observe(make_vm("a", printable="CrashLoopBackOff"), None, None, NOW)
    assert _warm(inventory, "a").state is State.FAILED
    assert inventory.take("hand-over") is None


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        (names.Mark.CLAIMED, State.CLAIMED),
        (names.Mark.RETAINED, State.RETAINED),
        (names.Mark.DRAINING, State.DRAINING),
    ],
)
def test_a_vm_that_we_took_for_failed_is_what_has_been_decided_about_it(
    mark: names.Mark, state: State
) -> None:
    """A standby whose watch had broken saw a deadline pass, and then what the leader had made of the VM."""
    inventory = _inventory()
    inventory.observe(make_vm("a", age=1000), make_vmi("a", ready=False), None, NOW)
    assert inventory.count(State.FAILED) == 1
    inventory.observe(make_vm("a", age=1000, state=mark), make_vmi("a", ready=False), None, NOW)
    assert {each: inventory.count(each) for each in State if inventory.count(each)} == {state: 1}


def test_a_claimed_vm_whose_label_alone_is_set_back_stays_claimed() -> None:
    inventory = _inventory()
    inventory.observe(make_vm("a", state=names.Mark.CLAIMED), make_vmi("a"), None, NOW)
    back = make_vm("a", state=names.Mark.POOLED, claim_uid="claim-uid")
    assert inventory.observe(back, make_vmi("a"), None, NOW).state is State.CLAIMED


def test_a_terminating_vm_is_gone_only_when_it_is_forgotten() -> None:
    inventory = _inventory()
    _warm(inventory, "a")
    inventory.observe(make_vm("a", deleting=True), make_vmi("a"), None, NOW)
    assert (inventory.count(State.TERMINATING), inventory.total) == (1, 1)
    inventory.forget("a-uid")
    assert (inventory.count(State.TERMINATING), inventory.total) == (0, 0)


# ---- boots, nodes, the rest


def test_a_boot_is_told_once_with_its_length() -> None:
    inventory = _inventory()
    inventory.observe(make_vm("a", age=90), None, None, NOW - 80)
    instance = inventory.observe(make_vm("a", age=90), make_vmi("a", since=-60), None, NOW)
    assert inventory.drain_boots() == [(instance, 30.0)]
    _unready(inventory, "a")
    _warm(inventory, "a", 90)
    assert inventory.drain_boots() == []


def test_a_clock_that_was_behind_makes_no_negative_boot() -> None:
    inventory = _inventory()
    instance = inventory.observe(make_vm("a", age=30), make_vmi("a", since=-60), None, NOW)
    assert inventory.drain_boots() == [(instance, 0.0)]


def test_what_is_in_flight_comes_in_the_order_of_its_creation() -> None:
    inventory = _inventory()
    for name, age in (("b", 10), ("a", 10), ("c", 30)):
        inventory.observe(make_vm(name, age=age), None, None, NOW)
    _warm(inventory, "warm")
    assert [each.name for each in inventory.in_flight()] == ["c", "a", "b"]


@pytest.mark.parametrize("node", [make_node(cordoned=True), make_node(ready="False")])
def test_a_vm_on_an_unfit_node_is_not_offered(node: Node) -> None:
    inventory = _inventory()
    inventory.observe(make_vm("a"), make_vmi("a"), make_node(), NOW)
    inventory.observe(make_vm("a"), make_vmi("a"), node, NOW)
    assert inventory.take("hand-over") is None


def test_before_the_pool_has_said_when_a_vm_is_warm_none_is() -> None:
    inventory = Inventory("pool-uid")
    _warm(inventory, "a")
    assert inventory.count(State.PROVISIONING) == 1
    inventory.configure(ReadinessRule(), ClaimOrder.OLDEST, NOW)
    assert inventory.count(State.WARM) == 1


def test_a_vm_that_was_warm_before_we_came_tells_no_boot_time_unless_its_guest_does() -> None:
    inventory = Inventory("pool-uid")
    inventory.configure(ReadinessRule(when=ReadinessWhen.RUNNING), ClaimOrder.OLDEST, NOW)
    inventory.observe(make_vm("a", age=3600), make_vmi("a"), None, NOW)
    assert inventory.drain_boots() == []


def test_a_claimed_vm_that_a_person_makes_look_unclaimed_is_never_offered() -> None:
    inventory = Inventory("pool-uid")
    inventory.configure(ReadinessRule(), ClaimOrder.OLDEST, NOW)
    inventory.observe(make_vm("a", state="Claimed", claim_uid="claim-uid"), make_vmi("a"), None, NOW)
    inventory.observe(make_vm("a"), make_vmi("a"), None, NOW)
    assert inventory.take("hand-over") is None


def test_a_vms_revision_is_its_label() -> None:
    inventory = _inventory()
    assert revision_of(_warm(inventory, "a")) == "0123456789"
    bare = inventory.observe(make_vm("b", labels={names.LABEL_REVISION: None}), None, None, NOW)
    assert revision_of(bare) == ""


# ---- waiting for a node


def _seen(inventory: Inventory, printable: str, now: float) -> State:
    return inventory.observe(make_vm(age=600, printable=printable), None, None, now).state


def test_the_deadline_runs_from_when_a_node_had_room() -> None:
    inventory = _inventory()
    late = NOW + 10 * RULE.deadline
    assert _seen(inventory, "ErrorUnschedulable", NOW) is State.PROVISIONING
    assert _seen(inventory, "ErrorUnschedulable", late) is State.PROVISIONING
    assert _seen(inventory, "Starting", late + 5) is State.PROVISIONING
    assert inventory.next_due() == late + 5 + RULE.deadline
    inventory.tick(late + 4 + RULE.deadline)
    assert inventory.count(State.PROVISIONING) == 1
    inventory.tick(late + 5 + RULE.deadline)
    assert inventory.count(State.FAILED) == 1


def test_a_vm_that_loses_its_place_again_waits_again() -> None:
    inventory = _inventory()
    late = NOW + 10 * RULE.deadline
    for printable, now in (("ErrorUnschedulable", NOW), ("Starting", NOW + 5), ("ErrorUnschedulable", late)):
        assert _seen(inventory, printable, now) is State.PROVISIONING
    assert _seen(inventory, "Starting", late + 5) is State.PROVISIONING


# ---- memory


def test_events_about_a_vm_that_boots_leave_one_time_to_look_again() -> None:
    inventory = _inventory()
    for _ in range(20):
        inventory.observe(make_vm("slow", age=1), None, None, NOW)
    assert len(inventory._due) == 1


@pytest.mark.parametrize("order", ClaimOrder)
def test_vms_that_have_come_and_gone_leave_nothing(order: ClaimOrder) -> None:
    inventory = _inventory(order)
    for number in range(500):
        name = f"vm-{number}"
        inventory.observe(make_vm(name, age=1), None, None, NOW)
        vm = _warm(inventory, name, age=1)
        inventory.reserve(vm, "drain")
        inventory.release(vm)
        inventory.forget(vm.uid)
    assert len(inventory._due) < 100
    assert len(inventory._free) < 100
    assert (inventory._due_at, inventory._busy, inventory.instances) == ({}, {}, {})


def test_sweeping_forgets_neither_who_is_warm_nor_when_to_look() -> None:
    inventory = _inventory()
    _warm(inventory, "stays", age=700)
    late = inventory.observe(make_vm("late", age=1), None, None, NOW)
    for number in range(500):
        inventory.observe(make_vm(f"vm-{number}", age=1), None, None, NOW)
        inventory.forget(_warm(inventory, f"vm-{number}", age=1).uid)
    assert _taken(inventory) == ["stays"]
    assert inventory.tick(NOW + RULE.deadline) == [late]


def test_a_step_that_ends_on_a_vm_that_was_away_meanwhile_does_not_end_a_later_one() -> None:
    """Its labels were stripped and put back: it left the watch and came again as itself."""
    inventory = _inventory()
    before = inventory.observe(make_vm(), make_vmi(), None, NOW)
    assert inventory.take("hand-over") is before
    inventory.forget(before.uid)
    again = inventory.observe(make_vm(), make_vmi(), None, NOW)
    assert inventory.take("hand-over") is again
    inventory.release(before)
    assert (inventory.idle(State.WARM), again.busy) == (0, "hand-over")
