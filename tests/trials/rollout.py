"""Roll-outs on a real control plane: at rest, under a stream of claims, with the controller killed amid one.

What is measured is the fewest VMs that were ready at any instant, in the order of etcd. Where nobody claims,
they must never be fewer than the floor; under load claims may take more, and then it is only told.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from time import monotonic
from typing import Any

import orjson

from crds.names import API_VERSION, POOLS
from crds.ratios import at_least
from tests.support.manifests import pool_manifest
from tests.support.site import condition, guest, vm_template
from tests.support.vm_watching import VMWatch, watching
from tests.support.warm_watch import Instant, WarmWatch
from tests.trials.stage import BOOT, Scene, Stage, TrialError

Json = dict[str, Any]
SHARE = "80%"
_PATIENCE = 120.0  # seconds that a roll-out may take
_STAY = 1.5  # seconds for which a claim keeps its VM


@dataclass(frozen=True)
class Round:
    """One roll-out. `waited` is the longest that a claim waited meanwhile; times are seconds."""

    what: str
    warm: int
    floor: int
    lowest: int
    replaced: int
    claims: int
    waited: float
    took: float


async def rollouts(
    stage: Stage, *, warm: int = 20, surge: int = 4, rate: float = 2.0, seed: int = 1
) -> list[Round]:
    """Three roll-outs, one after another, with a fifth of the pool as room.

    Raises:
        TrialError: fewer were ready than the floor though nobody claimed any, a claim was not served, or
            something is left over.
    """
    random = Random(seed)
    async with stage.scene("rollout") as scene, watching(stage.kubeconfig, scene.namespace) as vms:
        with ExitStack() as living:
            controller = living.enter_context(scene.controller())
            await scene.ready(controller)
            await _make_pool(scene, warm, surge)
            await scene.at_rest()
            found = [await _round(scene, vms, "at rest", 1, warm)]
            coming = asyncio.create_task(_stream(scene, rate, random))
            try:
                found.append(await _round(scene, vms, "under load", 2, warm, coming))
            finally:
                coming.cancel()
            await scene.at_rest()
            killed = asyncio.create_task(_killed(scene, living, controller, vms))
            found.append(await _round(scene, vms, "controller killed", 3, warm, killed))
            await scene.at_rest()
    for each in found:
        if each.what != "under load" and each.lowest < each.floor:
            raise TrialError(f"fewer ready than the floor of {each.floor}: {each}")
    return found


async def _round(
    scene: Scene, vms: VMWatch, what: str, number: int, warm: int, beside: asyncio.Task[Any] | None = None
) -> Round:
    """Change the template, wait until it is through, end what goes on beside it, and say how it went."""
    if what == "under load":
        await scene.crowd.until("the first claims served", lambda: _served(scene) >= 3)
    watch, began = WarmWatch(vms), monotonic()
    watch.begin(await _change(scene, number))
    await _rolled_out(scene, number)
    took = monotonic() - began
    if beside is not None:
        if what == "under load":
            beside.cancel()
        await asyncio.wait({beside})
        if not beside.cancelled():
            beside.result()
    names = [life.name for life in scene.crowd.lives.values() if life.added >= began] if beside else []
    waits = [life.waited for life in await scene.crowd.served(names)]
    await scene.crowd.delete_all()
    judged = watch.judged()
    lowest = min(each.ready for each in judged)
    found = Round(
        what,
        warm,
        at_least(SHARE, warm),
        lowest,
        _replaced(judged),
        len(names),
        max(waits, default=0.0),
        took,
    )
    scene.stage.say(found)
    return found


def _replaced(judged: list[Instant]) -> int:
    return judged[-1].removed - judged[0].removed


async def _make_pool(scene: Scene, warm: int, surge: int) -> None:
    limits = {"maxReplicas": 10 * warm, "maxConcurrentCreations": 2 * warm, "maxConcurrentDeletions": warm}
    strategy = {"type": "RollingUpdate", "maxSurge": surge, "warmFloor": SHARE}
    await scene.stage.api.post(
        f"/apis/{API_VERSION}/namespaces/{scene.namespace}/{POOLS}",
        pool_manifest(
            "pool",
            template=vm_template(boot=BOOT),
            warm={"replicas": warm},
            limits=limits,
            updateStrategy=strategy,
        ),
    )
    scene.warm["pool"] = warm


async def _change(scene: Scene, number: int) -> str:
    template = vm_template(guest_spec=guest(terminationGracePeriodSeconds=number), boot=BOOT)
    answer = await scene.stage.api.merge_patch(_path(scene), {"spec": {"template": template}})
    return str(_decoded(answer)["metadata"]["resourceVersion"])


async def _rolled_out(scene: Scene, number: int) -> None:
    deadline = monotonic() + _PATIENCE
    while True:
        pool = _decoded(await scene.stage.api.get(_path(scene)))
        said = condition(pool, "RolledOut")
        seen = said.get("observedGeneration") == pool["metadata"]["generation"]
        if seen and said["status"] == "True":
            return
        if monotonic() > deadline:
            raise TrialError(f"roll-out {number} was not through in {_PATIENCE:g} s: {said}")
        await asyncio.sleep(0.05)


async def _stream(scene: Scene, rate: float, random: Random) -> None:
    """Claims at this rate a second until it is cancelled; each is given back a moment later."""
    number = 0
    async with asyncio.TaskGroup() as people:
        while True:
            number += 1
            people.create_task(_visit(scene, f"visitor-{number:04}"))
            await asyncio.sleep(random.expovariate(rate))


async def _visit(scene: Scene, name: str) -> None:
    await scene.crowd.create(name, "pool")
    await scene.crowd.served([name], _PATIENCE)
    await asyncio.sleep(_STAY)
    await scene.crowd.delete(name)


async def _killed(scene: Scene, living: ExitStack, controller: Any, vms: VMWatch) -> None:
    """Kill the controller when the roll-out is under way, and start another one."""
    before = WarmWatch(vms).instants()[-1].removed
    await scene.crowd.until("some VMs replaced", lambda: WarmWatch(vms).instants()[-1].removed >= before + 3)
    controller.kill()
    await scene.ready(living.enter_context(scene.controller()))


def _served(scene: Scene) -> int:
    return sum(bool(life.served) for life in scene.crowd.lives.values())


def _path(scene: Scene) -> str:
    return f"/apis/{API_VERSION}/namespaces/{scene.namespace}/{POOLS}/pool"


def _decoded(answer: bytes) -> Json:
    found: Json = orjson.loads(answer)
    return found
