"""What is watched, sorted: nodes that go, and KubeVirt's kinds when they come and go."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY, generate_latest

from controller.claims.plan import PlaceOrder, Refresh
from controller.claims.protocol import Done
from controller.claims.release import Outcome
from controller.claims.world import TABLES, World, kubevirt_missing
from controller.kube.timeline import Timeline
from controller.metrics import HELD
from statemachines.instance import State
from tests.support.builders import (
    NAMESPACE,
    NOW,
    POOL,
    POOL_UID,
    at,
    make_claim,
    make_node,
    make_pool,
    make_vm,
    make_vmi,
)


@pytest.fixture
def world() -> World:
    """With one pool and its one VM, warm on node-1."""
    clock = SimpleNamespace(server_time=lambda: datetime.fromtimestamp(NOW, UTC), timeline=Timeline)
    found = World(cast("Any", clock), 32)
    space = found.space(NAMESPACE)
    space.router.pool_seen(make_pool())
    found._node_changed(None, make_node())
    space.router.vmi_seen(make_vmi())
    space.router.vm_seen(make_vm())
    return found


def state(world: World) -> tuple[State, str]:
    [instance] = world.space(NAMESPACE).router.instances.values()
    return instance.state, instance.derived.reason


def test_a_warm_vm_on_a_node_that_is_deleted_is_not_warm_any_more(world: World) -> None:
    assert state(world)[0] is State.WARM
    world._node_changed(make_node(), None)
    assert state(world) == (State.UNREADY, "its node node-1 was deleted")
    world._node_changed(None, make_node())
    assert state(world)[0] is State.WARM


def test_a_node_registered_anew_is_not_taken_for_gone_when_a_list_tells_of_the_old_ones_end_after_it(
    world: World,
) -> None:
    anew = make_node(uid="another-node-uid")
    world.nodes.apply(make_node(version="3"))
    world.nodes.replace([make_node(uid="another-node-uid", version="8")], "9")
    assert state(world)[0] is State.WARM
    world._node_changed(anew, None)
    assert state(world) == (State.UNREADY, "its node node-1 was deleted")


def test_a_node_that_was_on_its_way_out_is_deleted_when_it_is(world: World) -> None:
    """Where a finalizer holds nodes, each has a deletionTimestamp before it goes."""
    going = make_node()
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=at(-5)))
    world._node_changed(make_node(), going)
    world._node_changed(going, None)
    assert state(world) == (State.UNREADY, "its node node-1 was deleted")


def test_of_the_nodes_that_went_those_are_kept_in_mind_that_a_guest_names_and_the_last_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.claims.world._GONE_NODES", 10)
    guest = make_vmi()
    world.vmis.apply(replace(guest, metadata=replace(guest.metadata, resource_version="1")))
    for name in ("node-1", *(f"spot-{number}" for number in range(50))):
        world._node_changed(None, make_node(name))
        world._node_changed(make_node(name), None)
        assert world.held()["gone node"] <= 20
    assert state(world) == (State.UNREADY, "its node node-1 was deleted")
    assert {"node-1", *(f"spot-{number}" for number in range(40, 50))} <= world._node_by_name.keys()
    assert world._node_by_name.keys() == world._gone_nodes.keys()


def test_every_table_of_a_namespace_is_counted_and_shown_even_while_there_is_none(world: World) -> None:
    assert world.space(NAMESPACE).held().keys() <= set(TABLES)
    assert World(cast("Any", None), 32).held() == dict.fromkeys(TABLES, 0)
    assert world.held()["pool"] == 1


def test_a_scrape_counts_what_is_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([{"pool": 1, "vm": 7}])
    monkeypatch.setattr(HELD, "count", lambda: next(counts))
    told = generate_latest(REGISTRY).decode()
    assert 'bullpen_held_entries{table="pool"} 1.0' in told
    assert 'bullpen_held_entries{table="vm"} 7.0' in told


@pytest.mark.parametrize("trouble", [make_node(ready="Unknown"), make_node(cordoned=True)])
def test_a_warm_vm_on_a_node_in_trouble_is_not_warm_from_that_moment(world: World, trouble: Any) -> None:
    world._node_changed(make_node(), trouble)
    assert state(world)[0] is State.UNREADY


async def test_while_a_kind_of_kubevirts_is_missing_nobody_is_served_and_then_all_are(world: World) -> None:
    space = world.space(NAMESPACE)
    vms, vmis = world._serves("virtualmachines"), world._serves("virtualmachineinstances")
    world.begin()
    vms(False)
    vmis(False)
    space.router.claim_seen(make_claim())
    space._serve_pool(POOL)
    assert not space.in_hand
    assert "no virtualmachineinstances and no virtualmachines" in world.desk.missing
    vms(True)
    assert "no virtualmachineinstances (kubevirt.io/v1)" in world.desk.missing
    vmis(True)
    assert world.desk.missing == ""
    assert POOL in space._pools, "all is looked at again"
    assert list(space.router.assign(space.router.pools[POOL], 1))
    assert space.router.pools[POOL].uid == POOL_UID


async def test_a_claim_that_a_task_of_ours_is_at_work_on_is_left_to_it_until_it_is_put_down(
    world: World,
) -> None:
    space, claim = world.space(NAMESPACE), make_claim(timeout="1s", age=60)
    world.begin()
    space.router.claim_seen(claim)
    space.in_hand.add(claim.uid)
    space._look(claim.uid)
    assert not world.desk.tasks
    space._claims.clear()
    space.put_down(claim.uid)
    assert claim.uid in space._claims


async def test_a_claim_that_goes_before_its_task_has_begun_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its plan had asked for put it into tables from which nobody would take it any more."""
    space, claim = world.space(NAMESPACE), make_claim(pool="elsewhere", when_empty="OrderAfter", after="1s")
    empty = space.held()
    space.router.claim_seen(claim)
    space.claim_gone(claim, watched=True)
    monkeypatch.setattr(space.executor, "drive", _driven)
    await space.aftercare.carry_out(claim, PlaceOrder())
    await space.aftercare.carry_out(claim, Refresh({}))
    assert space.held() == empty


async def _driven(work: Any) -> tuple[Any, Done]:
    return work, Done(Outcome.DONE)


def test_nothing_is_missing_when_all_is_served() -> None:
    assert kubevirt_missing([]) == ""
