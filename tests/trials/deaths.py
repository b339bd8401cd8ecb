"""The controller dies in the middle of a burst, again and again, and is started anew at once."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from time import monotonic

from crds.names import LABEL_CLAIM_UID
from tests.support.controller import Controller
from tests.trials.stage import Idling, Scene, Stage, TrialError, errors_in, idling

LATEST = 0.4  # seconds after a burst's begin by which the controller is dead
TWICE = 0.25  # the share of rounds in which the next controller dies in its repairs, too
_DELETED = 0.25  # the share of claims that are given back while nobody or the next one is at work

# What claims ask for, with weights: most of them wait for ever, a few do not.
WISHES: dict[str, tuple[int, dict[str, object]]] = {
    "order": (7, {}),
    "fail": (1, {"whenEmpty": {"policy": "Fail"}}),
    "timeout": (1, {"timeout": "3s"}),
    "after": (1, {"whenEmpty": {"policy": "OrderAfter", "after": "1s"}}),
}


@dataclass(frozen=True)
class Death:
    """One round: when it died (seconds after the first claim was seen; the second time: after it was ready).

    `published` and `held`: claims bound, and VMs handed over and not published yet, when it died first.
    """

    after: tuple[float, ...]
    claims: int
    deleted: int
    bound: int
    ended: int
    published: int
    held: int
    recovered: float  # seconds from the first death until all was at rest


@dataclass
class Deaths:
    rounds: list[Death] = field(default_factory=list)
    idle: Idling | None = None


async def deaths(
    stage: Stage, *, rounds: int, claims: int = 60, warm: int = 30, seed: int = 1, twice: float = TWICE
) -> Deaths:
    """So many rounds; after each the auditor is clean and the books balance.

    Raises:
        TrialError: a leak, a stuck claim, a broken invariant; with the round's number and its seed.
    """
    random, found = Random(seed), Deaths()
    async with stage.scene("deaths") as scene:
        with ExitStack() as living:
            controller = living.enter_context(scene.controller())
            await scene.ready(controller)
            await scene.make_pool("pool", warm)
            for number in range(rounds):
                await scene.at_rest()
                try:
                    controller, death = await _round(scene, living, controller, number, claims, random, twice)
                except AssertionError as error:
                    raise TrialError(f"round {number} of seed {seed}: {error}") from error
                found.rounds.append(death)
                stage.say(death)
                await scene.crowd.delete_all()
            await scene.at_rest()
            found.idle = await idling(controller)
            if found.idle.spins:
                raise TrialError(f"the controller spins at rest: {found.idle}")
    return found


async def _round(
    scene: Scene,
    living: ExitStack,
    controller: Controller,
    number: int,
    claims: int,
    random: Random,
    twice: float,
) -> tuple[Controller, Death]:
    wanted = [f"death-{number}-{each:02}" for each in range(claims)]
    wishes = random.choices(list(WISHES), [weight for weight, _ in WISHES.values()], k=claims)
    after = [random.uniform(0.0, LATEST)]
    coming = asyncio.gather(
        *(
            scene.crowd.create(name, "pool", **WISHES[wish][1])
            for name, wish in zip(wanted, wishes, strict=True)
        )
    )
    going = asyncio.create_task(_give_back(scene, random.sample(wanted, round(claims * _DELETED)), random))
    await scene.crowd.until("the first claim there", lambda: any(map(scene.crowd.lives.get, wanted)))
    await asyncio.sleep(after[0])
    controller.kill()
    died = monotonic()
    published, held = await _left_behind(scene)
    controller = living.enter_context(scene.controller())
    if random.random() < twice:
        await scene.ready(controller)
        after.append(random.uniform(0.0, LATEST))
        await asyncio.sleep(after[1])
        controller.kill()
        controller = living.enter_context(scene.controller())
    await scene.ready(controller)
    await coming
    deleted = await going
    await scene.at_rest()
    recovered = monotonic() - died
    if said := errors_in(controller):
        raise TrialError(f"the controller logged errors: {said[:3]}")
    lives = scene.crowd.of(wanted)
    left = [each for each in lives if not each.ended]
    return controller, Death(
        tuple(after),
        claims,
        deleted,
        sum(each.phase == "Bound" for each in left),
        sum(each.phase not in {"Bound", "Pending", ""} for each in left),
        published,
        held,
        recovered,
    )


async def _left_behind(scene: Scene) -> tuple[int, int]:
    """What a dead controller leaves: claims bound, and VMs that carry a claim whose status names none."""
    claims, vms = await scene.claims(), await scene.vms()
    bound = {each["metadata"]["uid"] for each in claims if each.get("status", {}).get("phase") == "Bound"}
    carried = {vm["metadata"].get("labels", {}).get(LABEL_CLAIM_UID) for vm in vms} - {None}
    return len(bound), len(carried - bound)


async def _give_back(scene: Scene, names: list[str], random: Random) -> int:
    """Delete these claims at random times around the death and the recovery, once they are there."""

    async def give_back(name: str, after: float) -> None:
        await asyncio.sleep(after)
        await scene.crowd.until(f"{name} there", lambda: name in scene.crowd.lives)
        await scene.crowd.delete(name)

    # A third at once, a third while nobody leads, a third while the next one repairs.
    times = [random.uniform(*random.choice([(0.0, 0.5), (0.5, 5.0), (6.0, 10.0)])) for _ in names]
    await asyncio.gather(*map(give_back, names, times))
    return len(names)
