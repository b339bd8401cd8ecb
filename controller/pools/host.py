"""Hosts the pools' loops: one task for each pool that is there. Told of pools by kopf's thin handlers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from controller.claims.patches import add, test, timestamp
from controller.claims.protocol import StepName
from controller.claims.records import PoolRecord
from controller.claims.world import World
from controller.kube import errors
from controller.kube.client import Priority
from controller.kube.paths import collection
from controller.pools.loop import RESYNC, PoolLoop
from controller.pools.report import POOL_PATH, conceal
from crds.conditions import PoolCondition, PoolReason
from crds.pool import parse_pool

log = structlog.get_logger()

_LAST_WORDS = 1.0  # s that a clean stop may take to tell the pools: whoever waits for the lease waits for it
_BURIED = 1000  # UIDs of pools that are gone


@dataclass(frozen=True, slots=True)
class _Known:
    """A pool as it was last seen; `why` it can't be read, if it can't."""

    namespace: str
    name: str
    version: int
    record: PoolRecord | None
    why: str = ""


class PoolHost:
    """The loops of all pools, by UID. A standby only takes note: its loops begin with its leadership."""

    def __init__(
        self, world: World, brake_unit: float, resync: float = RESYNC, sizing: float = RESYNC
    ) -> None:
        self._world = world
        self._brake_unit = brake_unit
        self._known: dict[str, _Known] = {}
        self._resync, self._sizing = resync, sizing
        self._loops: dict[str, PoolLoop] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._buried: dict[str, None] = {}
        self._stopped = False

    def observe(self, event: str | None, body: Mapping[str, Any]) -> None:
        """A pool was listed, has changed, or is gone. A pool that can't be read gets a condition."""
        meta = body["metadata"]
        uid, version = str(meta["uid"]), int(meta["resourceVersion"])
        if self._stopped or uid in self._buried:
            return
        if event == "DELETED":
            self._gone(str(meta["namespace"]), str(meta["name"]), uid)
            return
        known = self._known.get(uid)
        if known is not None and version <= known.version:
            return
        try:
            pool = parse_pool(body)
        except ValueError as error:
            self._misfit(body, str(error), known)
            return
        space = self._world.space(pool.metadata.namespace)
        space.pool_changed = self._changed_in(space.name)
        record = space.router.pool_seen(pool)
        self._known[uid] = _Known(space.name, pool.metadata.name, version, record)
        if space.active:
            self._start(uid, record)
            self._loops[uid].wake.set()

    async def confirm(self, namespace: str = "") -> None:
        """See a namespace's pools, or all, as a consistent list shows them, wherever kopf's watch has got to.

        Raises:
            ApiError: they could not be listed.
        """
        path = collection(POOL_PATH, namespace)
        listed = orjson.loads(await self._world.client.get(path, step=StepName.POOL_READ))
        for each in listed["items"]:
            self.observe(None, each)
        there = {each["metadata"]["uid"] for each in listed["items"]}
        version = int(listed["metadata"]["resourceVersion"])
        for uid, known in list(self._known.items()):
            of_the_list = namespace in {"", known.namespace} and known.version <= version
            if of_the_list and uid not in there:
                self._gone(known.namespace, known.name, uid)

    def begin(self, namespace: str = "") -> None:
        """The lists are complete: a pool that made its VMs before would take those there are for missing."""
        for uid, known in self._known.items():
            if namespace not in {"", known.namespace}:
                continue
            if known.why:
                self._world.desk.start(self._refuse(known, uid))
            if known.record is not None:
                self._start(uid, known.record)

    async def stop(self, *, say: bool) -> None:
        """End all loops; after a clean stop the pools say that nobody watches them, if a second is enough."""
        self._stopped = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        if say and self._loops:
            said = [asyncio.create_task(loop.say_stopped()) for loop in self._loops.values()]
            _, late = await asyncio.wait(said, timeout=_LAST_WORDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _start(self, uid: str, record: PoolRecord) -> None:
        """Have its loop run, made from the status that the last leader left, not from what we saw first."""
        if uid in self._tasks:
            return
        for _, boot in record.inventory.drain_boots():
            record.boots.add(boot)  # they were counted by whoever led then
        record.tally.clear()  # likewise: the claims that there are tell what came since
        space = self._world.space(record.pool.metadata.namespace)
        loop = PoolLoop(space, record, self._brake_unit, self._resync, self._sizing)
        self._loops[uid] = loop
        self._tasks[uid] = asyncio.get_running_loop().create_task(loop.run())

    def _changed_in(self, namespace: str) -> Any:
        def changed(pool: str) -> None:
            record = self._world.space(namespace).router.pools.get(pool)
            if record is not None and (loop := self._loops.get(record.uid)) is not None:
                loop.wake.set()

        return changed

    def _gone(self, namespace: str, name: str, uid: str) -> None:
        self._world.space(namespace).router.pool_gone(name, uid)
        self._known.pop(uid, None)
        self._loops.pop(uid, None)
        self._buried[uid] = None  # kopf's watch may be behind a list of ours, and show it once more
        if len(self._buried) > _BURIED:
            del self._buried[next(iter(self._buried))]
        if (task := self._tasks.pop(uid, None)) is not None:
            task.cancel()
        if name not in self._world.space(namespace).router.pools:
            conceal(namespace, name)

    def _misfit(self, body: Mapping[str, Any], why: str, known: _Known | None) -> None:
        """Tell its claims and the pool itself, once: our own write comes back as a change."""
        meta = body["metadata"]
        namespace, name, uid = str(meta["namespace"]), str(meta["name"]), str(meta["uid"])
        self._world.space(namespace).router.pool_misfit(name, why)
        told = (body.get("status") or {}).get("conditions") or ()
        told_so = any(
            (each["reason"], each["message"]) == (PoolReason.SPEC_INVALID, why[:1024]) for each in told
        )
        seen = _Known(
            namespace,
            name,
            int(meta["resourceVersion"]),
            known.record if known else None,
            "" if told_so else why,
        )
        self._known[uid] = seen
        if told_so:
            return
        log.warning("pool can't be read", pool=name, why=why)
        if self._world.space(namespace).active:
            self._world.desk.start(self._refuse(seen, uid))

    async def _refuse(self, seen: _Known, uid: str) -> None:
        path = f"{collection(POOL_PATH, seen.namespace)}/{seen.name}/status"
        condition = {
            "type": PoolCondition.READY.value,
            "status": "False",
            "reason": PoolReason.SPEC_INVALID.value,
            "message": seen.why[:1024],
            "lastTransitionTime": timestamp(self._world.client.server_time().timestamp()),
        }
        body = [test("/metadata/uid", uid), add("/status", {"conditions": [condition]})]
        try:
            await self._world.client.json_patch(
                path, body, priority=Priority.STATUS, step=StepName.POOL_STATUS
            )
        except errors.ApiError as error:
            # Not its words: they may quote a template that can't be read, and so can't be redacted.
            why = f"{type(error).__name__} {error.status}"
            log.warning("pool status not written", pool=seen.name, error=why)
