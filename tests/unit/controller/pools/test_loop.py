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
from controller.machines.readiness import ReadinessRule
from controller.pools.loop import PoolLoop
from controller.pools.plan import Remove, plan
from crds.pool import ClaimOrder
from tests.support.builders import NOW, POOL_UID, make_pool, make_vm


@pytest.fixture
def loop() -> PoolLoop:
    space = SimpleNamespace(
        client=None, name="ns", vms=None, executor=None, now=lambda: NOW, desk=SimpleNamespace(missing="")
    )
    inventory = Inventory(POOL_UID)
    inventory.configure(ReadinessRule(), ClaimOrder.OLDEST, NOW)
    return PoolLoop(cast("Namespace", space), PoolRecord(make_pool(), inventory, Queue()), 1.0, 300.0)


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


def test_a_booting_vm_that_is_being_removed_is_not_counted_until_its_mark_is_seen(loop: PoolLoop) -> None:
    inventory = loop.record.inventory
    for name in "abcd":
        inventory.observe(make_vm(name, age=30.0), None, None, NOW)
    [first] = [each for each in plan(loop._snapshot()) if isinstance(each, Remove)]
    for instance in first.instances:
        inventory.reserve(instance, "drain")
    assert len(first.instances) == 1
    assert not any(isinstance(each, Remove) for each in plan(loop._snapshot())), "one more goes"
