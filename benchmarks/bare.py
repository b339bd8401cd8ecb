"""The bare client: one session, bytes out and in, one watch. The load generator and the yardstick.

It must never retry, queue or decide anything: what a benchmark compares the product with is the price of the
requests themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from yarl import URL

from simulator.api import JSON, PAGE, Cluster

NO_ANSWER = 0


class RefusedError(Exception):
    """An answer of 400 or more, or none at all (status 0)."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"{status}: {what}")
        self.status = status


class _Meta(msgspec.Struct):
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the wire's name
    cont: str = msgspec.field(default="", name="continue")


class _Object(msgspec.Struct):
    metadata: _Meta


class _Page(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw] = []


_object = msgspec.json.Decoder(_Object).decode
_page = msgspec.json.Decoder(_Page).decode


def uid_of(answer: bytes) -> str:
    return _object(answer).metadata.uid


class Bare:
    """`async with Bare(cluster) as api:`; paths are absolute. Raises RefusedError."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lazy_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._lazy_session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._cluster.ssl or False, keepalive_timeout=120),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=60),
            headers={"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "bullpen-benchmark"},
            read_bufsize=1 << 20,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(self, method: str, path: str, body: bytes | None = None, kind: str = JSON) -> bytes:
        """One request and its answer's body."""
        try:
            async with self._session.request(
                method, self._url(path), data=body, headers=self._headers(kind)
            ) as answer:
                found = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise RefusedError(NO_ANSWER, f"{method} {path}: {error!r}") from error
        if answer.status >= 400:
            raise RefusedError(answer.status, f"{method} {path}: {found[:300].decode(errors='replace')}")
        return found

    async def remove(self, path: str, options: bytes | None = None) -> None:
        """Delete; one that is gone already, by the garbage collector for instance, is as good."""
        try:
            await self.send("DELETE", path, options)
        except RefusedError as refused:
            if refused.status not in {404, 409}:
                raise

    async def pages(self, path: str, selector: str = "") -> AsyncIterator[tuple[list[msgspec.Raw], str]]:
        """A consistent list, page by page: the objects and the list's resourceVersion."""
        token = ""
        while True:
            query = f"?limit={PAGE}{selector and '&' + selector}{token and '&continue=' + token}"
            page = _page(await self.send("GET", path + query))
            yield page.items, page.metadata.resourceVersion
            token = page.metadata.cont
            if not token:
                return

    async def watch(self, path: str, version: str) -> AsyncIterator[list[bytes]]:
        """Flocks of events, each a JSON text, as they come; ends when the API server ends it."""
        url = self._url(f"{path}?watch=1&timeoutSeconds=7200&resourceVersion={version}")
        limits = aiohttp.ClientTimeout(total=None)
        async with self._session.get(url, timeout=limits, headers=self._headers(JSON)) as answer:
            answer.raise_for_status()
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._lazy_session is None:
            raise RuntimeError("Bare is used outside its `async with`")
        return self._lazy_session

    def _headers(self, kind: str) -> dict[str, str]:
        token = self._cluster.authorization()
        return {"Content-Type": kind, "Authorization": token} if token else {"Content-Type": kind}

    def _url(self, path: str) -> URL:
        return URL(self._cluster.server + path, encoded=True)
