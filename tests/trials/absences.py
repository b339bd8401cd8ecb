"""Leaders that freeze past their lease and wake up, rivals that both lead, and an API server that dies.

After each of them the auditor must be clean and the books must balance.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from random import Random
from time import monotonic

import psutil

from crds.durations import seconds
from tests.support.controller import Controller
from tests.trials.stage import LEASE, Idling, Scene, Stage, TrialError, errors_in, idling

LATEST = 0.4  # seconds after the first claim was seen
_LOST_LEASE = 3  # the exit code of a controller that has lost its lease
_OUTAGE = (0.5, 3.0)  # seconds without an API server


@dataclass(frozen=True)
class Absence:
    """One round; times are seconds. `away` is how long the leader, or the API server, was not there."""

    after: float
    away: float
    claims: int
    served_meanwhile: int
    recovered: float
    idle: Idling


async def frozen(
    stage: Stage, *, rounds: int, claims: int = 60, warm: int = 30, seed: int = 1
) -> list[Absence]:
    """A leader is stopped in the middle of a burst, another one takes over, and the first one wakes up.

    Raises:
        TrialError: the woken one did not end, an invariant was broken, or something is left over.
    """
    random, found = Random(seed), []
    async with stage.scene("frozen") as scene:
        with ExitStack() as living:
            leader = living.enter_context(scene.controller())
            await scene.ready(leader)
            await scene.make_pool("pool", warm)
            for number in range(rounds):
                await scene.at_rest()
                successor = living.enter_context(scene.controller())
                wanted = [f"frozen-{number}-{each:02}" for each in range(claims)]
                halves = wanted[: claims // 2], wanted[claims // 2 :]
                found.append(await _freeze(scene, leader, successor, halves, random.uniform(0.0, LATEST)))
                leader = successor
    return found


async def _freeze(
    scene: Scene, leader: Controller, successor: Controller, halves: tuple[list[str], list[str]], after: float
) -> Absence:
    coming = asyncio.create_task(scene.crowd.burst(halves[0], "pool"))
    await _first(scene, halves[0])
    await asyncio.sleep(after)
    leader.process.send_signal(signal.SIGSTOP)
    stopped = monotonic()
    await coming
    await scene.ready(successor)
    # More of them, so that the woken one meets a successor that is at work.
    coming = asyncio.create_task(scene.crowd.burst(halves[1], "pool"))
    await scene.crowd.until("somebody of the second half served", lambda: _served(scene, halves[1]) > 0)
    meanwhile = _served(scene, halves[0])
    leader.process.send_signal(signal.SIGCONT)
    woken = monotonic()
    code = await asyncio.to_thread(leader.process.wait, 30)
    if code != _LOST_LEASE:
        raise TrialError(f"the woken leader ended with {code}: {leader.said[-1500:]}")
    await coming
    await scene.crowd.served([*halves[0], *halves[1]], 120)
    return await _end(scene, successor, after, woken - stopped, meanwhile, woken)


async def rivals(stage: Stage, *, rounds: int, claims: int = 40, warm: int = 60) -> list[Absence]:
    """A second controller on another Lease serves the same burst: only the tests in the writes part the two.

    There are VMs for all: nothing comes to rest while both are there, since each makes up for what the other
    does, and what boots is removed as surplus by one or the other. So one of them is killed when all are
    served, and the other one puts everything right.

    Raises:
        TrialError: they broke an invariant, or something is left over.
    """
    found = []
    async with stage.scene("rivals") as scene:
        with ExitStack() as living:
            leader = living.enter_context(scene.controller())
            await scene.ready(leader)
            await scene.make_pool("pool", warm)
            for number in range(rounds):
                await scene.at_rest()
                rival = living.enter_context(scene.controller(lease=f"{scene.lease}-{number}"))
                await scene.ready(rival)
                wanted = [f"rival-{number}-{each:02}" for each in range(claims)]
                await scene.crowd.burst(wanted, "pool")
                await scene.crowd.served(wanted, 120)
                doomed, leader = (leader, rival) if number % 2 else (rival, leader)
                doomed.kill()
                if said := errors_in(doomed):
                    raise TrialError(f"a rival logged errors: {said[:3]}")
                found.append(await _end(scene, leader, 0.0, 0.0, claims, monotonic()))
    return found


async def outages(
    stage: Stage, *, rounds: int, claims: int = 60, warm: int = 30, seed: int = 1
) -> list[Absence]:
    """The API server is killed in the middle of a burst and started again a moment later.

    A new API server can't continue the auditor's watches: what happened around the death is not judged, only
    what came of it.

    Raises:
        TrialError: the controller ended, an invariant was broken, or something is left over.
    """
    random, found = Random(seed), []
    async with stage.scene("outage") as scene:
        with ExitStack() as living:
            controller = living.enter_context(scene.controller())
            await scene.ready(controller)
            await scene.make_pool("pool", warm)
            for number in range(rounds):
                await scene.at_rest(gaps=True)
                wanted = [f"outage-{number}-{each:02}" for each in range(claims)]
                coming = asyncio.create_task(scene.crowd.burst(wanted, "pool"))
                after, away = random.uniform(0.0, LATEST), random.uniform(*_OUTAGE)
                await _first(scene, wanted)
                await asyncio.sleep(after)
                again = kill_api_server(stage)
                killed, served = monotonic(), _served(scene, wanted)
                await asyncio.sleep(away)
                stage.plane.processes.start("apiserver", again)
                controller = await _survivor(scene, living, controller)
                await coming
                await scene.crowd.served(wanted, 120)
                found.append(await _end(scene, controller, after, away, served, killed, gaps=True))
    return found


async def _survivor(scene: Scene, living: ExitStack, controller: Controller) -> Controller:
    """The controller; a new one if it could not renew its lease in time and ended, as it should then."""
    with suppress(subprocess.TimeoutExpired):
        code = await asyncio.to_thread(controller.process.wait, seconds(LEASE) + 2)
        if code != _LOST_LEASE:
            raise TrialError(f"the controller ended with {code}: {controller.said[-1500:]}")
        controller = living.enter_context(scene.controller())
        await scene.ready(controller)
    return controller


async def _first(scene: Scene, wanted: list[str]) -> None:
    await scene.crowd.until("the first claim there", lambda: any(map(scene.crowd.lives.get, wanted)))


def _served(scene: Scene, wanted: list[str]) -> int:
    return sum(each.served for each in scene.crowd.of(wanted))


async def _end(
    scene: Scene,
    controller: Controller,
    after: float,
    away: float,
    served: int,
    began: float,
    *,
    gaps: bool = False,
) -> Absence:
    """Come to rest, give everything back, and say how it went."""
    await scene.at_rest(gaps=gaps)
    recovered, idle = monotonic() - began, await idling(controller)
    if idle.spins:
        raise TrialError(f"the controller spins at rest: {idle}")
    if said := errors_in(controller):
        raise TrialError(f"the controller logged errors: {said[:3]}")
    claims = len(scene.crowd.living())
    await scene.crowd.delete_all()
    found = Absence(after, away, claims, served, recovered, idle)
    scene.stage.say(found)
    return found


def kill_api_server(stage: Stage) -> list[str]:
    """Kill it and return the command line by which it is started again."""
    [server] = [each for each in stage.plane.processes.started if each.name == "apiserver"]
    command = psutil.Process(server.pid).cmdline()
    server.signal(signal.SIGKILL)
    stage.plane.processes.stop("apiserver")
    return command
