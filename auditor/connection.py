"""A session with the API server, which only reads."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import aiohttp
import orjson

from auditor.cluster import Cluster
from auditor.events import Object

T = TypeVar("T")

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
SILENCE = 90.0
"""Seconds without a byte after which a watch counts as dead: bookmarks come every minute."""


class Refused(Exception):  # noqa: N818 - it is the server's answer, and an error only to some
    """The API server answered with an error."""

    def __init__(self, status: int, message: str, what: str = "") -> None:
        self.status = status
        self.message = message
        self.what = what
        super().__init__(f"{status}: {message}")


_PATIENCE = 5.0  # seconds for what is being asked when all is closed
_PAGE = 500
_TURNS = 3  # of the loop: an aborted transport tells its protocol, which tells its socket


@dataclass(slots=True)
class Connection:
    """One API server; only ever read from."""

    cluster: Cluster
    _session: aiohttp.ClientSession = field(repr=False)
    date: str = ""
    """The server's clock at its last answer, as HTTP writes it."""
    _asked: set[asyncio.Task[Any]] = field(default_factory=set, repr=False)

    @classmethod
    def to(cls, cluster: Cluster) -> Self:
        """Nothing is asked yet."""
        return cls(cluster, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=cluster.tls())))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the sockets, without the farewells of TLS: the loop may end before they do."""
        if self._asked:
            await asyncio.wait(self._asked, timeout=_PATIENCE)
        if self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)
        await self._session.close()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def get(self, path: str, params: dict[str, str], accept: str = "application/json") -> Object:
        """One JSON answer.

        Raises:
            Refused: the server answered with an error.
        """
        return await self._whole(self._get(path, params, accept))

    async def collection(
        self, path: str, params: dict[str, str], accept: str = "application/json"
    ) -> tuple[list[Object], int]:
        """All objects of a collection in one consistent list, page by page, and its resourceVersion.

        Raises:
            Refused: the server answered with an error; 410 when it took too long.
        """
        objects: list[Object] = []
        asked = {"limit": str(_PAGE)} | params
        while True:
            page = await self.get(path, asked, accept)
            objects += page["items"] or []  # an empty list of metadata has null for its items
            if not page["metadata"].get("continue"):
                return objects, int(page["metadata"]["resourceVersion"])
            asked["continue"] = page["metadata"]["continue"]

    async def _whole(self, asking: Coroutine[Any, Any, T]) -> T:
        """Ask to the end even if nobody waits any more: cancelled while it connects, it leaves a socket."""
        task = asyncio.create_task(asking)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_unwanted)
            raise

    async def _get(self, path: str, params: dict[str, str], accept: str) -> Object:
        timeout = aiohttp.ClientTimeout(total=60)
        async with self._asking(path, params, accept, timeout) as answer:
            body = await answer.read()
            self.date = answer.headers.get("Date", self.date)
            if not answer.ok:
                raise _refusal(answer.status, body, path)
            document: Object = orjson.loads(body)
            return document

    async def stream(self, path: str, params: dict[str, str]) -> aiohttp.ClientResponse:
        """The open answer of a watch; whoever asked closes it.

        Raises:
            Refused: the server answered with an error.
        """
        return await self._whole(self._stream(path, params))

    async def _stream(self, path: str, params: dict[str, str]) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENCE)
        answer = await self._asking(path, params, "application/json", timeout)
        if answer.ok:
            return answer
        async with answer:
            raise _refusal(answer.status, await answer.read(), path)

    def _asking(
        self, path: str, params: dict[str, str], accept: str, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.client._RequestContextManager:
        return self._session.get(
            self.cluster.server + path,
            params=params,
            headers={"Accept": accept, "User-Agent": "bullpen-auditor"} | self.cluster.headers(),
            timeout=timeout,
            server_hostname=self.cluster.tls_name,
        )


def _unwanted(ended: asyncio.Task[Any]) -> None:
    """Nobody waits for the answer: an open one is closed, an error is nobody's business."""
    if ended.cancelled() or ended.exception() is not None:
        return
    if isinstance(answer := ended.result(), aiohttp.ClientResponse):
        answer.close()


def _refusal(status: int, body: bytes, path: str) -> Refused:
    what = path.rpartition("/")[2]
    try:
        return Refused(status, orjson.loads(body)["message"], what)
    except (ValueError, KeyError, TypeError):
        return Refused(status, body[:200].decode(errors="replace"), what)
