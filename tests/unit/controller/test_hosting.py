"""kopf hears of pools also when it asked an API server that did not know its custom kinds yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import kopf
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kopf._cogs.structs.references import Insights

from controller.claims.scope import Scope
from controller.handlers import Operator, add, look_again
from controller.kube.config import ClusterConfig
from controller.pools.host import PoolHost
from crds import names

Json = dict[str, Any]

POOLS = f"/apis/{names.API_VERSION}/{names.POOLS}"
VERBS = ["get", "list", "watch", "patch"]


@dataclass
class YoungServer:
    """An API server of which one can say when it has learnt of its custom kinds."""

    knows: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def _groups(self, _request: web.Request) -> web.Response:
        self.asked.set()
        version = {"groupVersion": names.API_VERSION, "version": names.VERSION}
        group = {"name": names.GROUP, "versions": [version], "preferredVersion": version}
        return web.json_response({"groups": [group] if self.knows else []})

    async def _kinds(self, _request: web.Request) -> web.Response:
        pool = {
            "name": names.POOLS,
            "singularName": "",
            "kind": names.POOL_KIND,
            "namespaced": True,
            "verbs": VERBS,
        }
        return web.json_response({"resources": [pool]})

    async def _core(self, _request: web.Request) -> web.Response:
        return web.json_response({"versions": ["v1"]})

    async def _core_kinds(self, _request: web.Request) -> web.Response:
        kinds = [
            {
                "name": "namespaces",
                "singularName": "",
                "kind": "Namespace",
                "namespaced": False,
                "verbs": VERBS,
            }
        ]
        return web.json_response({"resources": kinds})

    async def _pools(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            await self.over.wait()
        pool = {"metadata": {"name": "runners", "namespace": "ns", "uid": "u", "resourceVersion": "7"}}
        return web.json_response({"metadata": {"resourceVersion": "9"}, "items": [pool]})

    def application(self) -> web.Application:
        found = web.Application()
        found.router.add_get("/api", self._core)
        found.router.add_get("/api/v1", self._core_kinds)
        found.router.add_get("/apis", self._groups)
        found.router.add_get(f"/apis/{names.API_VERSION}", self._kinds)
        found.router.add_get(POOLS, self._pools)
        return found


class Host:
    """Notes of which pools it heard."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    def observe(self, _event: str | None, body: Json) -> None:
        self.heard.put_nowait(body["metadata"]["name"])


@pytest.fixture
async def young() -> AsyncIterator[tuple[YoungServer, str]]:
    server = YoungServer()
    async with TestServer(server.application()) as running:
        yield server, str(running.make_url("")).rstrip("/")
        server.over.set()


class Everywhere:
    """The scope of a controller that may read the whole cluster."""

    namespace, readable = "", True

    async def settled(self) -> None:
        pass

    async def listed(self) -> None:
        pass


async def hosted(server: YoungServer, url: str) -> str:
    """The first pool that the host hears of; the API server learns of the kinds after kopf has asked."""
    host, ending = Host(), asyncio.Event()

    async def served() -> None:
        server.knows = True

    scopes = cast("list[Scope]", [Everywhere()])
    work = Operator(cast("PoolHost", host), ClusterConfig(url), "me", scopes, ending, lambda: None, served)
    running = asyncio.create_task(work.run())
    try:
        await asyncio.wait_for(server.asked.wait(), 10)
        return await asyncio.wait_for(host.heard.get(), 10)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_pools_are_heard_of_though_the_api_server_knew_none_when_kopf_looked(
    young: tuple[YoungServer, str],
) -> None:
    assert await hosted(*young) == "runners"


async def test_what_kopf_has_found_itself_is_left_to_it(young: tuple[YoungServer, str]) -> None:
    server, url = young
    server.knows = True
    assert await hosted(server, url) == "runners"


async def test_nothing_is_asked_again_when_kopf_has_found_the_pools() -> None:
    insights = Insights()
    insights.watched_resources.add(kopf.Resource(names.GROUP, names.VERSION, names.POOLS))
    insights.ready_resources.set()

    async def served() -> None:
        raise AssertionError("nobody was to ask")

    await look_again(insights, served)
    assert len(insights.watched_resources) == 1


async def test_a_namespace_is_added_to_a_kopf_that_runs_when_it_can_be_read() -> None:
    class Hidden(Everywhere):
        namespace = "late"
        seen = asyncio.Event()

        async def listed(self) -> None:
            await self.seen.wait()

    insights, hidden = Insights(), Hidden()
    insights.ready_namespaces.set()
    adding = asyncio.create_task(add(insights, cast("Scope", hidden)))
    await asyncio.sleep(0)
    assert insights.namespaces == set()
    hidden.seen.set()
    await asyncio.wait_for(adding, 5)
    assert insights.namespaces == {"late"}
