"""An API server of VMs and VMIs in this process, and a clock that jumps: whole lives within milliseconds.

It has what the stand-in leans on: versions, uids, finalizers, a status subresource on VMs only, a garbage
collector, watches that lag, and, when asked, answers that get lost before or after the write was applied.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Coroutine
from random import Random
from typing import Any, cast

import msgspec
import orjson

from simulator.api import Api, ApiError, Event, Listing
from simulator.kubevirt.behaviour import Defaults
from simulator.kubevirt.hands import Hands
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.world import World

Json = dict[str, Any]
VMS, VMIS = "virtualmachines", "virtualmachineinstances"


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its clock stands still while there is something to do, and jumps to the next timer otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        inner = cast("Any", self)
        timers = [timer._when for timer in inner._scheduled if not timer.cancelled()]
        if not inner._ready and timers:
            self._now = max(self._now, min(timers))
        cast("Any", super())._run_once()


def in_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    loop = JumpingLoop()
    try:
        loop.run_until_complete(work)
    finally:
        loop.close()


class SmallCluster:
    """`loss` is the share of writes whose answer gets lost, `lag` the watches' greatest, in seconds."""

    def __init__(self, random: Random, *, loss: float = 0.0, lag: float = 0.0) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.history: list[tuple[str, str, Json]] = []
        self.random = random
        self.loss = loss
        self.lag = lag
        self._version = 100
        self._uids = 0
        self._watches: list[tuple[str, asyncio.Queue[tuple[float, Event]]]] = []

    # What the stand-in uses of Api

    async def follow(self, path: str, selector: str = "") -> AsyncIterator[Listing | Event]:  # noqa: ARG002
        plural = path.rsplit("/", 1)[1]
        queue: asyncio.Queue[tuple[float, Event]] = asyncio.Queue()
        self._watches.append((plural, queue))
        items = [_raw(obj) for (kind, _), obj in self.objects.items() if kind == plural]
        yield Listing(items, str(self._version))
        while True:
            moment, event = await queue.get()
            await asyncio.sleep(max(0.0, moment - asyncio.get_running_loop().time()))
            yield event

    async def get(self, path: str) -> bytes:
        await self._travel()
        return orjson.dumps(self._found(*_place(path)))

    async def post(self, path: str, obj: Any) -> bytes:
        if path.startswith("/api/v1/"):
            return b"{}"
        return await self._write(lambda: self.create(_place(path)[0], obj))

    async def put(self, path: str, obj: Any) -> bytes:
        def replace() -> Json:
            old = self._found(*_place(path))
            if old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                raise ApiError(409, "Conflict", "changed")
            return self._store(*_place(path), {**obj, "status": old.get("status", {})})

        return await self._write(replace)

    async def merge_patch(self, path: str, patch: Any) -> bytes:
        return await self._write(lambda: self.merge(path, patch))

    async def json_patch(self, path: str, operations: list[Json]) -> bytes:
        def change() -> Json:
            plural, name = _place(path)
            return self._store(plural, name, _patched(self._found(plural, name), operations))

        return await self._write(change)

    async def delete(self, path: str, **preconditions: str) -> bytes:
        return await self._write(lambda: self.remove(*_place(path), uid=preconditions.get("uid", "")))

    # What people and the garbage collector do, at once

    def create(self, plural: str, obj: Json) -> Json:
        key = (plural, obj["metadata"]["name"])
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", "it is there")
        self._uids += 1
        made = copy.deepcopy(obj)
        made["metadata"] |= {"uid": f"uid-{self._uids}", "namespace": "ns", "generation": 1}
        if plural == VMS:
            made.pop("status", None)
        return self._keep(key, made, "ADDED")

    def merge(self, path: str, patch: Json) -> Json:
        plural, name = _place(path)
        old = self._found(plural, name)
        if patch.get("metadata", {}).get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "another uid")
        if plural == VMS:
            own = path.endswith("/status")
            patch = {key: value for key, value in patch.items() if (key == "status") is own}
        return self._store(plural, name, _merged(old, patch))

    def remove(self, plural: str, name: str, *, uid: str = "", orphan: bool = False) -> Json:
        old = self._found(plural, name)
        if uid and old["metadata"]["uid"] != uid:
            raise ApiError(409, "Conflict", "another uid")
        new = copy.deepcopy(old)
        if "deletionTimestamp" not in new["metadata"]:
            new["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
            if orphan:
                new["metadata"]["finalizers"] = [*new["metadata"].get("finalizers", []), "orphan"]
        return self._store(plural, name, new)

    def collect(self) -> None:
        """What the garbage collector would do by now: orphan, then delete what has lost its owner."""
        for (plural, name), vm in list(self.objects.items()):
            held = vm["metadata"].get("finalizers", [])
            if plural == VMS and "orphan" in held:
                vmi = self.objects.get((VMIS, name))
                if vmi is not None:
                    self._store(VMIS, name, _merged(vmi, {"metadata": {"ownerReferences": None}}))
                rest = [each for each in held if each != "orphan"]
                self._store(VMS, name, _merged(vm, {"metadata": {"finalizers": rest}}))
        alive = {vm["metadata"]["uid"] for (plural, _), vm in self.objects.items() if plural == VMS}
        for (plural, name), vmi in list(self.objects.items()):
            owners = vmi["metadata"].get("ownerReferences", [])
            if plural == VMIS and owners and not {owner["uid"] for owner in owners} & alive:
                self.remove(VMIS, name)

    def find(self, plural: str, name: str = "vm") -> Json | None:
        return self.objects.get((plural, name))

    # How it keeps them

    async def _write(self, change: Any) -> bytes:
        await self._travel()
        if self.random.random() < self.loss / 2:
            raise ApiError(503, "Lost", "before it was applied")
        answer = orjson.dumps(change())
        if self.random.random() < self.loss / 2:
            raise ApiError(0, "Lost", "after it was applied")
        return answer

    async def _travel(self) -> None:
        await asyncio.sleep(self.random.uniform(0.0005, 0.004))

    def _found(self, plural: str, name: str) -> Json:
        if (plural, name) not in self.objects:
            raise ApiError(404, "NotFound", "it is not there")
        return self.objects[plural, name]

    def _store(self, plural: str, name: str, new: Json) -> Json:
        old = self._found(plural, name)
        if not new["metadata"].get("finalizers"):
            new["metadata"].pop("finalizers", None)  # an empty list is none, as everywhere in Kubernetes
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            del self.objects[plural, name]
            self._tell(plural, "DELETED", self._numbered(new))
            return new
        return old if new == old else self._keep((plural, name), new, "MODIFIED")

    def _keep(self, key: tuple[str, str], obj: Json, kind: str) -> Json:
        self.objects[key] = self._numbered(copy.deepcopy(obj))
        self._tell(key[0], kind, self.objects[key])
        return self.objects[key]

    def _numbered(self, obj: Json) -> Json:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        return obj

    def _tell(self, plural: str, kind: str, obj: Json) -> None:
        self.history.append((plural, kind, copy.deepcopy(obj)))
        event = Event(kind, _raw(obj))
        moment = asyncio.get_running_loop().time() + self.random.uniform(0, self.lag)
        for watched, queue in self._watches:
            if watched == plural:
                queue.put_nowait((moment, event))


class RunningStandIn:
    """The whole stand-in over a small cluster; `stop` is a kill, `start` a new process."""

    def __init__(self, cluster: SmallCluster, defaults: Defaults) -> None:
        self.cluster = cluster
        self.defaults = defaults
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        random = self.cluster.random
        api = cast("Api", self.cluster)
        hands = Hands(api, Placement(0, random), in_flight=4)
        self._task = asyncio.get_running_loop().create_task(World(api, hands, self.defaults, random).run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def vm(*, strategy: str = "Always", **behaviour: str) -> Json:
    asked = {f"simulator.bullpen.dev/{name.replace('_', '-')}": value for name, value in behaviour.items()}
    return {
        "metadata": {"name": "vm", "labels": {"by": "person"}, "annotations": {}},
        "spec": {
            "runStrategy": strategy,
            "template": {
                "metadata": {"annotations": asked},
                "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}},
            },
        },
    }


def _place(path: str) -> tuple[str, str]:
    parts = path.removesuffix("/status").split("/namespaces/ns/")[1].split("/")
    return parts[0], parts[1] if len(parts) > 1 else ""


def _raw(obj: Json) -> msgspec.Raw:
    return msgspec.Raw(orjson.dumps(obj))


def _patched(old: Json, operations: list[Json]) -> Json:
    """All that the stand-in patches so lies directly in the metadata."""
    new = copy.deepcopy(old)
    for operation in operations:
        key = operation["path"].removeprefix("/metadata/")
        match operation["op"]:
            case "test":
                if new["metadata"].get(key) != operation["value"]:
                    raise ApiError(422, "Invalid", "a test failed")
            case "remove":
                del new["metadata"][key]
            case _:
                new["metadata"][key] = operation["value"]
    return new


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    new = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = _merged(new.get(key), value)
    return new
