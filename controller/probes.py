"""/healthz, /readyz and /metrics on one small server. Reads state, changes none."""

import asyncio
from collections.abc import Callable

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from controller.metrics import LOOP_LAG

log = structlog.get_logger()

LAG_INTERVAL = 5.0  # s between two looks at how late the event loop is


class Probes:
    """`alive` and `ready` answer why not, or an empty string."""

    def __init__(self, alive: Callable[[], str], ready: Callable[[], str]) -> None:
        self._alive = alive
        self._ready = ready
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        self._lag: asyncio.Task[None] | None = None

    async def start(self, listen: str) -> None:
        """Listen on `host:port`. A port that is taken costs the probes, not the controller."""
        host, _, port = listen.rpartition(":")
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host.strip("[]") or None, int(port)).start()
        except OSError as error:
            log.warning("no probes and metrics: choose another --listen", listen=listen, error=str(error))
        self._lag = asyncio.get_running_loop().create_task(self._watch_lag())

    async def stop(self) -> None:
        if self._lag is not None:
            self._lag.cancel()
        await self._runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _verdict(self._alive())

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _verdict(self._ready())

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _watch_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_INTERVAL
            await asyncio.sleep(LAG_INTERVAL)
            LOOP_LAG.set(max(0.0, loop.time() - due))


def _verdict(why_not: str) -> web.Response:
    return web.Response(text=(why_not or "ok") + "\n", status=503 if why_not else 200)
