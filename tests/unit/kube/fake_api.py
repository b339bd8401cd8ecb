"""An API server in this process that answers as a test tells it to, and remembers what it was asked."""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from controller.kube.client import ApiClient
from controller.kube.config import ClusterConfig

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class FakeApi:
    url: str = ""
    answers: deque[Answer] = field(default_factory=deque)
    otherwise: Answer | None = None
    asked: list[Asked] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = dict(request.headers)
        self.asked.append(Asked(request.method, request.path, dict(request.query), headers, body))
        if self.answers:
            return await self.answers.popleft()(request)
        if self.otherwise is not None:
            return await self.otherwise(request)
        return web.json_response({})

    def will(self, *answers: Answer) -> None:
        self.answers.extend(answers)

    def client(self, **options: Any) -> ApiClient:
        return ApiClient(ClusterConfig(server=self.url), **options)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[FakeApi]:
    api = FakeApi()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{tail:.*}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()


def says(status: int, body: Any = None, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response({} if body is None else body, status=status, headers=named)

    return answer


def refuses(status: int, reason: str = "", message: str = "", details: Any = None, **headers: str) -> Answer:
    body = {"kind": "Status", "code": status, "reason": reason, "message": message, "details": details or {}}
    return says(status, body, **headers)


def streams(*chunks: bytes, then: str = "end") -> Answer:
    """A chunked answer; afterwards the stream ends, is cut, or stays open in silence ("hang")."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if then == "hang":
            await asyncio.sleep(3600)
        if then == "cut" and request.transport is not None:
            request.transport.abort()
        return response

    return answer


def stalls() -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        return web.Response()

    return answer


def cuts() -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer


def thing(name: str, version: int, uid: str = "", **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta | metadata}


def things(version: int, *items: dict[str, Any], more: str = "") -> Answer:
    return says(200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)})


def event(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(version)}})


def too_old() -> bytes:
    return event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


async def eventually(holds: Callable[[], object], seconds: float = 5.0) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, "did not come about in time"
        await asyncio.sleep(0.002)
