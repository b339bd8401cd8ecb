"""A pool's loop, where it waits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from controller.claims.loop import Namespace
from controller.claims.queue import Queue
from controller.claims.records import PoolRecord
from controller.machines.inventory import Inventory
from controller.pools.loop import PoolLoop
from tests.support.builders import NOW, POOL_UID, make_pool


@pytest.fixture
def loop() -> PoolLoop:
    space = SimpleNamespace(client=None, name="ns", vms=None, executor=None, now=lambda: NOW)
    return PoolLoop(
        cast("Namespace", space), PoolRecord(make_pool(), Inventory(POOL_UID), Queue()), 1.0, 300.0
    )


async def test_a_loop_that_is_cancelled_together_with_a_change_ends(loop: PoolLoop) -> None:
    waiting = asyncio.create_task(loop._wait())
    await asyncio.sleep(0)
    loop.wake.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_change_ends_the_wait_and_is_taken_note_of(loop: PoolLoop) -> None:
    loop.wake.set()
    async with asyncio.timeout(5):
        await loop._wait()
    assert not loop.wake.is_set()
