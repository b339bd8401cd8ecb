"""A controller's way to the API server that changes the time it is told, or says that the server is busy.

It must never change what is asked, nor any body.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from simulator.api import Cluster, load_cluster

_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
_STEP = "X-Bullpen-Step"
_READS = frozenset({"GET", "HEAD"})
BUSY = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "code": 429, "message": "busy"}


@dataclass
class Altering:
    """`ahead`: seconds added to every Date; `busy`: writes are answered 429, but for the lease's."""

    cluster: Cluster
    ahead: float = 0.0
    busy: bool = False
    turned_away: int = 0
    url: str = ""
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def kubeconfig(self, path: Path) -> Path:
        """One that leads here."""
        token = (self.cluster.authorization() or "").removeprefix("Bearer ")
        content = {
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "admin"}}],
            "current-context": "here",
        }
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **content}))
        return path

    async def serve(self, ready: threading.Event) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self.cluster.ssl or True)
        async with aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        ) as session:

            async def handle(request: web.BaseRequest) -> web.StreamResponse:
                return await self._handle(session, request)

            runner = web.ServerRunner(web.Server(handle, handler_cancellation=True), shutdown_timeout=0.1)
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                [(_, port, *_)] = runner.addresses
                self.url = f"http://127.0.0.1:{port}"
                ready.set()
                await self._stop.wait()
            finally:
                await runner.cleanup()
                await connector.close(abort_ssl=True)  # no farewell: the loop ends with the block
        await asyncio.sleep(0.1)

    def stop(self) -> None:
        self._stop.set()

    async def _handle(self, session: aiohttp.ClientSession, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if self.busy and request.method not in _READS and request.headers.get(_STEP) != "lease":
            self.turned_away += 1
            return web.json_response(BUSY, status=429, headers={"Retry-After": "1"})
        url = URL(self.cluster.server + request.raw_path, encoded=True)
        answer = web.StreamResponse()
        with suppress(aiohttp.ClientError, ConnectionError):
            async with session.request(
                request.method, url, data=body or None, headers=_kept(request.headers)
            ) as upstream:
                answer = web.StreamResponse(status=upstream.status, headers=self._headers(upstream.headers))
                await answer.prepare(request)
                async for chunk in upstream.content.iter_any():
                    await answer.write(chunk)
                await answer.write_eof()
        return answer

    def _headers(self, found: Mapping[str, str]) -> CIMultiDict[str]:
        kept = _kept(found)
        if date := kept.get("Date"):
            told = parsedate_to_datetime(date) + timedelta(seconds=self.ahead)
            kept["Date"] = format_datetime(told, usegmt=True)
        return kept


@contextmanager
def altering(kubeconfig: Path) -> Iterator[Altering]:
    """One that serves, on a thread of its own."""
    way, ready = Altering(load_cluster(kubeconfig)), threading.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(way.serve(ready)))
    thread.start()
    try:
        assert ready.wait(30)
        yield way
    finally:
        loop.call_soon_threadsafe(way.stop)
        thread.join(30)
        loop.close()


def _kept(found: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((key, value) for key, value in found.items() if key.lower() not in _HOP)
