"""When the loops of pools begin: not before all that they count is listed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import orjson
import pytest
from prometheus_client import generate_latest

from controller.claims.world import World
from controller.kube.client import ApiClient
from controller.kube.objects import ObjectMeta
from controller.kube.timeline import Timeline
from controller.metrics import WARM, WARM_TARGET
from controller.pools.host import PoolHost
from controller.pools.loop import PoolLoop
from tests.support.builders import NAMESPACE, make_claim, make_pool

Json = dict[str, Any]


class Idle:
    """A client that tells the time, lists the pools it was given, and notes whatever is written."""

    def __init__(self) -> None:
        self.pools: list[Json] = []
        self.version = 100
        self.written: list[str] = []

    def server_time(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def timeline(self) -> Timeline:
        return Timeline()

    async def get(self, _path: str, **_: Any) -> bytes:
        return orjson.dumps({"metadata": {"resourceVersion": str(self.version)}, "items": self.pools})

    async def json_patch(self, path: str, _ops: Any, **_: Any) -> bytes:
        self.written.append(path)
        return b"{}"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pools whose loops have begun."""
    names: list[str] = []

    async def run(loop: PoolLoop) -> None:
        names.append(loop.pool.metadata.name)
        await asyncio.Event().wait()

    monkeypatch.setattr(PoolLoop, "run", run)
    return names


@pytest.fixture
def client() -> Idle:
    return Idle()


@pytest.fixture
def world(client: Idle) -> World:
    return World(cast("ApiClient", client), 32)


def stored(name: str, version: int = 1) -> Json:
    pool: Json = make_pool(name, uid=f"{name}-uid").model_dump(by_alias=True, mode="json", exclude_none=True)
    pool["metadata"]["resourceVersion"] = str(version)
    return pool


async def test_no_pool_makes_a_vm_before_the_vms_that_there_are_are_known(
    world: World, begun: list[str]
) -> None:
    host = PoolHost(world, 1.0)
    host.observe(None, stored("one"))
    host.observe(None, stored("one", 2))
    await asyncio.sleep(0)
    assert begun == []
    world.begin()
    host.begin()
    host.observe("ADDED", stored("two"))
    await asyncio.sleep(0)
    assert begun == ["one", "two"]
    await host.stop(say=False)


async def test_a_pool_that_went_before_the_beginning_is_not_begun(world: World, begun: list[str]) -> None:
    host = PoolHost(world, 1.0)
    host.observe(None, stored("one"))
    host.observe("DELETED", stored("one", 2))
    world.begin()
    host.begin()
    await asyncio.sleep(0)
    assert begun == []
    await host.stop(say=False)


def names(world: World) -> set[str]:
    return set(world.space(NAMESPACE).router.pools)


async def test_who_takes_over_knows_the_pools_of_a_consistent_list_whatever_the_watch_has_told(
    world: World, client: Idle, begun: list[str]
) -> None:
    host = PoolHost(world, 1.0)
    for name in ("stays", "changed", "gone"):
        host.observe(None, stored(name))
    changed = stored("changed", 50)
    changed["spec"]["warm"]["replicas"] = 7
    client.pools = [stored("stays"), changed, stored("new", 60)]
    await host.confirm()
    assert names(world) == {"stays", "changed", "new"}
    assert world.space(NAMESPACE).router.pools["changed"].pool.spec.warm.replicas == 7
    world.begin()
    host.begin()
    await asyncio.sleep(0)
    assert sorted(begun) == ["changed", "new", "stays"]
    await host.stop(say=False)


async def test_a_pool_that_came_after_the_list_is_kept(world: World) -> None:
    host = PoolHost(world, 1.0)
    host.observe("ADDED", stored("young", 101))
    await host.confirm()
    assert names(world) == {"young"}


async def test_a_pool_that_the_list_lacked_is_not_brought_back_by_a_watch_that_is_behind(
    world: World,
) -> None:
    host = PoolHost(world, 1.0)
    host.observe(None, stored("gone"))
    await host.confirm()
    host.observe("MODIFIED", stored("gone", 40))
    assert names(world) == set()
    host.observe("DELETED", stored("gone", 41))
    assert names(world) == set()


async def test_a_standby_tells_no_pool_that_it_cannot_be_read_until_it_leads(
    world: World, client: Idle, begun: list[str]
) -> None:
    host = PoolHost(world, 1.0)
    broken = stored("broken")
    broken["spec"]["warm"]["replicas"] = "many"
    host.observe(None, broken)
    await asyncio.sleep(0)
    assert client.written == []
    world.begin()
    host.begin()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [path.rpartition("/virtualmachinepools/")[2] for path in client.written] == ["broken/status"]
    assert begun == []
    await host.stop(say=False)


async def test_a_loop_begins_from_the_status_that_the_last_leader_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []

    async def run(loop: PoolLoop) -> None:
        found.append(loop._boots.brake.open)

    monkeypatch.setattr(PoolLoop, "run", run)
    host = PoolHost(world, 1.0)
    host.observe(None, stored("pool"))
    braked = stored("pool", 9)
    braked["status"] = {"brake": {"failures": 4, "openSince": "2025-12-31T23:59:00Z"}}
    host.observe("MODIFIED", braked)
    world.begin()
    host.begin()
    await asyncio.sleep(0)
    assert found == [True]
    await host.stop(say=False)


async def test_a_standby_keeps_no_account_of_what_it_will_look_at_anyway(world: World) -> None:
    for number in range(100):
        world.claims.apply(msgspec.structs.replace(make_claim(), metadata=meta_of(number)))
    space = world.space(NAMESPACE)
    assert (len(space._claims), len(space._pools), len(space._suspects)) == (0, 0, 0)
    world.begin()
    assert len(space._claims) == 100
    world.stop()


async def test_a_stop_is_not_held_up_by_pools_that_nobody_can_be_told_of(
    world: World, client: Idle, begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any, **__: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(client, "json_patch", never)
    monkeypatch.setattr("controller.pools.host._LAST_WORDS", 0.05)
    host = PoolHost(world, 1.0)
    host.observe(None, stored("pool"))
    world.begin()
    host.begin()
    async with asyncio.timeout(5):
        await host.stop(say=True)
    assert begun == []


def meta_of(number: int) -> ObjectMeta:
    return ObjectMeta(
        name=f"c{number}", namespace=NAMESPACE, uid=f"c{number}", resource_version=str(number + 1)
    )


def shown(pool: str) -> bool:
    return f'pool="{pool}"' in generate_latest().decode()


async def test_a_pool_that_is_gone_has_no_figures_any_more(world: World, begun: list[str]) -> None:
    host = PoolHost(world, 1.0)
    for name in ("measured", "other"):
        host.observe("ADDED", stored(name))
        WARM.labels(NAMESPACE, name, "Warm").set(3)
        WARM_TARGET.labels(NAMESPACE, name, "replicas").set(3)
    host.observe("DELETED", stored("measured", 2))
    assert (shown("measured"), shown("other")) == (False, True)
    assert begun == []


async def test_the_figures_of_a_namesake_that_has_come_already_stay(world: World) -> None:
    host = PoolHost(world, 1.0)
    old, new = stored("twice"), stored("twice", 5)
    new["metadata"]["uid"] = "another-uid"
    host.observe("ADDED", old)
    host.observe("ADDED", new)
    WARM.labels(NAMESPACE, "twice", "Warm").set(3)
    host.observe("DELETED", stored("twice", 6))
    assert shown("twice")
