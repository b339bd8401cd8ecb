"""Everything at once, for a while: claims of all sorts come and go, pools are scaled, people meddle with VMs.

What people do to a VM by hand is excused before it is done; what the controller makes of it is not.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from time import monotonic
from typing import Any

from crds.names import LABEL_CLAIM_UID, LABEL_POOL_UID, LABEL_STATE, Mark
from simulator.api import ApiError
from tests.support.controller import Controller
from tests.trials.stage import (
    VMS,
    Idling,
    Scene,
    Stage,
    TrialError,
    errors_in,
    idling,
    requests,
    resident,
)

Json = dict[str, Any]

RATE = 12.0  # deeds a second
MOST = 40  # claims that live at once
GROWTH = 1.25  # times the memory after the first third
_PERSON = "?fieldManager=kubectl-label"  # how the auditor knows a person's hand
_MARKS = {Mark.POOLED, Mark.CLAIMED}

WISHES: list[tuple[int, Json]] = [
    (8, {}),
    (2, {"lifetime": "2s"}),
    (2, {"timeout": "2s"}),
    (1, {"whenEmpty": {"policy": "Fail"}}),
    (1, {"whenEmpty": {"policy": "Wait"}, "timeout": "5s"}),
    (1, {"whenEmpty": {"policy": "OrderAfter", "after": "1s"}}),
    (1, {"metadata": {"labels": {"team": "chaos"}}}),
    (1, {"ttlSecondsAfterFinished": 1, "lifetime": "1s"}),
]


@dataclass(frozen=True)
class Chaos:
    """How it went: deeds by kind, claims that were bound, memory in MiB after a third and at the end.

    Requests and memory are those of one controller, and say little where it died.
    """

    seconds: float
    deeds: dict[str, int]
    claims: int
    bound: int
    deaths: int
    requests_per_claim: float
    memory_third: float
    memory_end: float
    recovered: float
    idle: Idling


class Hands:
    """One deed after another, each by chance."""

    def __init__(self, scene: Scene, random: Random) -> None:
        self.done: Counter[str] = Counter()
        self._scene = scene
        self._random = random
        self._number = 0
        self._replacing = False
        self._pools = list(scene.warm)
        self._deeds: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (36, self.claim),
            (28, self.give_back),
            (4, self.give_back_in_the_foreground),
            (4, self.scale),
            (4, self.delete_a_warm_vm),
            (2, self.delete_a_vm_in_use),
            (4, self.say_that_it_is_pooled),
            (4, self.strip_a_label),
            (1, self.replace_a_pool),
        ]

    async def do_one(self) -> None:
        weights = [weight for weight, _ in self._deeds]
        [(_, deed)] = self._random.choices(self._deeds, weights)
        try:
            await deed()
        except ApiError as error:
            if error.status not in {404, 409, 422}:  # it went away, or is not what it was
                raise

    # ---- people with claims

    async def claim(self) -> None:
        if len(self._scene.crowd.living()) >= MOST:
            return
        self._number += 1
        [(_, wish)] = self._random.choices(WISHES, [weight for weight, _ in WISHES])
        self.done["claims"] += 1
        await self._scene.crowd.create(f"chaos-{self._number:04}", self._random.choice(self._pools), **wish)

    async def give_back(self) -> None:
        if there := self._scene.crowd.living():
            self.done["given back"] += 1
            await self._scene.crowd.delete(self._random.choice(there))

    async def give_back_in_the_foreground(self) -> None:
        if there := self._scene.crowd.living():
            self.done["in the foreground"] += 1
            await self._scene.crowd.delete(self._random.choice(there), propagation="Foreground")

    # ---- people with pools and VMs

    async def scale(self) -> None:
        self.done["scaled"] += 1
        await self._scene.scale(self._random.choice(self._pools), self._random.randint(0, 12))

    async def replace_a_pool(self) -> None:
        """Delete it and make one of the same name: claims keep their VMs, those that wait get new ones."""
        if self._replacing:
            return
        self._replacing = True
        pool = self._random.choice(self._pools)
        try:
            self.done["pools replaced"] += 1
            await self._scene.replace_pool(pool)
        finally:
            self._replacing = False

    async def delete_a_warm_vm(self) -> None:
        if vm := await self._some_vm(Mark.POOLED, "deletes"):
            self.done["warm VMs deleted"] += 1
            await self._delete(vm)

    async def delete_a_vm_in_use(self) -> None:
        """Its claim is Lost, or gets another one if it was not published yet."""
        if vm := await self._some_vm(Mark.CLAIMED, "deletes"):
            self.done["VMs in use deleted"] += 1
            await self._delete(vm)

    async def say_that_it_is_pooled(self) -> None:
        """The worst that a label can say: a VM in use offered to all. The controller must not believe it."""
        if vm := await self._some_vm(Mark.CLAIMED, "relabels"):
            self.done["relabelled"] += 1
            await self._label(vm, LABEL_STATE, Mark.POOLED.value)

    async def strip_a_label(self) -> None:
        if vm := await self._some_vm(self._random.choice(sorted(_MARKS)), "strips a label of"):
            self.done["stripped"] += 1
            await self._label(vm, self._random.choice([LABEL_STATE, LABEL_POOL_UID, LABEL_CLAIM_UID]), None)

    async def _some_vm(self, mark: str, why: str) -> Json | None:
        there = [
            vm
            for vm in await self._scene.vms()
            if vm["metadata"].get("labels", {}).get(LABEL_STATE) == mark
            and "deletionTimestamp" not in vm["metadata"]
        ]
        if not there:
            return None
        found = self._random.choice(there)
        self._scene.auditor.excuse(found["metadata"]["uid"], f"a person {why} it")
        return found

    async def _delete(self, vm: Json) -> None:
        # As it was looked at: what becomes of it in between is another story, and excused by nobody.
        meta = vm["metadata"]
        await self._scene.stage.api.delete(
            self._path(vm), uid=meta["uid"], resourceVersion=meta["resourceVersion"]
        )

    async def _label(self, vm: Json, key: str, value: str | None) -> None:
        # Of the very state that was looked at: a person's hand on another one is another story.
        meta = {"labels": {key: value}, "resourceVersion": vm["metadata"]["resourceVersion"]}
        await self._scene.stage.api.merge_patch(self._path(vm) + _PERSON, {"metadata": meta})

    def _path(self, vm: Json) -> str:
        return f"{VMS.format(self._scene.namespace)}/{vm['metadata']['name']}"


async def chaos(stage: Stage, *, seconds: float = 60.0, seed: int = 1, kill_every: float = 0.0) -> Chaos:
    """So many seconds of it, and then rest; with `kill_every` the controller dies about that often (seconds).

    Raises:
        TrialError: a leak, a stuck claim, a broken invariant, memory that grows, a controller that spins.
    """
    async with stage.scene("chaos") as scene:
        with ExitStack() as living:
            reign = Reign(scene, living, Random(seed))
            await reign.succeed()
            for pool in ("one", "two"):
                await scene.make_pool(pool, 8, at_once=10, most=60)
            await scene.at_rest()
            hands, sent = Hands(scene, Random(seed)), await requests(reign.controller)
            killing = asyncio.create_task(reign.end_every(kill_every))
            memory = await _wreak(hands, reign, seconds)
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
            ended = monotonic()
            await scene.at_rest()
            recovered, idle = monotonic() - ended, await idling(reign.controller)
            used, lives = await requests(reign.controller), scene.crowd.lives.values()
            found = Chaos(
                seconds,
                dict(hands.done),
                len(lives),
                sum(each.served for each in lives),
                reign.deaths,
                (sum(used.values()) - sum(sent.values())) / len(lives),
                memory[len(memory) // 3],
                memory[-1],
                recovered,
                idle,
            )
            stage.say(found)
            _judge(found, reign.controller)
            await scene.crowd.delete_all()
            await scene.at_rest()
            return found


class Reign:
    """One controller after another."""

    def __init__(self, scene: Scene, living: ExitStack, random: Random) -> None:
        self.deaths = 0
        self._scene = scene
        self._living = living
        self._random = random
        self.controller = living.enter_context(scene.controller())

    async def succeed(self) -> None:
        await self._scene.ready(self.controller)

    async def end_every(self, seconds: float) -> None:
        """Kill whoever leads, again and again, at random times after the lease was taken."""
        while seconds:
            await asyncio.sleep(seconds * self._random.uniform(0.2, 1.8))
            self.controller.kill()
            self.deaths += 1
            self.controller = self._living.enter_context(self._scene.controller())
            await self.succeed()


async def _wreak(hands: Hands, reign: Reign, seconds: float) -> list[float]:
    """Do deeds at RATE; the controller's memory about once a second."""
    memory: list[float] = []
    deeds: set[asyncio.Task[None]] = set()
    end = monotonic() + seconds
    while (now := monotonic()) < end:
        deeds.add(asyncio.create_task(hands.do_one()))
        if len(memory) <= seconds - (end - now):
            memory.append(resident(reign.controller))
        await asyncio.sleep(1 / RATE)
        for deed in {each for each in deeds if each.done()}:
            deeds.discard(deed)
            deed.result()
    await asyncio.gather(*deeds)
    return [*memory, resident(reign.controller)]


def _judge(found: Chaos, controller: Controller) -> None:
    if found.idle.spins:
        raise TrialError(f"the controller spins at rest: {found.idle}")
    if found.memory_end > GROWTH * found.memory_third and not found.deaths:
        raise TrialError(f"its memory grew from {found.memory_third:.0f} to {found.memory_end:.0f} MiB")
    if said := errors_in(controller):
        raise TrialError(f"the controller logged errors: {said[:3]}")
