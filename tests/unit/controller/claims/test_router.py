"""Who gets what in one namespace, and whom the router tells of what it sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller.claims.objects import Claim
from controller.claims.records import PoolRecord
from controller.claims.router import Assignment, Hooks, Router
from controller.machines.inventory import Instance
from controller.machines.objects import Node, VirtualMachine
from crds import names
from crds.pool import VirtualMachinePool
from statemachines.instance import State
from tests.support.builders import (
    NOW,
    claim_owner,
    make_bound_claim,
    make_bound_vm,
    make_claim,
    make_node,
    make_pool,
    make_vm,
    make_vmi,
)

CLAIMED = names.Mark.CLAIMED


@dataclass
class Desk:
    """A router, its clock, and what it told."""

    now: float = NOW
    changed: list[str] = field(default_factory=list)
    reviewed: list[str] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    router: Router = field(init=False)

    def __post_init__(self) -> None:
        hooks = Hooks(self.changed.append, self.reviewed.append, self._suspect)
        self.router = Router("ns", lambda: self.now, hooks, self.nodes.get)

    def _suspect(self, instance: Instance) -> None:
        self.suspects.append(instance.name)

    def forget(self) -> None:
        self.changed.clear()
        self.reviewed.clear()
        self.suspects.clear()

    def pool(self, name: str = "pool", **fields: Any) -> PoolRecord:
        return self.router.pool_seen(make_pool(name, **fields))

    def warm(self, *vms: str, **fields: Any) -> None:
        for name in vms:
            self.router.vmi_seen(make_vmi(name))
            self.router.vm_seen(make_vm(name, **fields))

    def claims(self, *claims: str, **fields: Any) -> None:
        for name in claims:
            self.router.claim_seen(make_claim(name, **fields))

    def pairs(self, room: int = 100) -> list[tuple[str, str]]:
        record = self.router.pools["pool"]
        return [_pair(each) for each in self.router.assign(record, room)]


def _pair(assignment: Assignment) -> tuple[str, str]:
    return assignment.entry.claim.name, assignment.instance.name


@pytest.fixture
def desk() -> Desk:
    return Desk()


# ---- who gets what


def test_the_head_of_the_line_gets_the_best_vm(desk: Desk) -> None:
    desk.pool()
    desk.warm("young", age=10)
    desk.warm("old", age=20)
    desk.claims("first", "second", "third")
    assert desk.pairs() == [("first", "old"), ("second", "young")]
    assert desk.pairs() == []


def test_no_more_are_paired_than_there_is_room_for(desk: Desk) -> None:
    desk.pool()
    desk.warm("a", "b", "c")
    desk.claims("one", "two", "three")
    assert desk.pairs(room=2) == [("one", "a"), ("two", "b")]
    assert desk.pairs(room=0) == []
    assert desk.pairs() == [("three", "c")]


def test_a_refused_claim_is_the_head_again_and_its_vm_is_free(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a", "b")
    desk.claims("one", "two")
    first = next(desk.router.assign(record, 1))
    record.inventory.release(first.instance)
    record.queue.unassign(first.entry)
    assert desk.pairs() == [("one", "a"), ("two", "b")]


def test_without_a_warm_vm_nobody_gets_any(desk: Desk) -> None:
    record = desk.pool()
    desk.claims("one")
    assert desk.pairs() == []
    assert len(record.queue) == 1
    desk.warm("a")
    assert desk.pairs() == [("one", "a")]


def test_a_pool_under_deletion_hands_nothing_over(desk: Desk) -> None:
    desk.warm("a")
    desk.claims("one")
    desk.pool(deleting=True)
    assert desk.pairs() == []


def test_a_pool_that_is_held_hands_nothing_over_until_it_is_let_go(desk: Desk) -> None:
    record = desk.pool()
    record.held = True
    desk.warm("a")
    desk.claims("one")
    assert desk.pairs() == []
    record.held = False
    assert desk.pairs() == [("one", "a")]


@pytest.mark.parametrize(
    "claim",
    [
        make_claim("one", deleting=True),
        make_claim("one", phase="Expired"),
        make_bound_claim("one", vms=[make_bound_vm("gone")]),
    ],
)
def test_a_claim_that_does_not_wait_any_more_leaves_the_line(desk: Desk, claim: Claim) -> None:
    desk.pool()
    desk.warm("a")
    desk.claims("one")
    desk.router.claim_seen(claim)
    assert desk.pairs() == []


def test_a_claim_that_can_not_be_followed_gets_no_vm_until_it_is_changed(desk: Desk) -> None:
    desk.pool()
    desk.warm("a")
    desk.claims("one", lifetime="soon")
    assert desk.pairs() == []
    desk.claims("one", lifetime="1h")
    assert desk.pairs() == [("one", "a")]


def test_a_claim_that_is_gone_leaves_the_line(desk: Desk) -> None:
    desk.pool()
    desk.claims("one", "two")
    desk.router.claim_gone(make_claim("one"))
    desk.warm("a")
    assert desk.pairs() == [("two", "a")]


def test_a_pool_serves_its_own_claims_with_its_own_vms(desk: Desk) -> None:
    desk.pool()
    desk.pool("other", uid="other-uid")
    desk.warm("theirs", pool="other", pool_uid="other-uid")
    desk.claims("ours")
    assert desk.pairs() == []


# ---- pools that come late, go, and come again


def test_a_claim_on_a_missing_pool_is_served_when_the_pool_appears(desk: Desk) -> None:
    desk.claims("early", "later")
    desk.warm("a")
    desk.pool()
    assert "pool" in desk.changed
    assert desk.pairs() == [("early", "a")]


def test_claims_go_on_waiting_when_their_pool_goes(desk: Desk) -> None:
    record = desk.pool()
    desk.claims("one")
    desk.router.pool_gone("pool", "pool-uid")
    assert "pool" not in desk.router.pools
    assert len(record.queue) == 1


def test_a_namesake_pool_serves_the_same_line_with_vms_of_its_own(desk: Desk) -> None:
    desk.pool()
    desk.warm("old")
    desk.claims("one")
    again = desk.pool(uid="second-uid")
    assert desk.pairs() == []
    desk.warm("new", pool_uid="second-uid")
    assert desk.pairs() == [("one", "new")]
    assert again.inventory.total == 1


def test_the_late_end_of_a_pool_does_not_end_its_namesake(desk: Desk) -> None:
    desk.pool()
    again = desk.pool(uid="second-uid")
    desk.router.pool_gone("pool", "pool-uid")
    assert desk.router.pools["pool"] is again


def test_a_changed_pool_keeps_its_record(desk: Desk) -> None:
    record = desk.pool()
    assert desk.pool(warm=9) is record
    assert record.pool.spec.warm.replicas == 9


# ---- VMs that carry a claim's UID


def test_a_claim_that_carries_a_vm_is_not_given_another(desk: Desk) -> None:
    desk.pool()
    desk.claims("one", "two")
    desk.warm("held", state=CLAIMED, claim_uid="one-uid", owner=claim_owner("one-uid", "one"))
    desk.warm("a", "b")
    assert desk.pairs() == [("two", "a")]


def test_a_claim_whose_carrier_is_gone_is_served_again(desk: Desk) -> None:
    desk.pool()
    desk.claims("one")
    held = make_vm("held", state=CLAIMED, claim_uid="one-uid", owner=claim_owner("one-uid", "one"))
    desk.router.vm_seen(held)
    desk.warm("a")
    assert desk.pairs() == []
    desk.router.vm_gone(held)
    assert desk.pairs() == [("one", "a")]


def test_a_vm_that_does_not_carry_a_claim_any_more_keeps_it_from_nothing(desk: Desk) -> None:
    desk.claims("one")
    desk.router.vm_seen(HELD)
    assert desk.router.carriers == {"one-uid": {"held-uid"}}
    desk.router.vm_seen(make_vm("held"))
    assert desk.router.carriers == {}


HELD = make_vm("held", state=CLAIMED, claim_uid="one-uid", owner=claim_owner("one-uid", "one"))
NAMED = [make_bound_vm("held")]


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(None, id="nobody has seen"),
        pytest.param(make_claim("one"), id="waits"),
        pytest.param(make_bound_claim("one", vms=[make_bound_vm("other")]), id="is bound to another"),
        pytest.param(make_bound_claim("one", vms=NAMED, phase="Lost"), id="is lost"),
        pytest.param(make_claim("one", phase="Expired"), id="is over"),
    ],
)
def test_a_vm_is_a_suspect_when_its_claim(desk: Desk, claim: Claim | None) -> None:
    if claim is not None:
        desk.router.claim_seen(claim)
    desk.router.vm_seen(HELD)
    assert desk.suspects == ["held"]


@pytest.mark.parametrize("phase", ["Bound", "Releasing"])
def test_a_vm_that_its_claim_names_is_none(desk: Desk, phase: str) -> None:
    desk.router.claim_seen(make_bound_claim("one", vms=NAMED, phase=phase))
    desk.router.vm_seen(HELD)
    assert desk.suspects == []


def test_a_named_vm_whose_label_a_person_set_back_is_one(desk: Desk) -> None:
    desk.router.claim_seen(make_bound_claim("one", vms=NAMED))
    desk.router.vm_seen(make_vm("held", claim_uid="one-uid", owner=claim_owner("one-uid", "one")))
    assert desk.suspects == ["held"]


@pytest.mark.parametrize(
    "vm",
    [
        pytest.param(make_vm("held"), id="carries nothing"),
        pytest.param(
            make_vm("held", state=CLAIMED, claim_uid="one-uid", owner=claim_owner("one-uid"), deleting=True),
            id="is going",
        ),
        pytest.param(
            make_vm("held", state=names.Mark.DRAINING, claim_uid="one-uid", owner=claim_owner("one-uid")),
            id="is draining",
        ),
        pytest.param(make_vm("held", state=CLAIMED, claim_uid="one-uid", owner=None), id="has no owner"),
    ],
)
def test_no_suspect_is_a_vm_that(desk: Desk, vm: VirtualMachine) -> None:
    desk.router.vm_seen(vm)
    assert desk.suspects == []


def test_a_vm_in_hand_is_a_suspect_only_when_it_is_released(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("held")
    desk.claims("one")
    (assignment,) = desk.router.assign(record, 1)
    desk.router.vm_seen(HELD)
    assert desk.suspects == []
    record.inventory.release(assignment.instance)
    assert desk.suspects == ["held"]


def test_a_vm_to_which_nothing_happened_in_hand_is_not_looked_at_again(desk: Desk) -> None:
    record = desk.pool()
    desk.claims("one")
    desk.router.vm_seen(HELD)
    desk.forget()
    record.inventory.reserve(desk.router.instances[HELD.metadata.uid], "repair")
    record.inventory.release(desk.router.instances[HELD.metadata.uid])
    assert desk.suspects == []


def test_a_vm_that_another_leader_handed_over_while_we_removed_it_is_looked_at(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("held")
    desk.claims("one")
    surplus = desk.router.instances["held-uid"]
    record.inventory.reserve(surplus, "drain")
    desk.router.vm_seen(HELD)
    record.inventory.release(surplus)
    assert desk.suspects == ["held"]
    assert desk.pairs() == []


def test_a_claim_does_not_wait_for_a_vm_that_dies_before_it_was_published(desk: Desk) -> None:
    desk.pool()
    desk.router.vm_seen(HELD)
    desk.warm("other")
    desk.claims("one")
    assert desk.pairs() == []
    dying = make_vm(
        "held", state=CLAIMED, claim_uid="one-uid", owner=claim_owner("one-uid", "one"), deleting=True
    )
    desk.router.vm_seen(dying)
    assert desk.pairs() == [("one", "other")]


def test_the_carriers_of_a_claim_are_looked_at_when_it_changes(desk: Desk) -> None:
    desk.router.claim_seen(make_bound_claim("one", vms=NAMED))
    desk.router.vm_seen(HELD)
    desk.router.claim_seen(make_bound_claim("one", vms=NAMED, phase="Lost"))
    assert desk.suspects == ["held"]


def test_the_vms_that_a_gone_claim_named_are_handed_back_to_the_caller(desk: Desk) -> None:
    claim = make_bound_claim("one", vms=NAMED)
    desk.router.claim_seen(claim)
    desk.router.vm_seen(HELD)
    assert [each.name for each in desk.router.claim_gone(claim)] == ["held"]
    assert desk.router.named == {}
    assert desk.router.claim_gone(make_bound_claim("two", vms=[make_bound_vm("unseen")])) == []


# ---- what is not ours


def test_a_foreign_vm_is_told_of_and_never_counted(desk: Desk) -> None:
    record = desk.pool()
    desk.claims("one")
    desk.warm("clone", owner=None)
    assert desk.router.foreign == {"clone-uid"}
    assert record.inventory.total == 0
    assert desk.pairs() == []
    desk.router.vm_gone(make_vm("clone", owner=None))
    assert desk.router.foreign == set()


def test_a_vm_whose_owner_somebody_took_off_is_not_ours_any_more(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a")
    desk.router.vm_seen(make_vm("a", owner=None))
    assert record.inventory.total == 0
    assert desk.router.foreign == {"a-uid"}
    desk.router.vm_seen(make_vm("a"))
    assert record.inventory.total == 1
    assert desk.router.foreign == set()


def test_a_vm_that_changes_its_pool_is_counted_once(desk: Desk) -> None:
    first, second = desk.pool(), desk.pool("other", uid="other-uid")
    desk.warm("a")
    desk.warm("a", pool="other", pool_uid="other-uid")
    assert (first.inventory.total, second.inventory.total) == (0, 1)


def test_a_claimed_vm_counts_in_its_pool(desk: Desk) -> None:
    record = desk.pool()
    desk.router.vm_seen(HELD)
    assert record.inventory.count(State.CLAIMED) == 1


# ---- guests and nodes


def test_a_guest_that_comes_before_its_vm_counts_when_the_vm_comes(desk: Desk) -> None:
    record = desk.pool()
    desk.router.vmi_seen(make_vmi("a"))
    assert record.inventory.total == 0
    desk.router.vm_seen(make_vm("a"))
    assert record.inventory.count(State.WARM) == 1


def test_a_guest_that_comes_after_its_vm_makes_it_warm(desk: Desk) -> None:
    record = desk.pool()
    desk.router.vm_seen(make_vm("a"))
    desk.forget()
    desk.router.vmi_seen(make_vmi("a"))
    assert record.inventory.count(State.WARM) == 1
    assert desk.changed == ["pool"]


def test_the_guest_of_a_namesake_is_not_the_vms(desk: Desk) -> None:
    record = desk.pool()
    desk.router.vmi_seen(make_vmi("a", vm_uid="earlier-uid"))
    desk.router.vm_seen(make_vm("a"))
    assert record.inventory.count(State.WARM) == 0


def test_a_guest_that_nothing_owns_is_not_the_vms(desk: Desk) -> None:
    """KubeVirt's guests name their VM. Whoever may make guests could put another machine in its place."""
    record = desk.pool()
    guest = make_vmi("a")
    replace = msgspec.structs.replace
    desk.router.vmi_seen(replace(guest, metadata=replace(guest.metadata, owner_references=[])))
    desk.router.vm_seen(make_vm("a"))
    assert record.inventory.count(State.WARM) == 0


def test_a_guest_that_goes_makes_its_vm_unready(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a")
    desk.router.vmi_gone(make_vmi("a"))
    assert record.inventory.count(State.UNREADY) == 1


def test_the_late_end_of_an_earlier_guest_changes_nothing(desk: Desk) -> None:
    record = desk.pool()
    desk.router.vmi_seen(make_vmi("a", uid="second"))
    desk.router.vm_seen(make_vm("a"))
    desk.router.vmi_gone(make_vmi("a", uid="first"))
    assert record.inventory.count(State.WARM) == 1


def test_a_cordoned_node_takes_its_vms_out_and_gives_them_back(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a")
    desk.nodes["node-1"] = make_node(cordoned=True)
    desk.router.node_changed("node-1")
    assert record.inventory.count(State.UNREADY) == 1
    desk.nodes["node-1"] = make_node()
    desk.router.node_changed("node-1")
    desk.claims("one")
    assert desk.pairs() == [("one", "a")]


def test_the_claim_is_reviewed_when_its_guest_changes_or_its_vm_goes(desk: Desk) -> None:
    desk.router.claim_seen(make_bound_claim("one", vms=NAMED))
    desk.router.vm_seen(HELD)
    desk.forget()
    desk.now = NOW + 7
    desk.router.vmi_seen(make_vmi("held", addresses=["10.9.9.9"]))
    assert desk.reviewed == ["one-uid"]
    assert desk.router.guest_changed == {"one-uid": NOW + 7}
    desk.forget()
    desk.router.vm_gone(HELD)
    assert desk.reviewed == ["one-uid"]


# ---- impatience and time


def test_who_asked_to_fail_at_once_is_told_when_nothing_is_warm(desk: Desk) -> None:
    record = desk.pool()
    desk.claims("hasty", when_empty="Fail")
    desk.claims("patient")
    assert [each.claim.name for each in desk.router.unserved(record)] == ["hasty"]


def test_who_asked_to_fail_and_got_a_vm_is_not_failed(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a")
    desk.claims("hasty", when_empty="Fail")
    assert desk.pairs() == [("hasty", "a")]
    assert desk.router.unserved(record) == []


def test_who_asked_to_fail_and_carries_a_vm_is_left_to_repair(desk: Desk) -> None:
    record = desk.pool()
    desk.claims("one", when_empty="Fail")
    desk.router.vm_seen(HELD)
    assert desk.router.unserved(record) == []


def test_time_lets_the_grace_of_a_vm_and_the_pause_of_a_claim_end(desk: Desk) -> None:
    record = desk.pool(readiness={"unreadyGrace": "1m"})
    desk.warm("a", "b")
    desk.claims("one")
    (assignment,) = desk.router.assign(record, 1)
    record.queue.park(assignment.entry, NOW + 10)
    record.inventory.release(assignment.instance)
    desk.router.vmi_gone(make_vmi("b"))
    assert desk.router.next_due() == NOW + 10
    desk.now = NOW + 10
    desk.router.tick(desk.now)
    assert desk.router.next_due() == NOW + 60
    assert desk.pairs() == [("one", "a")]
    desk.router.tick(NOW + 60)
    assert record.inventory.count(State.FAILED) == 1


# ---- never one VM twice

CLAIM_NAMES = st.sampled_from(["one", "two", "three", "four"])
VM_NAMES = st.sampled_from(["a", "b", "c"])


class Fairness(RuleBasedStateMachine):
    """Claims and VMs come, go and are refused in any order; what is promised is promised once."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.record = self.desk.pool()
        self.promised: list[Assignment] = []

    @rule(name=CLAIM_NAMES)
    def claim(self, name: str) -> None:
        self.desk.claims(name)

    @rule(name=CLAIM_NAMES)
    def claim_goes(self, name: str) -> None:
        self.desk.router.claim_gone(make_claim(name))

    @rule(name=VM_NAMES)
    def vm(self, name: str) -> None:
        self.desk.warm(name)

    @rule(name=VM_NAMES)
    def vm_goes(self, name: str) -> None:
        self.desk.router.vm_gone(make_vm(name))

    @rule(name=VM_NAMES)
    def guest_goes(self, name: str) -> None:
        self.desk.router.vmi_gone(make_vmi(name))

    @rule(name=VM_NAMES)
    def owner_goes(self, name: str) -> None:
        self.desk.router.vm_seen(make_vm(name, owner=None))

    @rule(room=st.integers(0, 3))
    def assign(self, room: int) -> None:
        waiting = [entry.uid for entry in self.record.queue.waiting()]
        found = list(self.desk.router.assign(self.record, room))
        assert [each.entry.uid for each in found] == waiting[: len(found)]
        self.promised += found

    @rule(number=st.integers(0, 5))
    def refuse(self, number: int) -> None:
        if number < len(self.promised):
            ended = self.promised.pop(number)
            self.record.inventory.release(ended.instance)
            self.record.queue.unassign(ended.entry)

    @invariant()
    def a_vm_is_promised_once(self) -> None:
        there = [each.instance.uid for each in self.promised if self._there(each.instance)]
        assert len(there) == len(set(there))

    @invariant()
    def a_claim_is_promised_once(self) -> None:
        there = [
            each.entry.uid for each in self.promised if self.record.queue.find(each.entry.uid) is each.entry
        ]
        assert len(there) == len(set(there))

    @invariant()
    def nobody_waits_beside_a_free_vm(self) -> None:
        again = [(each.entry, each.instance) for each in self.desk.router.assign(self.record, 100)]
        for entry, instance in again:
            assert instance.state is State.WARM
            self.record.inventory.release(instance)
            self.record.queue.unassign(entry)
        free = self.record.inventory.idle(State.WARM)
        assert min(free, len(self.record.queue)) == len(again)

    def _there(self, instance: Instance) -> bool:
        return self.desk.router.instances.get(instance.uid) is instance


TestFairness = Fairness.TestCase
TestFairness.settings = settings(max_examples=60, stateful_step_count=30)


def test_a_pool_of_the_same_uid_and_a_new_spec_is_configured_anew(desk: Desk) -> None:
    desk.pool()
    desk.warm("young", age=10)
    desk.warm("old", age=20)
    pool: VirtualMachinePool = make_pool(claims={"order": "Newest"})
    desk.router.pool_seen(pool)
    desk.claims("one")
    assert desk.pairs() == [("one", "young")]


# ---- what is gone is gone


def lines(desk: Desk) -> set[str]:
    return set(desk.router.queues)


def test_the_inventory_of_a_pool_that_is_gone_goes_with_its_last_vm(desk: Desk) -> None:
    record = desk.pool()
    desk.router.vm_seen(make_vm("a", state=CLAIMED, claim_uid="two-uid"))
    desk.router.pool_gone("pool", record.uid)
    assert set(desk.router.inventories) == {record.uid}
    desk.router.vm_gone(make_vm("a", state=CLAIMED, claim_uid="two-uid"))
    assert not desk.router.inventories


def test_a_step_that_ends_on_a_vm_that_is_gone_leaves_no_inventory(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a")
    instance = desk.router.instances[make_vm("a").metadata.uid]
    record.inventory.reserve(instance, "drain")
    desk.router.vm_gone(make_vm("a"))
    desk.router.pool_gone("pool", record.uid)
    desk.router.inventory(record.uid).release(instance)
    assert not desk.router.inventories


def test_the_inventory_of_a_pool_that_is_there_stays_without_vms(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a")
    desk.router.vm_gone(make_vm("a"))
    assert desk.router.inventories == {record.uid: record.inventory}


def test_a_line_for_a_pool_that_never_was_goes_with_its_last_claim(desk: Desk) -> None:
    desk.claims("one", "two")
    desk.router.claim_gone(make_claim("one"))
    assert lines(desk) == {"pool"}
    desk.router.claim_gone(make_claim("two"))
    assert lines(desk) == set()


def test_the_line_of_a_pool_that_is_there_stays(desk: Desk) -> None:
    record = desk.pool()
    desk.claims("one")
    desk.router.claim_gone(make_claim("one"))
    assert desk.router.queues == {"pool": record.queue}


def test_a_claim_that_was_being_served_when_its_pool_went_is_in_line_for_the_next_one(desk: Desk) -> None:
    """Its hand-over was refused after the pool had gone, and the line with it: nobody looked at it again."""
    record = desk.pool()
    desk.warm("a")
    desk.claims("one")
    assignment = next(desk.router.assign(record, 1))
    desk.router.pool_gone("pool", record.uid)
    record.queue.unassign(assignment.entry)
    again = desk.pool(uid="another-pool-uid")
    assert [each.claim.name for each in again.queue.waiting()] == ["one"]


def test_of_a_pool_whose_namesake_was_seen_before_its_end_nothing_is_held(desk: Desk) -> None:
    record = desk.pool()
    again = desk.pool(uid="another-pool-uid")
    desk.router.pool_gone("pool", record.uid)
    assert [*desk.router.pools.values()] == [again]
    assert [*desk.router.inventories] == ["another-pool-uid"]
    assert desk.router.queues["pool"] is again.queue


def test_without_objects_nothing_is_held(desk: Desk) -> None:
    record = desk.pool()
    desk.warm("a")
    desk.claims("one")
    desk.router.vm_seen(make_vm("b", state=CLAIMED, claim_uid="two-uid"))
    desk.router.claim_seen(make_bound_claim("two", vm="b"))
    assert all(desk.router.held()[table] for table in ("pool", "line", "waiting", "inventory", "named"))

    desk.router.claim_gone(make_claim("one"))
    desk.router.claim_gone(make_bound_claim("two", vm="b"))
    for vm in ("a", "b"):
        desk.router.vmi_gone(make_vmi(vm))
        desk.router.vm_gone(make_vm(vm))
    desk.router.pool_gone("pool", record.uid)
    assert {table: number for table, number in desk.router.held().items() if number} == {}
