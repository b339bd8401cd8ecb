"""The proxy: plain HTTP for one controller, TLS to the API server, and faults where the ledger says so.

It decides nothing: which fault is due is the ledger's word, what an answer looks like is `answers`'. It must
never send a request twice of its own accord, nor change one (but for the namespace that it is pinned to).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from simulator.api import Cluster
from tests.faults import answers
from tests.faults.addresses import STEP_HEADER, Asked, Nature, pinned
from tests.faults.kinds import KILLS, LANDING_LAST, Fault, Kind
from tests.faults.ledger import Ledger
from tests.faults.watches import Tap, relay

LATE = 2.0  # seconds after which a late write is let go, if its step does not come again before
STALL = 30.0  # seconds; whoever asked gives up before
SLOW_READ = 5.0  # seconds that a list is held: its client would wait for a minute
_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
_OK = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, whole, and who sent it."""

    asked: Asked
    request: web.BaseRequest
    body: bytes

    @property
    def target(self) -> str:
        return self.asked.path + (f"?{self.asked.query}" if self.asked.query else "")

    def cut(self) -> web.Response:
        """Drop the connection; what is returned reaches nobody."""
        if self.request.transport is not None:
            self.request.transport.abort()
        return web.Response()


class Proxy:
    """`async with Proxy.running(cluster, namespace) as proxy:`; `proxy.url` is the controller's API server.

    `kill` ends the controller and returns when it is dead. `vanish` makes objects go away, while a watch is
    held. Set a new `ledger` for each run.
    """

    def __init__(self, cluster: Cluster, namespace: str, session: aiohttp.ClientSession) -> None:
        self.ledger = Ledger()
        self.kill: Callable[[], Awaitable[None]] = _nothing
        self.vanish: Callable[[str], Awaitable[None]] = _nothing_to
        self.url = ""
        self.tap = Tap()
        self._cluster = cluster
        self._namespace = namespace
        self._session = session
        self._answered: dict[str, asyncio.Event] = {}
        self._last: list[Exchange] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    @classmethod
    @asynccontextmanager
    async def running(cls, cluster: Cluster, namespace: str) -> AsyncIterator[Self]:
        connector = aiohttp.TCPConnector(limit=0, ssl=cluster.ssl or True, keepalive_timeout=60)
        limits = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=limits, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            proxy = cls(cluster, namespace, session)
            server = web.Server(proxy._handle, handler_cancellation=True)
            runner = web.ServerRunner(server, shutdown_timeout=0.1)
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                [(_, port, *_)] = runner.addresses
                proxy.url = f"http://127.0.0.1:{port}"
                yield proxy
            finally:
                for task in proxy._tasks:
                    task.cancel()
                await asyncio.gather(*proxy._tasks, return_exceptions=True)
                await runner.cleanup()

    async def land(self) -> int:
        """Let go the writes that were held until the end; how many. Whatever is answered is nobody's."""
        held, self._last = self._last, []
        for each in held:
            await self._forward(each)
        return len(held)

    # ---- requests

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = pinned(request.url.raw_path, self._namespace)
        step = request.headers.get(STEP_HEADER, "")
        unpinned = Asked(request.method, request.url.raw_path, request.url.raw_query_string, step)
        asked = Asked(request.method, path, request.url.raw_query_string, step)
        exchange = Exchange(asked, request, await request.read())
        address = unpinned.address
        fault = self.ledger.arrive(address, asked.nature)
        try:
            if fault is not None:
                return await self._meet(fault, exchange)
            return await self._pass_on(exchange)
        finally:
            if (waiting := self._answered.pop(address, None)) is not None:
                waiting.set()

    async def _pass_on(self, exchange: Exchange) -> web.StreamResponse:
        if exchange.asked.nature is Nature.WATCH:
            return await self._watch(exchange)
        # To its end even if the client goes away: the API server would do that, too.
        return await asyncio.shield(self._own(self._forward(exchange)))

    async def _meet(self, fault: Fault, exchange: Exchange) -> web.StreamResponse:
        kind = fault.kind
        if kind in LANDING_LAST:
            self._last.append(exchange)
        if kind in KILLS:
            if kind is Kind.KILL_AFTER:
                await self._forward(exchange)
            await self.kill()
            return exchange.cut()
        match kind:
            case Kind.CUT_BEFORE | Kind.LATE_END:
                return exchange.cut()
            case Kind.CUT_AFTER:
                await self._forward(exchange)
                return exchange.cut()
            case Kind.LATE:
                self._own(self._after_the_next(fault.address, exchange))
                return exchange.cut()
            case Kind.STALL:
                return await self._stall(exchange)
        refused = answers.refusal(kind, exchange.asked)
        headers = {"Content-Type": "application/json", **refused.headers}
        return web.Response(status=refused.status, body=refused.body, headers=headers)

    async def _stall(self, exchange: Exchange) -> web.StreamResponse:
        if exchange.asked.nature in {Nature.READ, Nature.WATCH}:
            await asyncio.sleep(SLOW_READ)
            return await self._pass_on(exchange)
        await asyncio.sleep(STALL)
        return exchange.cut()

    async def _after_the_next(self, address: str, exchange: Exchange) -> None:
        """Forward it when its step was answered another time, or when that does not come."""
        await asyncio.sleep(0)  # the answer that this one gets does not count
        again = self._answered.setdefault(address, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(LATE):
                await again.wait()
        await self._forward(exchange)

    async def _forward(self, exchange: Exchange) -> web.Response:
        request = exchange.request
        url = URL(self._cluster.server + exchange.target, encoded=True)
        try:
            async with self._session.request(
                request.method, url, data=exchange.body or None, headers=_headers(request.headers)
            ) as answer:
                body = await answer.read()
        except aiohttp.ClientError:
            return exchange.cut()
        return web.Response(status=answer.status, body=body, headers=_headers(answer.headers))

    # ---- watches

    async def _watch(self, exchange: Exchange) -> web.StreamResponse:
        url = URL(self._cluster.server + exchange.target, encoded=True)
        await self.tap.free(exchange.asked.plural)
        try:
            async with self._session.get(url, headers=_headers(exchange.request.headers)) as upstream:
                if upstream.status != _OK:
                    body = await upstream.read()
                    return web.Response(status=upstream.status, body=body, headers=_headers(upstream.headers))
                down = web.StreamResponse(headers=_headers(upstream.headers))
                down.enable_chunked_encoding()
                await down.prepare(exchange.request)
                whole = await relay(
                    upstream.content, down, lambda: self.ledger, self.tap, exchange.asked.plural, self.vanish
                )
        except (aiohttp.ClientError, ConnectionError):
            return exchange.cut()
        return down if whole else exchange.cut()

    def _own(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _nothing() -> None:
    return None


async def _nothing_to(_plural: str) -> None:
    return None


def _headers(found: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((key, value) for key, value in found.items() if key.lower() not in _HOP)
