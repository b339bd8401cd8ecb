"""One kind's list and watch, raw, as events for the judge.

It loses nothing silently: when the API server can't continue a watch, or a list shows what the watch did not,
the stream says from where to where nothing is known. It never decides whether anything is wrong.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import aiohttp
import orjson

from auditor.connection import METADATA_ONLY, Connection, Refused
from auditor.events import Change, Event, Kind, Object
from crds.names import API_VERSION, CLAIMS, KUBEVIRT_API_VERSION, POOLS

GRACE = 0.2
"""Seconds between an answer of the API server and the moment when its watches must have delivered as much."""
_EXPIRED = 410
_TOMBSTONES = 10_000  # deletions that a list under way may not know of yet
_RETRY = (0.1, 5.0)  # seconds: the first pause after a failure, the longest


@dataclass(frozen=True, slots=True)
class Source:
    """Where a kind is found; without a namespace, in all of them."""

    kind: Kind
    namespace: str | None

    @property
    def path(self) -> str:
        """The path of the collection."""
        if self.kind is Kind.NAMESPACE:
            return "/api/v1/namespaces"
        version, plural = {
            Kind.POOL: (API_VERSION, POOLS),
            Kind.CLAIM: (API_VERSION, CLAIMS),
            Kind.VM: (KUBEVIRT_API_VERSION, "virtualmachines"),
        }[self.kind]
        within = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"/apis/{version}{within}/{plural}"

    @property
    def selector(self) -> dict[str, str]:
        """What narrows the collection down."""
        if self.kind is Kind.NAMESPACE and self.namespace:
            return {"fieldSelector": f"metadata.name={self.namespace}"}
        return {}


@dataclass(slots=True)
class Stream:
    """A kind as it is now, and everything that happens to it.

    `deliver` gets the events in the order of the stream; `reached` hears how far the stream has come.
    """

    source: Source
    connection: Connection
    deliver: Callable[[Event], None]
    reached: Callable[[Kind, int], None]
    trouble: str = "not connected yet"
    """Why nothing is watched right now; empty while the watch stands."""
    _rv: int = 0
    _known: dict[str, int] = field(default_factory=dict)
    _gone: dict[str, int] = field(default_factory=dict)
    _missed: str = ""
    _connections: int = 0
    _answer: aiohttp.ClientResponse | None = None

    async def start(self) -> None:
        """Take the first list and open the watch.

        Raises:
            Refused: the API server does not serve this, or not to us.
        """
        await self._list("")
        await self._open()

    async def run(self) -> None:
        """Deliver for ever; every failure is tried again."""
        pause = _RETRY[0]
        while True:
            try:
                if self._missed:
                    await self._list(self._missed)
                    self._missed = ""
                await self._follow()
                pause = _RETRY[0]
            except Refused as error:
                if error.status == _EXPIRED:
                    self._missed = str(error)
                    continue
                self.trouble = str(error)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                self.trouble = f"{type(error).__name__}: {error}"
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, _RETRY[1])

    async def confirm(self) -> None:
        """Learn how far a silent stream has come: it has shown all that a list holds, and had time for more.

        The time is for what came and went before the list; where it was too short, the judge finds out.
        """
        connections = self._connections
        if self.trouble:
            return
        try:
            rv, here = await self._now()
        except (Refused, aiohttp.ClientError, TimeoutError):
            return
        await asyncio.sleep(GRACE)
        if not self.trouble and connections == self._connections and self._agrees(rv, here):
            self.reached(self.source.kind, rv)

    async def verify(self, patience: float) -> bool:
        """Whether the watch has shown all that a list shows, waiting up to `patience` seconds for it.

        When it has not, everything is listed anew and the judge hears of the gap.
        """
        try:
            rv, here = await self._now()
        except (Refused, aiohttp.ClientError, TimeoutError):
            return False
        for _ in range(max(1, round(patience / GRACE))):
            await asyncio.sleep(GRACE)
            if not self.trouble and self._agrees(rv, here):
                self.reached(self.source.kind, rv)
                return True
        if not self.trouble:
            self._missed = "a list showed what the watch did not"
            self._hang_up()
        return False

    def stop(self) -> None:
        """Close the watch."""
        self._hang_up()

    async def _now(self) -> tuple[int, dict[str, int]]:
        """What there is: the list's resourceVersion, and that of each object by UID."""
        answer = await self.connection.get(self.source.path, self.source.selector, METADATA_ONLY)
        # An empty list of metadata has null for its items.
        return int(answer["metadata"]["resourceVersion"]), _versions(answer["items"] or [])

    def _agrees(self, rv: int, here: dict[str, int]) -> bool:
        return all(
            self._known.get(uid, self._gone.get(uid, 0)) >= version for uid, version in here.items()
        ) and all(uid in here or version > rv for uid, version in self._known.items())

    async def _list(self, why: str) -> None:
        objects, rv = await self.connection.collection(self.source.path, self.source.selector)
        here = _versions(objects)
        if why and here == self._known:
            # Nothing that we know has changed. What came and went in between can only have met its like: a
            # known VM or claim would carry a trace of it.
            self.reached(self.source.kind, rv)
        else:
            self.deliver(Event(self.source.kind, Change.DARK, self._rv, until=rv, why=why))
            self.deliver(Event(self.source.kind, Change.LISTED, rv, tuple(objects)))
        self._rv, self._known = rv, here

    async def _open(self) -> aiohttp.ClientResponse:
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self._rv),
            "timeoutSeconds": str(random.randint(240, 300)),
        }
        self._answer = await self.connection.stream(self.source.path, params | self.source.selector)
        self._connections += 1
        self.trouble = ""
        return self._answer

    async def _follow(self) -> None:
        answer = self._answer or await self._open()
        try:
            async for line in _lines(answer):
                self._take(orjson.loads(line))
        finally:
            self.trouble = "the watch ended"
            self._hang_up()

    def _take(self, message: Object) -> None:
        raw: Object = message["object"]
        if message["type"] == "ERROR":
            raise Refused(raw.get("code", 500), raw.get("message", "the watch failed"))
        meta, kind = raw["metadata"], self.source.kind
        self._rv = int(meta["resourceVersion"])
        if message["type"] == "BOOKMARK":
            self.reached(kind, self._rv)
            return
        change = Change(message["type"])
        if change is Change.DELETED:
            self._known.pop(meta["uid"], None)
            self._gone[meta["uid"]] = self._rv
            if len(self._gone) > _TOMBSTONES:
                del self._gone[next(iter(self._gone))]
        else:
            self._known[meta["uid"]] = self._rv
        self.deliver(Event(kind, change, self._rv, (raw,)))

    def _hang_up(self) -> None:
        if self._answer is None:
            return
        if self._answer.connection is not None and self._answer.connection.transport is not None:
            self._answer.connection.transport.abort()  # a farewell over TLS may outlive the loop
        self._answer.close()
        self._answer = None


def _versions(objects: list[Object]) -> dict[str, int]:
    return {raw["metadata"]["uid"]: int(raw["metadata"]["resourceVersion"]) for raw in objects}


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The lines of an answer, however long they are."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
