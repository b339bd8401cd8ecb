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

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(f"{status}: {message}")


_PATIENCE = 5.0  # seconds for what is being asked when all is closed
_TURNS = 3  # of the loop: an aborted transport tells its protocol, which tells its socket


@dataclass(slots=True)
class Connection:
    """One API server; only ever read from."""

    cluster: Cluster
    _session: aiohttp.ClientSession = field(repr=False)
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

    async def _whole(self, asking: Coroutine[Any, Any, T]) -> T:
        """Ask to the end even if nobody waits any more: cancelled while it connects, it leaves a socket."""
        task = asyncio.create_task(asking)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return await asyncio.shield(task)

    async def _get(self, path: str, params: dict[str, str], accept: str) -> Object:
        timeout = aiohttp.ClientTimeout(total=60)
        headers = self._headers(accept)
        async with self._session.get(
            self.cluster.server + path, params=params, headers=headers, timeout=timeout
        ) as answer:
            body = await answer.read()
            if not answer.ok:
                raise _refusal(answer.status, body)
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
        headers = self._headers("application/json")
        url = self.cluster.server + path
        answer = await self._session.get(url, params=params, headers=headers, timeout=timeout)
        if answer.ok:
            return answer
        async with answer:
            raise _refusal(answer.status, await answer.read())

    def _headers(self, accept: str) -> dict[str, str]:
        return {"Accept": accept, "User-Agent": "bullpen-auditor"} | self.cluster.headers()


def _refusal(status: int, body: bytes) -> Refused:
    try:
        return Refused(status, orjson.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return Refused(status, body[:200].decode(errors="replace"))
