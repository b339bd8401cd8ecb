"""Everything that the watches of one namespace's VMs and VMIs show, in order, for tests of the stand-in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from simulator.api import Api, ApiError, Event, Listing, load_cluster

Json = dict[str, Any]
VMS, VMIS = "virtualmachines", "virtualmachineinstances"


@dataclass(frozen=True)
class Seen:
    """One event: ADDED, MODIFIED or DELETED."""

    kind: str
    type: str
    object: Json

    @property
    def version(self) -> int:
        return int(self.object["metadata"]["resourceVersion"])

    @property
    def shown(self) -> str:
        """The VM's STATUS or the VMI's phase; empty without one."""
        status = self.object.get("status") or {}
        return str(status.get("printableStatus") or status.get("phase") or "")

    @property
    def ready(self) -> bool:
        return condition(self.object, "Ready").get("status") == "True"


@dataclass
class VMWatch:
    """Makes VMs in one namespace and sees what becomes of them."""

    api: Api
    namespace: str
    events: list[Seen] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def path(self, kind: str, name: str = "") -> str:
        place = f"/apis/kubevirt.io/v1/namespaces/{self.namespace}/{kind}"
        return f"{place}/{name}" if name else place

    async def follow(self, kind: str, listed: asyncio.Event) -> None:
        async for each in self.api.follow(self.path(kind)):
            if isinstance(each, Listing):
                listed.set()
            else:
                assert isinstance(each, Event)
                self.events.append(Seen(kind, each.type, orjson.loads(memoryview(each.object))))
                self._news.set()

    async def create(self, name: str = "vm", *, spec: Json | None = None, **behaviour: str) -> Json:
        """A small VM that behaves so: `boot="1s"`, `crash_after="1s"`; spec goes on top of its own."""
        asked = {f"simulator.bullpen.dev/{key.replace('_', '-')}": value for key, value in behaviour.items()}
        guest = {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}
        template = {"metadata": {"labels": {"of": "template"}, "annotations": asked}, "spec": guest}
        manifest = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachine",
            "metadata": {"name": name, "labels": {"of": "vm"}, "annotations": {"of": "vm"}},
            "spec": {"runStrategy": "Always", "template": template, **(spec or {})},
        }
        made: Json = orjson.loads(await self.api.post(self.path(VMS), manifest))
        return made

    async def patch(self, change: Json, name: str = "vm", kind: str = VMS) -> Json:
        changed: Json = orjson.loads(await self.api.merge_patch(self.path(kind, name), change))
        return changed

    async def get(self, kind: str, name: str = "vm") -> Json | None:
        try:
            found: Json = orjson.loads(await self.api.get(self.path(kind, name)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    def of(self, kind: str, type_: str = "") -> list[Seen]:
        return [each for each in self.events if each.kind == kind and type_ in {"", each.type}]

    async def until(self, what: str, fits: Callable[[list[Seen]], Any], seconds: float = 30) -> None:
        """Wait until the events so far fit."""
        try:
            async with asyncio.timeout(seconds):
                while not fits(self.events):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            last = [(each.kind, each.type, each.shown, each.ready) for each in self.events[-12:]]
            raise AssertionError(f"not {what} within {seconds:g} s; last seen: {last}") from None

    async def until_ready(self, kind: str = VMS, count: int = 1) -> Json:
        """The object once it is Ready; count > 1 for one that was Ready under another uid before."""

        def uids(events: list[Seen]) -> set[str]:
            return {e.object["metadata"]["uid"] for e in events if e.kind == kind and e.ready}

        await self.until(f"{count} Ready {kind}", lambda events: len(uids(events)) >= count)
        found = next(each.object for each in reversed(self.events) if each.kind == kind and each.ready)
        await self.level()
        return found

    async def until_shown(self, status: str) -> Json:
        """The VM once it shows this status."""
        await self.until(
            f"a VM that is {status}", lambda events: any(e.kind == VMS and e.shown == status for e in events)
        )
        return next(
            each.object for each in reversed(self.events) if each.kind == VMS and each.shown == status
        )

    async def until_gone(self, kind: str = VMS) -> None:
        await self.until(
            f"gone ({kind})", lambda events: any(e.kind == kind and e.type == "DELETED" for e in events)
        )
        await self.level()

    async def level(self) -> None:
        """Wait until both watches have shown what the API server has by now: one may be behind the other."""
        known = self._last()
        there: dict[tuple[str, str], int] = {}
        for kind in (VMS, VMIS):
            for item in (await self.api.list(self.path(kind))).items:
                meta = orjson.loads(bytes(item))["metadata"]
                there[kind, meta["uid"]] = int(meta["resourceVersion"])

        def caught_up(_: list[Seen]) -> bool:
            last = self._last()
            seen = all(key in last and last[key].version >= version for key, version in there.items())
            return seen and all(last[key].type == "DELETED" for key in known.keys() - there.keys())

        await self.until("both watches level", caught_up)

    def _last(self) -> dict[tuple[str, str], Seen]:
        return {(each.kind, each.object["metadata"]["uid"]): each for each in self.events}


def condition(obj: Json, kind: str) -> Json:
    found = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in found if each["type"] == kind), {})


@contextlib.asynccontextmanager
async def watching(kubeconfig: Path, namespace: str) -> AsyncIterator[VMWatch]:
    async with Api(load_cluster(kubeconfig)) as api:
        watch = VMWatch(api, namespace)
        listed = {kind: asyncio.Event() for kind in (VMS, VMIS)}
        tasks = [asyncio.create_task(watch.follow(kind, event)) for kind, event in listed.items()]
        try:
            for event in listed.values():
                await asyncio.wait_for(event.wait(), 10)
            yield watch
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
