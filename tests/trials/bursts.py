"""Many claims at once on a few warm VMs, and claims one after another: nobody is overtaken."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.support.controller import Controller
from tests.trials.fairness import Life, overtaken
from tests.trials.stage import Idling, Scene, Stage, TrialError, errors_in, idling, requests

PATIENCE = 1.0  # seconds by which somebody may be overtaken: assignments are in order, executions overlap
_SHARE = 1 / 8  # of the whole burst, where a busy machine draws it out to more than eight seconds


@dataclass(frozen=True)
class Burst:
    """Times are seconds since the first claim was seen; `overtaken` is the worst case."""

    claims: int
    first: float
    last_of_warm: float
    last: float
    overtaken: float
    overtakings: int
    requests_per_claim: float
    idle: Idling


async def burst(scene: Scene, controller: Controller, number: int, *, claims: int, warm: int) -> Burst:
    """So many claims at once on a pool with `warm` VMs that are warm; at the end all are given back.

    Raises:
        TrialError: somebody was overtaken by more than PATIENCE, or something is wrong at rest.
    """
    await scene.at_rest()
    sent = await requests(controller)
    wanted = [f"burst-{number}-{each:03}" for each in range(claims)]
    await scene.crowd.burst(wanted, "pool")
    lives = await scene.crowd.served(wanted, 120)
    await scene.at_rest()
    used = await requests(controller)
    idle = await idling(controller)
    await scene.crowd.delete_all()
    unfair = overtaken(lives)
    found = _burst(lives, warm, sum(used.values()) - sum(sent.values()), idle)
    patience = max(PATIENCE, _SHARE * found.last)
    if found.overtaken > patience:
        raise TrialError(f"overtaken by more than {patience:.1f} s: {unfair[:5]}")
    _innocent(controller, idle)
    scene.stage.say(found)
    return found


def _burst(lives: list[Life], warm: int, sent: float, idle: Idling) -> Burst:
    began = min(each.added for each in lives)
    times = sorted(each.bound - began for each in lives)
    unfair = overtaken(lives)
    worst = max((each.seconds for each in unfair), default=0.0)
    return Burst(
        len(lives), times[0], times[warm - 1], times[-1], worst, len(unfair), sent / len(lives), idle
    )


async def bursts(stage: Stage, *, times: int, claims: int = 200, warm: int = 50) -> list[Burst]:
    """The same burst several times, on one controller."""
    async with stage.scene("burst") as scene:
        with scene.controller() as controller:
            await scene.ready(controller)
            await scene.make_pool("pool", warm)
            return [await burst(scene, controller, each, claims=claims, warm=warm) for each in range(times)]


@dataclass(frozen=True)
class Line:
    """Claims one after another; waits in seconds."""

    claims: int
    apart: float
    warm: int
    wait_first: float
    wait_last: float


async def line(stage: Stage, *, claims: int = 20, apart: float = 1.0, warm: int = 2) -> Line:
    """Claims so far apart, faster than VMs boot: they are served in the order in which they came.

    Raises:
        TrialError: they were not.
    """
    async with stage.scene("line") as scene:
        with scene.controller() as controller:
            await scene.ready(controller)
            # Slower to boot than the claims come, and one at a time, so that a line forms.
            await scene.make_pool("pool", warm, at_once=1, boot=f"{round(1500 * apart)}ms")
            await scene.at_rest()
            wanted = [f"line-{each:02}" for each in range(claims)]
            for name in wanted:
                await scene.crowd.create(name, "pool")
                await asyncio.sleep(apart)
            lives = await scene.crowd.served(wanted, 60 + 3 * claims * apart)
            await scene.at_rest()
            served = [each.name for each in sorted(lives, key=lambda each: each.service)]
            if served != wanted:
                raise TrialError(f"not served in the order of arrival: {served}")
            _innocent(controller, await idling(controller))
            found = Line(claims, apart, warm, lives[0].waited, lives[-1].waited)
            stage.say(found)
            return found


def _innocent(controller: Controller, idle: Idling) -> None:
    if idle.spins:
        raise TrialError(f"the controller spins at rest: {idle}")
    if said := errors_in(controller):
        raise TrialError(f"the controller logged errors: {said[:3]}")
