"""A removal that is refused is not tried again at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.claims.drain import Outcome
from controller.claims.protocol import Done
from controller.claims.queue import Queue
from controller.claims.records import PoolRecord
from controller.machines.inventory import Instance, Inventory
from controller.pools.plan import Why
from controller.pools.removals import Removals
from tests.support.builders import POOL_UID, make_instance, make_pool


class Scene:
    """Removals whose writer answers as told, and whose pauses are written down and pass in no time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: Done) -> None:
        self.outcomes = list(outcomes)
        self.pauses: list[float] = []
        self.tried: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.now = 1000.0
        self.turn = asyncio.sleep
        monkeypatch.setattr("controller.pools.removals.monotonic", lambda: self.now)
        monkeypatch.setattr("controller.pools.removals.asyncio.sleep", self.sleep)
        monkeypatch.setattr("controller.pools.removals.random.uniform", lambda _low, _high: 1.0)
        desk = SimpleNamespace(start=lambda work: self.tasks.append(asyncio.ensure_future(work)))
        self.record = PoolRecord(make_pool(), Inventory(POOL_UID), Queue())
        self.removals = Removals(cast("Any", desk), cast("Any", self), self.record, lambda: None)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        end = self.now + seconds
        await self.turn(0)
        self.now = max(self.now, end)

    async def remove(self, _pool: object, instance: Instance) -> Done:
        self.tried.append(instance.name)
        return self.outcomes.pop(0)

    async def removes(self, *instances: Instance) -> None:
        self.removals.start(instances, Why.SURPLUS)
        await asyncio.gather(*self.tasks)


NO = Done(Outcome.GIVEN_UP, "not on Fridays")


async def test_each_refusal_is_followed_by_a_longer_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, NO, NO, NO)
    vm = make_instance()
    for _ in range(3):
        await scene.removes(vm)
    assert scene.pauses == [5.0, 10.0, 20.0]
    assert scene.removals.denied == "not on Fridays"
    assert vm.busy == ""
    assert not scene.removals.under_way


async def test_those_that_are_refused_together_are_one_setback_and_the_pause_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, *[NO] * 9)
    for _ in range(3):
        await scene.removes(*(make_instance(name) for name in "abc"))
    assert scene.pauses == [5.0] * 3 + [10.0] * 3 + [20.0] * 3


async def test_one_that_goes_ends_the_row_and_stays_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, NO, Done(Outcome.GONE), NO)
    first, second = make_instance("a"), make_instance("b")
    await scene.removes(first)
    await scene.removes(first)
    assert (scene.removals.denied, first.busy) == ("", "drain")
    await scene.removes(second)
    assert scene.pauses == [5.0, 5.0]


async def test_one_that_is_not_unclaimed_any_more_is_let_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Done(Outcome.REFUSED))
    vm = make_instance()
    await scene.removes(vm)
    assert (scene.pauses, scene.removals.denied, vm.busy) == ([], "", "")


async def test_what_is_not_to_be_removed_any_more_is_not_complained_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, NO)
    await scene.removes(make_instance())
    scene.removals.settle()
    assert scene.removals.denied == ""
