"""What a pool does next: the order-up-to rule, its bounds, and who goes first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.machines.instance import Derived
from controller.machines.inventory import Instance
from controller.pools.brake import BrakeState
from controller.pools.plan import (
    Action,
    Check,
    Create,
    DropFinalizer,
    Remove,
    creations,
    plan,
    surplus_order,
    wanted,
)
from controller.pools.snapshot import Snapshot, Trouble
from crds import names
from statemachines.instance import State
from tests.support.builders import NOW, make_instance, make_pool, make_snapshot

OPEN = BrakeState(3, NOW - 60, NOW - 1, 10.0)
OLD = {names.LABEL_REVISION: "fedcba9876"}
WAITS = BrakeState(3, NOW - 60, NOW + 5, 10.0)


def _created(seen: Snapshot) -> int:
    return sum(each.count for each in plan(seen) if isinstance(each, Create))


def _removed(seen: Snapshot) -> list[str]:
    return [each.name for action in plan(seen) if isinstance(action, Remove) for each in action.instances]


def _instances(state: State, *vms: str, **fields: Any) -> list[Instance]:
    return [make_instance(vm, state, **fields) for vm in vms]


def _stranded(*vms: str) -> list[Instance]:
    """VMs of an older template that no node has room for."""
    found = _instances(State.PROVISIONING, *vms, labels=OLD)
    for each in found:
        each.derived = Derived(State.PROVISIONING, "no room", unschedulable=True)
    return found


# ---- no room


def test_while_vms_wait_for_a_node_no_more_are_made() -> None:
    assert _created(make_snapshot(provisioning=1, no_room=True, unschedulable=1)) == 0
    assert _created(make_snapshot(provisioning=1, unschedulable=1)) == 2, (
        "those of another template do not count"
    )


def test_vms_of_an_older_template_that_no_node_took_are_removed() -> None:
    stuck = _stranded("a", "b")
    assert _removed(make_snapshot(removable=stuck, outdated=stuck)) == ["a", "b"]


def test_one_that_no_node_took_and_that_is_surplus_as_well_is_removed_once() -> None:
    stuck = _stranded("a", "b")
    warm = _instances(State.WARM, "c", "d", "e")
    seen = make_snapshot(removable=[*stuck, *warm], outdated=stuck, checked=False)
    assert _removed(seen) == ["a", "b"]


def test_a_pool_that_goes_waits_for_its_vms_on_their_way_out() -> None:
    ending = _instances(State.TERMINATING, "a")
    going = make_pool(deleting=True)
    assert plan(make_snapshot(going, terminating=1, going=ending)) == []
    assert plan(make_snapshot(going, terminating=1)) == [DropFinalizer()], "a claimed one is its claim's"


# ---- without KubeVirt


def test_while_kubevirt_is_missing_nothing_is_planned_but_the_end_of_a_pool_that_goes() -> None:
    assert plan(make_snapshot(missing="no KubeVirt", failed=_instances(State.FAILED, "a"))) == []
    going = make_snapshot(make_pool(deleting=True), missing="no KubeVirt", warm=3)
    assert plan(going) == [DropFinalizer()]


# ---- the order-up-to rule


@pytest.mark.parametrize(
    ("seen", "count"),
    [
        pytest.param({}, 3, id="an empty pool makes its target"),
        pytest.param({"warm": 3}, 0, id="a full one makes none"),
        pytest.param({"warm": 2}, 1, id="one that was taken is replaced"),
        pytest.param({"warm": 1, "provisioning": 2}, 0, id="those on their way count"),
        pytest.param({"warm": 1, "waking": 1}, 1, id="those that wake up count"),
        pytest.param({"creating": 2}, 1, id="those whose creation is under way count"),
        pytest.param({"warm": 3, "handing_over": 2}, 2, id="those that are being handed over do not"),
        pytest.param({"unready": 3}, 3, id="unready ones do not"),
        pytest.param({"failed": 3}, 3, id="failed ones do not"),
        pytest.param({"claimed": 5}, 3, id="claimed ones do not"),
        pytest.param({"draining": 2, "terminating": 2}, 3, id="those that go do not"),
        pytest.param({"backorders": 4}, 7, id="waiting claims order on top"),
        pytest.param({"backorders": 4, "provisioning": 7}, 0, id="what they ordered is on its way"),
        pytest.param({"warm": 3, "backorders": 1}, 1, id="an order is an order though VMs are warm"),
        pytest.param({"warm": 9}, 0, id="too many make none"),
    ],
)
def test_the_order_up_to_rule(seen: dict[str, Any], count: int) -> None:
    assert _created(make_snapshot(**seen)) == count


def test_a_pool_of_none_makes_what_is_ordered_alone() -> None:
    assert _created(make_snapshot(make_pool(warm=0))) == 0
    assert _created(make_snapshot(make_pool(warm=0), backorders=2)) == 2


@pytest.mark.parametrize(
    ("limits", "seen", "count"),
    [
        pytest.param({"maxConcurrentCreations": 4}, {}, 4, id="creations at once"),
        pytest.param(
            {"maxConcurrentCreations": 4}, {"provisioning": 3}, 1, id="those that boot take its place"
        ),
        pytest.param({"maxConcurrentCreations": 4}, {"creating": 4}, 0, id="those under way as well"),
        pytest.param({"maxConcurrentCreations": 4}, {"provisioning": 9}, 0, id="more than it are no debt"),
        pytest.param({"maxReplicas": 20}, {"claimed": 18}, 2, id="all VMs that exist"),
        pytest.param({"maxReplicas": 20}, {"terminating": 15, "failed": 3}, 2, id="those that go count"),
        pytest.param({"maxReplicas": 20}, {"claimed": 30}, 0, id="more than allowed are no debt"),
        pytest.param({"maxReplicas": 20}, {"claimed": 15, "creating": 3}, 2, id="those being made count"),
    ],
)
def test_creations_are_bounded_by(limits: dict[str, int], seen: dict[str, Any], count: int) -> None:
    pool = make_pool(warm=20, limits=limits)
    assert _created(make_snapshot(pool, backorders=20, **seen)) == count


@pytest.mark.parametrize(
    ("seen", "count"),
    [
        pytest.param({"brake": OPEN}, 1, id="an open brake lets one probe through"),
        pytest.param({"brake": OPEN, "provisioning": 1}, 0, id="one at a time"),
        pytest.param({"brake": OPEN, "creating": 1}, 0, id="one at a time, from its creation on"),
        pytest.param({"brake": WAITS}, 0, id="and none before its time"),
        pytest.param({"brake": BrakeState(2)}, 3, id="two failures brake nothing"),
        pytest.param({"quota": "exceeded quota"}, 0, id="a quota that is used up"),
        pytest.param({"trouble": Trouble("TemplateInvalid", "x")}, 0, id="a template that is refused"),
    ],
)
def test_trouble_bounds_creations(seen: dict[str, Any], count: int) -> None:
    assert _created(make_snapshot(**seen)) == count


def test_a_new_revision_is_checked_before_its_first_vm() -> None:
    assert plan(make_snapshot(checked=False)) == [Check()]


def test_a_revision_in_trouble_is_not_checked_again_until_the_trouble_is_over() -> None:
    assert plan(make_snapshot(checked=False, trouble=Trouble("TemplateInvalid", "x"))) == []


# ---- surplus


def test_surplus_goes_and_the_least_useful_goes_first() -> None:
    unready = _instances(State.UNREADY, "unready")
    booting = [
        make_instance("old-boot", State.PROVISIONING, age=90),
        make_instance("new-boot", State.PROVISIONING, age=5),
    ]
    warm = [make_instance("old", State.WARM, age=900), make_instance("new", State.WARM, age=300)]
    seen = make_snapshot(make_pool(warm=0), removable=[*warm, *booting, *unready])
    assert [each.name for each in surplus_order(seen)] == ["unready", "new-boot", "old-boot", "new", "old"]
    assert _removed(seen) == ["unready", "new-boot", "old-boot", "new"]


def test_no_more_go_than_there_are_too_many() -> None:
    warm = _instances(State.WARM, "a", "b", "c", "d", "e")
    assert len(_removed(make_snapshot(removable=warm))) == 2
    assert _removed(make_snapshot(removable=warm[:3])) == []


def test_a_warm_one_does_not_go_for_one_that_was_ordered_and_is_not_seen_yet() -> None:
    """As when a refused hand-over gives its VM back while the one in its place is being made."""
    pool, [warm] = make_pool(warm=1), _instances(State.WARM, "warm")
    assert plan(make_snapshot(pool, removable=[warm], creating=1)) == []
    late = make_instance("late", State.PROVISIONING)
    assert _removed(make_snapshot(pool, removable=[warm, late])) == ["late"]


def test_what_is_surplus_without_the_unseen_goes_at_once() -> None:
    warm = _instances(State.WARM, "a", "b", "c")
    assert len(_removed(make_snapshot(make_pool(warm=1), removable=warm, creating=1))) == 2


def test_waiting_claims_keep_surplus_alive() -> None:
    warm = _instances(State.WARM, "a", "b", "c", "d", "e")
    assert len(_removed(make_snapshot(removable=warm, backorders=1))) == 1
    assert _removed(make_snapshot(removable=warm, backorders=2)) == []


def test_those_of_one_age_go_by_name() -> None:
    warm = _instances(State.WARM, "c", "a", "b")
    assert _removed(make_snapshot(make_pool(warm=1), removable=warm)) == ["a", "b"]


@pytest.mark.parametrize(("removing", "count"), [(0, 2), (1, 1), (2, 0), (9, 0)])
def test_no_more_go_at_once_than_the_pool_allows(removing: int, count: int) -> None:
    pool = make_pool(warm=0, limits={"maxConcurrentDeletions": 2})
    warm = _instances(State.WARM, "a", "b", "c", "d")
    assert len(_removed(make_snapshot(pool, removable=warm, removing=removing))) == count


def test_failed_ones_go_and_are_replaced_in_the_same_pass() -> None:
    failed = _instances(State.FAILED, "f")
    seen = make_snapshot(failed=failed) if False else make_snapshot(warm=2, failed=failed)
    assert _removed(seen) == ["f"]
    assert _created(seen) == 1


def test_draining_ones_go_on_before_failed_ones_and_those_before_surplus() -> None:
    pool = make_pool(warm=0, limits={"maxConcurrentDeletions": 3})
    seen = make_snapshot(
        pool,
        removable=_instances(State.WARM, "surplus"),
        failed=_instances(State.FAILED, "f1", "f2"),
        draining=_instances(State.DRAINING, "d"),
    )
    assert _removed(seen) == ["d", "f1", "f2"]


def test_removal_comes_before_creation() -> None:
    kinds = [type(each) for each in plan(make_snapshot(warm=1, failed=_instances(State.FAILED, "f")))]
    assert kinds == [Remove, Create]


@pytest.mark.parametrize(
    "seen",
    [
        {"trouble": Trouble("TemplateInvalid", "x")},
        {"quota": "used up"},
        {"brake": WAITS},
        {"checked": False},
    ],
)
def test_what_stops_creations_does_not_stop_removals(seen: dict[str, Any]) -> None:
    warm = _instances(State.WARM, "a", "b", "c", "d")
    assert len(_removed(make_snapshot(removable=warm, **seen))) == 1


# ---- suspended


def test_a_suspended_pool_makes_and_removes_nothing() -> None:
    pool = make_pool(warm=3, suspend=True)
    warm = _instances(State.WARM, *"abcdefgh")
    assert plan(make_snapshot(pool)) == []
    assert plan(make_snapshot(pool, checked=False)) == []
    assert plan(make_snapshot(pool, removable=warm)) == []
    assert plan(make_snapshot(pool, failed=_instances(State.FAILED, "f"))) == []


def test_a_suspended_pool_ends_what_was_begun() -> None:
    seen = make_snapshot(make_pool(suspend=True), draining=_instances(State.DRAINING, "d"))
    assert _removed(seen) == ["d"]


# ---- deletion

GOING = make_pool(deleting=True)


def test_a_pool_under_deletion_removes_all_that_nobody_claimed_and_makes_nothing() -> None:
    seen = make_snapshot(
        GOING,
        removable=[*_instances(State.WARM, "w"), *_instances(State.PROVISIONING, "p")],
        failed=_instances(State.FAILED, "f"),
        draining=_instances(State.DRAINING, "d"),
        claimed=2,
        backorders=5,
    )
    assert _removed(seen) == ["d", "f", "p", "w"]
    assert _created(seen) == 0
    assert DropFinalizer() not in plan(seen)


def test_it_may_go_when_only_claimed_ones_are_left() -> None:
    assert plan(make_snapshot(GOING, claimed=4)) == [DropFinalizer()]
    assert plan(make_snapshot(GOING, terminating=4)) == [DropFinalizer()]


@pytest.mark.parametrize("under_way", [{"creating": 1}, {"warm": 1, "handing_over": 1}])
def test_it_may_not_go_while_something_of_ours_is_under_way(under_way: dict[str, Any]) -> None:
    assert plan(make_snapshot(GOING, **under_way)) == []


def test_its_removals_are_bounded_too() -> None:
    pool = make_pool(deleting=True, limits={"maxConcurrentDeletions": 2})
    warm = _instances(State.WARM, "a", "b", "c", "d")
    assert len(_removed(make_snapshot(pool, removable=warm))) == 2
    assert plan(make_snapshot(pool, removable=warm, removing=2)) == []


@pytest.mark.parametrize(
    "seen", [{"trouble": Trouble("TemplateInvalid", "x")}, {"brake": WAITS}, {"checked": False}]
)
def test_trouble_does_not_hold_a_deletion_up(seen: dict[str, Any]) -> None:
    assert _removed(make_snapshot(GOING, removable=_instances(State.WARM, "w"), **seen)) == ["w"]


def test_a_suspended_pool_can_be_deleted() -> None:
    pool = make_pool(suspend=True, deleting=True)
    assert _removed(make_snapshot(pool, removable=_instances(State.WARM, "w"))) == ["w"]


def test_a_pool_that_is_deleted_with_orphan_propagation_leaves_its_vms() -> None:
    pool = make_pool(deleting=True, finalizers=["orphan", "bullpen.dev/pool"])
    assert plan(make_snapshot(pool, removable=_instances(State.WARM, "w"))) == [DropFinalizer()]


# ---- properties

COUNTS = st.integers(0, 30)
SNAPSHOTS = st.builds(
    lambda pool, counts, **fields: make_snapshot(pool, **counts, **fields),
    pool=st.builds(
        lambda warm, most, creations, deletions, suspend: make_pool(
            warm=warm,
            limits={
                "maxReplicas": most,
                "maxConcurrentCreations": creations,
                "maxConcurrentDeletions": deletions,
            },
            suspend=suspend,
        ),
        COUNTS,
        st.integers(0, 60),
        st.integers(1, 20),
        st.integers(1, 20),
        st.booleans(),
    ),
    counts=st.fixed_dictionaries(
        {state.value.lower(): COUNTS for state in (State.PROVISIONING, State.CLAIMED, State.TERMINATING)}
    ),
    removable=st.lists(st.sampled_from([State.WARM, State.UNREADY]), max_size=30).map(
        lambda states: [make_instance(f"vm-{number}", state) for number, state in enumerate(states)]
    ),
    creating=COUNTS,
    removing=COUNTS,
    backorders=COUNTS,
    brake=st.sampled_from([BrakeState(), OPEN, WAITS]),
    quota=st.sampled_from(["", "used up"]),
)


@given(seen=SNAPSHOTS)
def test_no_bound_is_ever_passed(seen: Snapshot) -> None:
    limits, count = seen.pool.spec.limits, _created(seen)
    if count:
        assert seen.total + count <= limits.max_replicas
        assert seen.in_flight + count <= limits.max_concurrent_creations
        assert count <= wanted(seen)
        assert not seen.pool.spec.suspend
        assert not seen.quota
        assert not seen.brake.open or (count, seen.in_flight) == (1, 0)
    leaving = _removed(seen)
    if leaving:
        assert seen.removing + len(leaving) <= limits.max_concurrent_deletions
        assert len(set(leaving)) == len(leaving)


@given(seen=SNAPSHOTS)
def test_nothing_is_made_and_thrown_away_in_the_same_pass(seen: Snapshot) -> None:
    assert not (creations(seen) and _removed(seen))


def _applied(seen: Snapshot, actions: list[Action]) -> Snapshot:
    """The pool after the actions, when every creation has booted and every removal is over."""
    removable = list(seen.removable)
    for action in actions:
        if isinstance(action, Create):
            first = 1000 + len(removable)
            removable += [make_instance(f"new-{first + number}") for number in range(action.count)]
        elif isinstance(action, Remove):
            removable = [each for each in removable if each not in action.instances]
    return make_snapshot(
        seen.pool, removable=removable, backorders=seen.backorders, claimed=seen.counts[State.CLAIMED]
    )


@settings(max_examples=50)
@given(
    warm=st.integers(0, 40),
    there=st.lists(st.sampled_from([State.WARM, State.UNREADY]), max_size=40),
    backorders=st.integers(0, 10),
    claimed=st.integers(0, 10),
    limits=st.fixed_dictionaries(
        {"maxConcurrentCreations": st.integers(1, 10), "maxConcurrentDeletions": st.integers(1, 10)}
    ),
)
def test_pass_by_pass_a_pool_comes_to_its_target_and_rests(
    warm: int, there: list[State], backorders: int, claimed: int, limits: dict[str, int]
) -> None:
    pool = make_pool(warm=warm, limits={**limits, "maxReplicas": 200})
    removable = [make_instance(f"vm-{number}", state) for number, state in enumerate(there)]
    seen = make_snapshot(pool, removable=removable, backorders=backorders, claimed=claimed)
    for _ in range(100):
        actions = plan(seen)
        if not actions:
            break
        seen = _applied(seen, actions)
    assert plan(seen) == []
    assert seen.ready == warm + backorders


@settings(max_examples=50)
@given(warm=st.integers(0, 40), claimed=st.integers(0, 40), most=st.integers(0, 40))
def test_a_pool_whose_limit_is_too_low_comes_to_its_limit(warm: int, claimed: int, most: int) -> None:
    pool = make_pool(warm=warm, limits={"maxReplicas": most})
    seen = make_snapshot(pool, claimed=claimed)
    for _ in range(20):
        seen = _applied(seen, plan(seen))
    assert seen.ready == max(0, min(warm, most - claimed))
