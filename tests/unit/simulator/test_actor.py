"""The actor plays scripts through whatever the API server answers, and dies of nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from simulator.api import ApiError
from simulator.kubevirt.actor import Actor
from simulator.kubevirt.behaviour import Defaults
from simulator.kubevirt.distributions import Fixed
from simulator.kubevirt.hands import CreateRefusedError, Hands
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.planner import Planner
from simulator.kubevirt.script import Verb, Write
from simulator.kubevirt.sight import Sight
from tests.unit.simulator.making import condition, make_vmi, opened_vm


class ScriptedHands:
    """Takes every write, raises what it is told to at chosen ones, and lets a VMI appear and become Ready."""

    def __init__(self, **trouble: list[Exception]) -> None:
        self.trouble = trouble
        self.done: list[str] = []
        self.refreshed = 0
        self.version = 100

    async def perform(self, write: Write, sight: Sight) -> None:
        waiting = self.trouble.get(write.verb.name, [])
        if waiting:
            raise waiting.pop(0)
        self.done.append(write.name)
        self.version += 1
        if write.verb is Verb.CREATE:
            sight.see(make_vmi("Pending", ready=False, ran=False, version=self.version))
        elif write.verb is Verb.VMI:
            ready = write.body["status"]["conditions"][0]["status"] == "True"
            sight.see(make_vmi(write.name, ready=ready, version=self.version))
        elif write.verb is Verb.VM_STATUS:
            status: dict[str, Any] = {"printableStatus": "Running" if write.name == "Ready" else write.name}
            status["conditions"] = [condition("Ready", "True" if write.name == "Ready" else "False")]
            sight.see(opened_vm(version=self.version, status=status))

    async def refresh(self, sight: Sight) -> None:  # noqa: ARG002 - the protocol's argument
        self.refreshed += 1


def staged(hands: ScriptedHands, boot: float = 0.0, **defaults: Any) -> Actor:
    """The actor of a VM that is to boot, in so many seconds."""
    sight = Sight("ns", "vm")
    sight.see(opened_vm())
    planner = Planner(sight, Placement(0, Random(1)), Defaults(boot=Fixed(boot), **defaults), Random(1))
    return Actor(sight, planner, cast("Hands", hands), lambda _: None)


async def played(actor: Actor) -> None:
    actor.poke()
    while actor.task is not None:
        await asyncio.wait_for(actor.task, 10)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


async def test_a_boot_is_played_to_its_end_and_then_the_task_is_gone() -> None:
    hands = ScriptedHands()
    actor = staged(hands)
    await played(actor)
    assert hands.done[0] == "Pending"
    assert hands.done[-1] == "Ready"
    actor.poke()
    assert actor.task is None


async def test_a_conflict_is_answered_by_reading_anew_and_going_on() -> None:
    hands = ScriptedHands(VMI=[ApiError(409, "Conflict", "changed")])
    await played(staged(hands))
    assert hands.refreshed == 1
    assert hands.done[-1] == "Ready"


async def test_a_refused_vmi_is_told_and_tried_again() -> None:
    hands = ScriptedHands(CREATE=[CreateRefusedError("quota"), CreateRefusedError("quota")])
    await played(staged(hands, back_off=0.01))
    assert hands.done[0] == "FailedCreate"
    assert hands.done[-1] == "Ready"


async def test_an_error_that_nobody_thought_of_is_survived(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulator.kubevirt.actor._LONGEST_PAUSE", 0.01)
    hands = ScriptedHands(VMI=[KeyError("odd")])
    await played(staged(hands))
    assert hands.done[-1] == "Ready"
    assert "going on after a pause" in caplog.text


async def test_a_vm_that_cannot_be_planned_is_left_alone_until_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hands = ScriptedHands()
    actor = staged(hands)
    odd = {"domain": {"memory": {"guest": "1Mi"}, "devices": {}}, "volumes": "none"}
    actor.sight.see(opened_vm(version=50, spec=odd))
    actor.poke()
    assert actor.task is None
    assert "left alone" in caplog.text
    actor.sight.see(opened_vm(version=51))
    await played(actor)
    assert hands.done[-1] == "Ready"


async def test_a_deletion_ends_the_wait_for_a_boot() -> None:
    hands = ScriptedHands()
    actor = staged(hands, boot=3600.0)
    actor.poke()
    await until(lambda: "Starting" in hands.done)
    assert actor.sight.vmi is not None
    actor.sight.lose(actor.sight.vmi)
    actor.sight.see(opened_vm(version=10_000, deleting=True))
    actor.poke()
    await until(lambda: "Terminating" in hands.done)
    assert "Running" not in hands.done
    if actor.task is not None:
        actor.task.cancel()


async def test_writes_that_change_nothing_are_not_repeated_without_a_pause() -> None:
    hands = ScriptedHands()
    tries = 0

    async def nothing(write: Write, sight: Sight) -> None:  # noqa: ARG001 - the protocol's arguments
        nonlocal tries
        tries += 1

    hands.perform = nothing  # type: ignore[method-assign] # a fake of a fake
    actor = staged(hands)
    actor.poke()
    await asyncio.sleep(0.3)
    task = actor.task
    assert task is not None
    task.cancel()
    boot = 13
    assert tries <= 5 * boot
