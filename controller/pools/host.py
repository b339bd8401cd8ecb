"""Hosts the pools' loops: one task for each pool that is there. Told of pools by kopf's thin handlers."""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from controller.claims.patches import add, test, timestamp
from controller.claims.protocol import StepName
from controller.claims.world import World
from controller.kube import errors
from controller.kube.client import Priority
from controller.pools.loop import PoolLoop
from crds import names
from crds.conditions import PoolCondition, PoolReason
from crds.pool import parse_pool

log = structlog.get_logger()


class PoolHost:
    """The loops of all pools, by UID."""

    def __init__(self, world: World, brake_unit: float) -> None:
        self._world = world
        self._brake_unit = brake_unit
        self._loops: dict[str, PoolLoop] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._versions: dict[str, int] = {}
        self._stopped = False

    def observe(self, event: str | None, body: Mapping[str, Any]) -> None:
        """A pool was listed, has changed, or is gone. A pool that can't be read gets a condition."""
        if self._stopped:
            return
        meta = body["metadata"]
        uid, version = str(meta["uid"]), int(meta["resourceVersion"])
        if event == "DELETED":
            self._gone(str(meta["namespace"]), str(meta["name"]), uid)
            return
        if version <= self._versions.get(uid, -1):
            return
        self._versions[uid] = version
        try:
            pool = parse_pool(body)
        except ValueError as error:
            self._misfit(body, str(error))
            return
        space = self._world.space(pool.metadata.namespace)
        space.pool_changed = self._changed_in(space.name)
        record = space.router.pool_seen(pool)
        loop = self._loops.get(uid)
        if loop is None:
            loop = self._loops[uid] = PoolLoop(space, record, self._brake_unit)
            if self._world.desk.active:
                self._start(uid, loop)
        loop.wake.set()

    def begin(self) -> None:
        """The lists are complete: a pool that made its VMs before would take those there are for missing."""
        for uid, loop in self._loops.items():
            if uid not in self._tasks:
                self._start(uid, loop)

    async def stop(self, *, say: bool) -> None:
        """End all loops; after a clean stop each pool says that nobody watches it."""
        self._stopped = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        if say:
            await asyncio.gather(*(loop.say_stopped() for loop in self._loops.values()))

    def _start(self, uid: str, loop: PoolLoop) -> None:
        self._tasks[uid] = asyncio.get_running_loop().create_task(loop.run())

    def _changed_in(self, namespace: str) -> Any:
        def changed(pool: str) -> None:
            record = self._world.space(namespace).router.pools.get(pool)
            if record is not None and (loop := self._loops.get(record.uid)) is not None:
                loop.wake.set()

        return changed

    def _gone(self, namespace: str, name: str, uid: str) -> None:
        self._world.space(namespace).router.pool_gone(name, uid)
        self._versions.pop(uid, None)
        self._loops.pop(uid, None)
        if (task := self._tasks.pop(uid, None)) is not None:
            task.cancel()

    def _misfit(self, body: Mapping[str, Any], why: str) -> None:
        """Tell its claims and the pool itself, once: our own write comes back as a change."""
        meta = body["metadata"]
        self._world.space(str(meta["namespace"])).router.pool_misfit(str(meta["name"]), why)
        told = (body.get("status") or {}).get("conditions") or ()
        if any((each["reason"], each["message"]) == (PoolReason.SPEC_INVALID, why[:1024]) for each in told):
            return
        log.warning("pool can't be read", pool=meta["name"], why=why)
        self._world.desk.start(self._refuse(meta, why))

    async def _refuse(self, meta: Mapping[str, Any], why: str) -> None:
        path = f"/apis/{names.API_VERSION}/namespaces/{meta['namespace']}/{names.POOLS}/{meta['name']}/status"
        condition = {
            "type": PoolCondition.READY.value,
            "status": "False",
            "reason": PoolReason.SPEC_INVALID.value,
            "message": why[:1024],
            "lastTransitionTime": timestamp(self._world.client.server_time().timestamp()),
        }
        body = [test("/metadata/uid", meta["uid"]), add("/status", {"conditions": [condition]})]
        try:
            await self._world.client.json_patch(
                path, body, priority=Priority.STATUS, step=StepName.POOL_STATUS
            )
        except errors.ApiError as error:
            log.warning("pool status not written", pool=meta["name"], error=str(error))
