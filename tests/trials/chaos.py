"""Everything at once, for a while: claims of all sorts come and go, pools are scaled, people meddle with VMs.

What people do to a VM by hand is excused before it is done; what the controller makes of it is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from time import monotonic

from simulator.api import ApiError
from tests.support.controller import Controller
from tests.trials.hands import GONE_OR_CHANGED, Hands
from tests.trials.stage import (
    Idling,
    Scene,
    Stage,
    TrialError,
    errors_in,
    idling,
    requests,
    resident,
)

RATE = 12.0  # deeds a second
GROWTH = 1.25  # times the memory after the first third


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


class Mob:
    """One act after another, each by chance."""

    def __init__(self, hands: Hands, random: Random) -> None:
        self.hands = hands
        self._random = random
        self._acts: list[tuple[int, Callable[[Random], Awaitable[None]]]] = [
            (36, hands.claim),
            (28, hands.give_back),
            (4, hands.give_back_in_the_foreground),
            (4, hands.scale),
            (4, hands.delete_a_warm_vm),
            (2, hands.delete_a_vm_in_use),
            (4, hands.say_that_it_is_pooled),
            (4, hands.strip_a_label),
            (1, hands.replace_a_pool),
        ]

    async def do_one(self) -> None:
        [(_, act)] = self._random.choices(self._acts, [weight for weight, _ in self._acts])
        try:
            await act(self._random)
        except ApiError as error:
            if error.status not in GONE_OR_CHANGED:
                raise


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
            mob, sent = Mob(Hands(scene), Random(seed)), await requests(reign.controller)
            killing = asyncio.create_task(reign.end_every(kill_every))
            memory = await _wreak(mob, reign, seconds)
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
            ended = monotonic()
            await scene.at_rest()
            recovered, idle = monotonic() - ended, await idling(reign.controller)
            used, lives = await requests(reign.controller), scene.crowd.lives.values()
            found = Chaos(
                seconds,
                dict(mob.hands.done),
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


async def _wreak(mob: Mob, reign: Reign, seconds: float) -> list[float]:
    """Do deeds at RATE; the controller's memory about once a second."""
    memory: list[float] = []
    deeds: set[asyncio.Task[None]] = set()
    end = monotonic() + seconds
    while (now := monotonic()) < end:
        deeds.add(asyncio.create_task(mob.do_one()))
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
