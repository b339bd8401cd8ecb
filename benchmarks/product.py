"""The product as its user sees it: create a claim, watch it become Ready, delete it.

One watch for all claims, its events handed to whoever waits. It talks to the API server alone, never to the
controller.
"""

from __future__ import annotations

import asyncio
import secrets
from time import perf_counter
from types import TracebackType
from typing import Self

import msgspec

from benchmarks.bare import Bare
from benchmarks.objects import CLAIMS, claim
from benchmarks.workload import Served

AT_ONCE = 64  # creates in flight, and as many deletes: what a client's connections allow


class NotServedError(Exception):
    """A claim that did not become Ready in time, or a watch that ended."""


class _Meta(msgspec.Struct):
    name: str = ""


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Machine(msgspec.Struct):
    warm: bool = True


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    virtual_machines: list[_Machine] = []
    conditions: list[_Condition] = []


class _Claim(msgspec.Struct):
    metadata: _Meta
    status: _Status | None = None


class _Event(msgspec.Struct):
    type: str
    object: _Claim


_event = msgspec.json.Decoder(_Event).decode


class _Seen:
    """What the watch showed of one claim so far."""

    __slots__ = ("added", "bound", "ready", "waiter")

    def __init__(self) -> None:
        self.added = 0.0
        self.bound = 0.0
        self.ready = 0.0
        self.waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Together:
    """So many claims that are to be released only when the last of them was served, or failed."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._all = asyncio.Event()

    def arrive(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._all.set()

    async def wait(self) -> None:
        await self._all.wait()


class Product:
    """`async with Product(api, namespace, pool) as product:`; `bound` is how long a claim may wait (s)."""

    def __init__(self, api: Bare, namespace: str, pool: str, *, bound: float = 60.0) -> None:
        self.bound = bound
        self.cold = 0  # claims that were given no warm VM, or one that was not Ready when they got it
        self._api = api
        self._pool = pool
        self._path = CLAIMS.format(namespace)
        self._prefix = f"c-{secrets.token_hex(2)}"
        self._made = 0
        self._seen: dict[str, _Seen] = {}
        self._creating = asyncio.Semaphore(AT_ONCE)
        self._deleting = asyncio.Semaphore(AT_ONCE)
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        async for _, version in self._api.pages(self._path):
            last = version
        self._watching = asyncio.create_task(self._watch(last))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def serve(self, together: Together | None = None) -> Served:
        """One claim from its creation to the answer to its deletion."""
        self._made += 1
        name = f"{self._prefix}{self._made:05}"
        seen = self._seen[name] = _Seen()
        sent = perf_counter()  # before there is a connection for it: nobody's wait is left out
        try:
            async with self._creating:
                await self._api.send("POST", self._path, claim(self._pool, name))
            async with asyncio.timeout(self.bound):
                await seen.waiter
        except (TimeoutError, NotServedError) as failure:
            # What is left behind would keep the pool from coming to rest, and hide this failure behind that.
            async with self._deleting:
                await self._api.remove(f"{self._path}/{name}")
            if isinstance(failure, NotServedError):
                raise
            raise NotServedError(f"{name} was not Ready within {self.bound:.0f} s") from None
        finally:
            del self._seen[name]
            if together is not None:
                together.arrive()
        if together is not None:
            await together.wait()
        async with self._deleting:
            await self._api.remove(f"{self._path}/{name}")
        return Served(sent, seen.ready, perf_counter(), seen.added)

    async def _watch(self, version: str) -> None:
        """Tell the waiting ones; when the watch is lost, all of them at once that it is."""
        why = "the watch ended"
        try:
            async for flock in self._api.watch(self._path, version):
                now = perf_counter()
                for line in flock:
                    self._show(_event(line), now)
        except Exception as failure:  # noqa: BLE001 - whatever it was, nobody is told any more
            why = f"the watch was lost: {failure!r}"
        for seen in self._seen.values():
            if not seen.waiter.done():
                seen.waiter.set_exception(NotServedError(why))

    def _show(self, event: _Event, now: float) -> None:
        seen = self._seen.get(event.object.metadata.name)
        if seen is None:
            return
        if event.type == "ADDED":
            seen.added = now
        status = event.object.status
        if status is None or status.phase != "Bound" or seen.ready:
            return
        ready = any(each.type == "Ready" and each.status == "True" for each in status.conditions)
        if not seen.bound:
            seen.bound = now
            self.cold += not (ready and all(each.warm for each in status.virtual_machines))
        if ready:
            seen.ready = now
            if not seen.waiter.done():
                seen.waiter.set_result(None)
