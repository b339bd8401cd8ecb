"""When the loops of pools begin: not before all that they count is listed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from controller.claims.world import World
from controller.kube.client import ApiClient
from controller.pools.host import PoolHost
from controller.pools.loop import PoolLoop
from tests.support.builders import make_pool

Json = dict[str, Any]


class Idle:
    """A client that is never asked for anything but the time."""

    def server_time(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


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
def world() -> World:
    return World(cast("ApiClient", Idle()), 32)


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
