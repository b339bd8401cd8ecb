"""How long claims wait when the leader dies or is stopped while another one stands by.

Measured as a user would: from the signal to the leader until a claim made right after it is Bound. All with
the lease as it is by default, since its length is most of the answer.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic

from tests.support.controller import Controller
from tests.trials.stage import Scene, Stage, TrialError, errors_in, resident

DEFAULT_LEASE = "15s"
AFTER_KILL, AFTER_STOP = 20.0, 2.0  # seconds that are promised
_PATIENCE = 60.0


@dataclass(frozen=True)
class TakeOver:
    """One round. `bound` is in seconds from the signal; memory in MiB, before the take-over."""

    how: str
    bound: float
    ready: float
    leader_mib: float
    standby_mib: float


async def takeovers(stage: Stage, *, kills: int, stops: int, warm: int = 4) -> list[TakeOver]:
    """Stop leaders and kill leaders; each time the one that stood by leads, and another one stands by.

    Raises:
        TrialError: an invariant was broken, something is left over, or a controller logged an error.
    """
    found: list[TakeOver] = []
    async with stage.scene("takeover") as scene:
        with ExitStack() as living:
            leader = living.enter_context(scene.controller(duration=DEFAULT_LEASE))
            await scene.ready(leader)
            await scene.make_pool("pool", warm)
            for number, how in enumerate([*["stopped"] * stops, *["killed"] * kills]):
                standby = living.enter_context(scene.controller(duration=DEFAULT_LEASE))
                await asyncio.to_thread(standby.wait_until_says, "waiting for the lease")
                await until_ready(standby)
                await scene.at_rest()
                found.append(await _round(scene, leader, standby, how, f"claim-{number}"))
                stage.say(found[-1])
                leader = standby
            await scene.at_rest()
            if said := errors_in(leader):
                raise TrialError(f"the controller logged errors: {said[:3]}")
            await scene.crowd.delete_all()
    return found


async def _round(scene: Scene, leader: Controller, standby: Controller, how: str, claim: str) -> TakeOver:
    memory = resident(leader), resident(standby)
    began = monotonic()
    if how == "killed":
        leader.process.kill()
    else:
        leader.process.terminate()
    await scene.crowd.create(claim, "pool")
    await scene.ready(standby, _PATIENCE)
    ready = monotonic() - began
    [life] = await scene.crowd.served([claim], _PATIENCE)
    code = await asyncio.to_thread(leader.process.wait, 30)
    if how == "stopped" and code != 0:
        raise TrialError(f"the leader that was stopped ended with {code}: {leader.said[-1500:]}")
    return TakeOver(how, life.bound - began, ready, *memory)


async def until_ready(controller: Controller) -> None:
    """Until its probe says so: a standby that has listed everything."""
    deadline = monotonic() + _PATIENCE
    while not await asyncio.to_thread(_is_ready, controller):
        if monotonic() > deadline:
            raise TrialError(f"never ready: {controller.said[-1500:]}")
        await asyncio.sleep(0.05)


def _is_ready(controller: Controller) -> bool:
    try:
        with urllib.request.urlopen(f"http://{controller.listen}/readyz", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
