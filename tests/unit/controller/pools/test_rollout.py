"""Which outdated VMs go, how many more may be there, and why a roll-out does not go on."""

from __future__ import annotations

from typing import Any

import pytest

from controller.machines.instance import Derived
from controller.machines.inventory import Instance
from controller.pools.brake import BrakeState
from controller.pools.freshness import Revisions
from controller.pools.plan import Create, Remove, Why, plan, surplus
from controller.pools.rollout import floor, halted, hindered, leaving, surge
from controller.pools.snapshot import Snapshot, Trouble
from crds import names
from statemachines.instance import State
from tests.support.builders import NOW, make_instance, make_pool, make_snapshot

Json = dict[str, Any]
ROLLING: Json = {"type": "RollingUpdate"}
RECREATE: Json = {"type": "Recreate"}
OLD = {names.LABEL_REVISION: "fedcba9876"}
FAILING = BrakeState(1)
OPEN = BrakeState(3, NOW - 60, NOW - 1, 10.0)


def old(*vms: str, state: State = State.WARM, age: float = 600.0) -> list[Instance]:
    """VMs of an older template, each a second younger than the one before."""
    return [make_instance(vm, state, age=age - place, labels=OLD) for place, vm in enumerate(vms)]


def new(*vms: str, state: State = State.WARM) -> list[Instance]:
    return [make_instance(vm, state, age=30.0) for vm in vms]


def seen(outdated: list[Instance], fresh: list[Instance] | None = None, **fields: Any) -> Snapshot:
    """A pool of three that rolls out, where the VMs of `outdated` are to be replaced."""
    fresh = fresh or []
    warm = sum(each.state is State.WARM for each in fresh)
    settings: Json = {
        "pool": make_pool(update=ROLLING),
        "removable": [*outdated, *fresh],
        "outdated": outdated,
        "revisions": Revisions(len(fresh), warm, len(outdated)),
    }
    return make_snapshot(**{**settings, **fields})


def removed(found: Snapshot) -> dict[str, list[str]]:
    """The names of the VMs that the plan removes, by why."""
    removals = [each for each in plan(found) if isinstance(each, Remove)]
    return {each.why.value: [vm.name for vm in each.instances] for each in removals}


def created(found: Snapshot) -> int:
    return sum(each.count for each in plan(found) if isinstance(each, Create))


# ---- a rolling update, step by step


@pytest.mark.parametrize(
    ("found", "makes", "takes"),
    [
        pytest.param(seen(old("a", "b", "c")), 1, {}, id="it begins with one more"),
        pytest.param(
            seen(old("a", "b", "c"), new("n", state=State.PROVISIONING)), 0, {}, id="which boots first"
        ),
        pytest.param(seen(old("a", "b", "c"), new("n")), 0, {"stale": ["a"]}, id="then the oldest may go"),
        pytest.param(seen(old("b", "c"), new("n")), 1, {}, id="and the next one is made"),
        pytest.param(seen(old("c"), new("n", "o", "p")), 0, {"stale": ["c"]}, id="the last one goes"),
        pytest.param(seen([], new("n", "o", "p")), 0, {}, id="and nothing is left to do"),
        pytest.param(seen(old("a"), new("n")), 2, {}, id="what claims took is made first, and one more"),
        pytest.param(
            seen(old("a", "b", "c"), new("n"), warm=1, handing_over=1),
            0,
            {"stale": ["a"]},
            id="those being handed over are no reserve",
        ),
        pytest.param(
            seen(old("a", "b", "c"), warm=1, handing_over=1), 1, {}, id="nor do they keep others from it"
        ),
    ],
)
def test_a_rolling_update(found: Snapshot, makes: int, takes: dict[str, list[str]]) -> None:
    assert (created(found), removed(found)) == (makes, takes)


@pytest.mark.parametrize(
    ("update", "makes", "takes"),
    [
        pytest.param({"maxSurge": 2}, 2, [], id="a larger surge makes more at once"),
        pytest.param({"maxSurge": 9}, 4, [], id="never more than there are to be replaced"),
        pytest.param({"warmFloor": "75%"}, 1, ["a"], id="a lower floor lets some go at once"),
        pytest.param({"warmFloor": "60%"}, 1, ["a"], id="a share is rounded up"),
        pytest.param({"warmFloor": "0%"}, 1, ["a", "b", "c", "d"], id="no floor lets all go"),
        pytest.param({"maxSurge": 0, "warmFloor": "75%"}, 0, ["a"], id="without surge one goes first"),
    ],
)
def test_surge_and_floor(update: Json, makes: int, takes: list[str]) -> None:
    pool = make_pool(warm=4, update={**ROLLING, **update})
    found = seen(old("a", "b", "c", "d"), pool=pool)
    assert (created(found), removed(found).get("stale", [])) == (makes, takes)


@pytest.mark.parametrize(
    ("share", "warm", "kept"), [("100%", 5, 5), ("50%", 5, 3), ("1%", 5, 1), ("0%", 5, 0)]
)
def test_the_floor_is_a_share_of_the_target_rounded_up(share: str, warm: int, kept: int) -> None:
    assert floor(make_snapshot(make_pool(warm=warm, update={"warmFloor": share}))) == kept


def test_unready_ones_go_at_once_and_need_no_room() -> None:
    found = seen(old("u", state=State.UNREADY) + old("a", "b", "c"))
    assert removed(found) == {"stale": ["u"]}
    assert surge(seen(old("u", state=State.UNREADY))) == 0


def test_boots_of_an_older_template_are_dropped_in_a_pool_that_never_booted_one() -> None:
    found = seen(old("a", "b", "c", state=State.PROVISIONING))
    assert removed(found) == {"stale": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("boots", "fields", "dropped"),
    [
        pytest.param("abc", {"warm": 3}, "abc", id="what is ready is enough"),
        pytest.param("abc", {"warm": 1}, "c", id="the floor needs two: the youngest goes"),
        pytest.param("abc", {"warm": 3, "pending": 2}, "c", id="claims wait for two of them"),
        pytest.param("abc", {"warm": 1, "creating": 2}, "abc", id="successors are on their way"),
        pytest.param("abcdefghijkl", {"pending": 20}, "jkl", id="one creation is left for a successor"),
    ],
)
def test_boots_that_the_floor_or_a_claim_needs_go_on(boots: str, fields: Json, dropped: str) -> None:
    found = seen(old(*boots, state=State.PROVISIONING), lead_time=(10.0, 12.0), **fields)
    assert [each.name for each in leaving(found)] == list(dropped)


def test_removals_are_bounded_and_failed_ones_come_first() -> None:
    pool = make_pool(warm=4, update={**ROLLING, "warmFloor": "0%"}, limits={"maxConcurrentDeletions": 3})
    failed = [make_instance("f", State.FAILED)]
    found = seen(old("a", "b", "c", "d"), pool=pool, failed=failed)
    assert removed(found) == {"failed": ["f"], "stale": ["a", "b"]}
    assert removed(seen(old("a", "b"), pool=pool, removing=3)) == {}


def test_the_extra_vm_is_no_surplus() -> None:
    assert surplus(seen(old("a", "b", "c"), new("n", state=State.PROVISIONING))) == 0
    assert surplus(seen(old("a", "b", "c"), new("n", "o"))) == 1
    assert surplus(seen([], new("n", "o", "p", "q"))) == 1


def test_an_outdated_one_that_goes_is_surplus_no_more() -> None:
    pool = make_pool(warm=1, update=ROLLING)
    found = seen(old("a", "b", "c"), new("n", state=State.PROVISIONING), pool=pool)
    assert removed(found) == {"stale": ["a", "b"]}


def test_surplus_is_an_older_ones_before_a_newer_ones() -> None:
    found = make_snapshot(make_pool(warm=1), removable=[*new("n"), *old("a", "b")])
    assert removed(found) == {"surplus": ["b", "a"]}


# ---- recreate


def test_recreate_takes_all_at_once_and_makes_none_meanwhile() -> None:
    pool = make_pool(update=RECREATE)
    every = old("a", "b") + old("p", state=State.PROVISIONING)
    found = seen(every, pool=pool, backorders=2)
    assert (created(found), removed(found)) == (0, {"stale": ["a", "p", "b"]})
    assert created(seen([], pool=pool)) == 3


def test_recreate_replaces_vms_that_are_only_too_old_under_the_floor() -> None:
    aged = [make_instance(vm, State.WARM, age=9000.0) for vm in "abc"]
    found = seen(aged, pool=make_pool(update=RECREATE))
    assert (created(found), removed(found)) == (1, {})
    assert removed(seen(aged, new("n"), pool=make_pool(update=RECREATE))) == {"too-old": ["a"]}


@pytest.mark.parametrize("trouble", [{"trouble": Trouble("TemplateInvalid", "x")}, {"checked": False}])
def test_recreate_takes_nothing_before_the_template_is_known_to_be_good(trouble: Json) -> None:
    assert removed(seen(old("a", "b", "c"), pool=make_pool(update=RECREATE), **trouble)) == {}


# ---- why it stops


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        pytest.param({}, "", id="nothing stands in its way"),
        pytest.param({"brake": OPEN}, "3 VMs in a row of revision 0123456789 failed", id="the brake is open"),
        pytest.param({"brake": FAILING}, "a VM of revision 0123456789 failed", id="the first one failed"),
        pytest.param({"trouble": Trouble("X", "a fixed MAC")}, "a fixed MAC", id="it is refused"),
        pytest.param({"missing": "no KubeVirt"}, "no KubeVirt", id="nobody could start a successor"),
        pytest.param({"checked": False}, "has not yet said", id="it is not checked yet"),
        pytest.param({"pool": make_pool(update=ROLLING, suspend=True)}, "spec.suspend", id="suspended"),
    ],
)
def test_old_ones_are_kept_when(fields: Json, why: str) -> None:
    found = seen(old("a", "b", "c"), warm=2, **fields)
    assert (why in halted(found)) if why else halted(found) == ""
    assert ("stale" in removed(found)) is (why == "")


def test_one_failure_among_vms_that_work_stops_nothing() -> None:
    found = seen(old("a", "b", "c"), new("n"), brake=FAILING, last_failure="it crashed")
    assert halted(found) == ""
    assert removed(found) == {"stale": ["a"]}


def test_a_stalled_roll_out_tries_one_vm_at_a_time() -> None:
    assert created(seen(old("a", "b", "c"), brake=OPEN)) == 1
    assert created(seen(old("a", "b", "c"), new("n", state=State.PROVISIONING), brake=OPEN)) == 0


@pytest.mark.parametrize(
    ("pool", "fields", "why"),
    [
        pytest.param(
            make_pool(update=ROLLING, limits={"maxReplicas": 3}), {}, "limits.maxReplicas (3)", id="no room"
        ),
        pytest.param(make_pool(update=ROLLING), {"quota": "used up"}, "used up", id="a quota"),
        pytest.param(
            make_pool(update={**ROLLING, "maxSurge": 0, "warmFloor": "90%"}),
            {},
            "maxSurge is 0",
            id="rounded",
        ),
        pytest.param(make_pool(update=ROLLING), {"creating": 1}, "", id="one is being made"),
        pytest.param(make_pool(update=ROLLING), {"removing": 1}, "", id="one is being removed"),
        pytest.param(make_pool(update={**ROLLING, "warmFloor": "50%"}), {}, "", id="one may go first"),
    ],
)
def test_it_says_what_leaves_no_room_for_a_successor(pool: Any, fields: Json, why: str) -> None:
    found = hindered(seen(old("a", "b", "c"), pool=pool, **fields))
    assert (why in found) if why else found == ""


def test_no_second_one_is_made_while_no_node_has_room() -> None:
    pool = make_pool(update={**ROLLING, "maxSurge": 2})
    found = seen(old("a", "b", "c"), new("n", state=State.PROVISIONING), pool=pool, unschedulable=1)
    assert created(found) == 0
    assert "no node has room for a successor" in hindered(found)
    assert removed(found) == {}


def test_every_reason_of_a_removal_is_a_label_of_the_metric() -> None:
    assert {each.value for each in Why} == {
        "draining",
        "failed",
        "stale",
        "too-old",
        "surplus",
        "pool-deleted",
    }


@pytest.mark.parametrize("kind", ["RollingUpdate", "Replenish"])
def test_boots_that_no_node_has_room_for_make_place_at_once_though_claims_wait(kind: str) -> None:
    stranded = old("a", "b", "c", state=State.PROVISIONING)
    for each in stranded:
        each.derived = Derived(State.PROVISIONING, "no room", unschedulable=True)
    found = seen(
        stranded,
        pool=make_pool(update={"type": kind}),
        pending=5,
        backorders=5,
        unschedulable=3,
        lead_time=(1.0, 2.0),
    )
    assert removed(found) == {"stale": ["a", "b", "c"]}
