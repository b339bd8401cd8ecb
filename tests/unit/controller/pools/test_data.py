"""When the data of a template is looked at, how it is asked for, and what becomes of a refusal."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from controller.claims.desk import Desk
from controller.claims.loop import Namespace
from controller.kube import errors
from controller.pools.data import AGAIN, METADATA_ONLY, DataWatch
from crds.pool import VirtualMachinePool
from tests.support.builders import NOW, make_pool, make_template

INTERVAL = 300.0
PATH = "/api/v1/namespaces/ns/secrets/init"
FORBIDDEN = errors.Forbidden(403, message='secrets "init" is forbidden: User "x" cannot get it')


class Server:
    """Answers reads of Secrets and ConfigMaps; `answers` by path are a version or an error."""

    def __init__(self) -> None:
        self.answers: dict[str, str | Exception] = {PATH: "1"}
        self.asked: list[tuple[str, str, str]] = []

    async def get(self, path: str, *, step: str, accept: str) -> bytes:
        self.asked.append((path, step, accept))
        await asyncio.sleep(0)
        answer = self.answers.get(path, errors.NotFound(404))
        if isinstance(answer, Exception):
            raise answer
        return orjson.dumps({"metadata": {"uid": "a", "resourceVersion": answer}})


class World:
    """A watch at work: `look` moves the clock and waits until what was asked is answered."""

    def __init__(self, pool: VirtualMachinePool) -> None:
        self.server, self.desk, self.now, self.woken = Server(), Desk(1), NOW, 0
        space = SimpleNamespace(client=self.server, name="ns", desk=self.desk, now=lambda: self.now)
        self.watch = DataWatch(cast("Namespace", space), pool, INTERVAL, self.wake)

    def wake(self) -> None:
        self.woken += 1

    async def look(self, pool: VirtualMachinePool, *, after: float = 0.0) -> int:
        """How many objects were asked for."""
        before, self.now = len(self.server.asked), self.now + after
        self.watch.look(pool)
        await asyncio.gather(*self.desk.tasks)
        return len(self.server.asked) - before


def pool(*secrets: str, generation: int = 1, **fields: Any) -> VirtualMachinePool:
    volumes = [{"name": name, "cloudInitNoCloud": {"secretRef": {"name": name}}} for name in secrets]
    made = make_pool(template=make_template(volumes=volumes), **fields)
    return made.model_copy(update={"metadata": made.metadata.model_copy(update={"generation": generation})})


async def test_a_new_pools_data_is_looked_at_at_once_by_name_and_without_what_is_in_it() -> None:
    world = World(pool("init"))
    assert await world.look(pool("init")) == 1
    assert world.server.asked == [(PATH, "pool/reference", METADATA_ONLY)]
    assert "PartialObjectMetadata;" in METADATA_ONLY
    assert world.watch.data is not None
    assert world.watch.data.objects[0].resource_version == "1"
    assert world.woken == 1


async def test_it_is_looked_at_again_when_the_interval_is_over_and_not_before() -> None:
    world = World(pool("init"))
    await world.look(pool("init"))
    assert await world.look(pool("init"), after=0.8 * INTERVAL) == 0
    assert await world.look(pool("init"), after=0.4 * INTERVAL) == 1


async def test_nobody_is_woken_when_nothing_is_new() -> None:
    world = World(pool("init"))
    await world.look(pool("init"))
    await world.look(pool("init"), after=2 * INTERVAL)
    assert world.woken == 1


async def test_a_changed_pool_is_looked_at_at_once() -> None:
    world = World(pool("init"))
    await world.look(pool("init"))
    assert await world.look(pool("init", "more", generation=2)) == 2


async def test_one_look_at_a_time_and_none_is_forgotten() -> None:
    world = World(pool("init"))
    world.watch.look(pool("init"))
    world.watch.look(pool("more", generation=2))
    assert len(world.desk.tasks) == 1
    await asyncio.gather(*world.desk.tasks)
    assert await world.look(pool("more", generation=2)) == 1
    assert world.watch.data is not None
    assert world.watch.data.missing == ("Secret more",)


async def test_a_change_counts_from_when_the_looking_began() -> None:
    world = World(pool("init"))
    await world.look(pool("init"))
    world.server.answers[PATH] = "2"
    await world.look(pool("init"), after=2 * INTERVAL)
    assert world.watch.data is not None
    changed_at = world.watch.data.objects[0].changed_at
    assert changed_at is not None
    assert changed_at.timestamp() == NOW + 2 * INTERVAL
    assert world.woken == 2


async def test_a_template_without_references_asks_for_nothing_and_is_never_due() -> None:
    world = World(pool())
    assert await world.look(pool()) == 0
    assert await world.look(pool(), after=9 * INTERVAL) == 0
    assert world.watch.due == float("inf")
    assert world.watch.data is not None


async def test_a_missing_right_is_said_in_our_words_and_tried_again_soon() -> None:
    world = World(pool("init"))
    world.server.answers[PATH] = FORBIDDEN
    await world.look(pool("init"))
    assert world.watch.data is not None
    assert "may not read Secret init" in world.watch.data.unread
    assert "readReferencedData" in world.watch.data.unread
    world.server.answers[PATH] = "1"
    assert await world.look(pool("init"), after=AGAIN + 1) == 1
    assert world.watch.data.unread == ""


@pytest.mark.parametrize("error", [errors.UnknownOutcome(500), errors.TooManyRequests(429)])
async def test_a_server_in_trouble_is_no_change(error: errors.ApiError) -> None:
    world = World(pool("init"))
    await world.look(pool("init"))
    world.server.answers[PATH] = error
    await world.look(pool("init"), after=2 * INTERVAL)
    assert world.watch.data is not None
    assert world.watch.data.objects[0].changed_at is None
    assert "could not be read" in world.watch.data.unread


async def test_a_new_leader_spreads_its_first_looks_and_knows_what_the_last_one_saw() -> None:
    seen = {"kind": "Secret", "name": "init", "uid": "a", "resourceVersion": "0"}
    known = pool("init", status={"observedGeneration": 1, "referencedData": [seen]})
    worlds = [World(known) for _ in range(50)]
    assert {NOW <= world.watch.due <= NOW + INTERVAL / 10 for world in worlds} == {True}
    assert len({world.watch.due for world in worlds}) > 25
    [world, *_] = worlds
    assert await world.look(known, after=INTERVAL / 10) == 1
    assert world.watch.data is not None
    assert world.watch.data.objects[0].changed_at is not None
