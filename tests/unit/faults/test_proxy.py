"""What the proxy does with a request that meets a fault, on a server that only remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from simulator.api import Cluster
from tests.faults.addresses import STEP_HEADER
from tests.faults.kinds import Fault, Kind
from tests.faults.ledger import Ledger
from tests.faults.proxy import Proxy

VM = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines/a"
VMS = "/apis/kubevirt.io/v1/virtualmachines"
STEP = "hand-over/vm"
EVENTS = b'{"type":"ADDED"}\n{"type":"MODIFIED"}\n'


class Upstream:
    """Remembers what reached it; `kills` are told of into the same list."""

    def __init__(self) -> None:
        self.got: list[str] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if "watch=true" in request.query_string:
            self.got.append(f"WATCH {request.path}")
            return web.Response(body=EVENTS)
        body = (await request.read()).decode()
        self.got.append(f"{request.method} {request.path} {body}".strip())
        return web.Response(body=b'{"ok":true}', headers={"Audit-Id": "7"})

    async def kill(self) -> None:
        self.got.append("killed")


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
async def proxy(upstream: Upstream) -> AsyncIterator[Proxy]:
    runner = web.ServerRunner(web.Server(upstream.handle))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        [(_, port, *_)] = runner.addresses
        cluster = Cluster(f"http://127.0.0.1:{port}", None, lambda: None)
        async with Proxy.running(cluster, "lane") as running:
            running.kill = upstream.kill
            yield running
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _asking(seconds: float = 10) -> AsyncIterator[aiohttp.ClientSession]:
    limits = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=limits, headers={STEP_HEADER: STEP}) as session:
        yield session


async def _patch(proxy: Proxy, body: str, *, seconds: float = 10) -> int:
    """The status of the answer, 0 when none came."""
    async with _asking(seconds) as session:
        try:
            async with session.patch(proxy.url + VM, data=body) as answer:
                await answer.read()
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0


def _arm(proxy: Proxy, kind: Kind, address: str = STEP, nth: int = 1) -> None:
    proxy.ledger = Ledger([Fault(address, nth, kind)])


async def _until(upstream: Upstream, count: int) -> None:
    async with asyncio.timeout(10):
        while len(upstream.got) < count:
            await asyncio.sleep(0.005)


async def test_without_a_fault_a_request_goes_through_as_it_is(proxy: Proxy, upstream: Upstream) -> None:
    async with _asking() as session, session.patch(proxy.url + VM + "?timeout=2s", data="x") as answer:
        assert await answer.json(content_type=None) == {"ok": True}
        assert answer.headers["Audit-Id"] == "7"
    assert upstream.got == [f"PATCH {VM} x"]
    assert proxy.ledger.came == {STEP: 1}


async def test_what_is_asked_of_all_namespaces_is_asked_of_the_lanes_own(
    proxy: Proxy, upstream: Upstream
) -> None:
    async with _asking() as session, session.get(proxy.url + VMS) as answer:
        assert answer.status == 200
    assert upstream.got == ["GET /apis/kubevirt.io/v1/namespaces/lane/virtualmachines"]


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        (Kind.KILL_BEFORE, ["killed"]),
        (Kind.KILL_AFTER, [f"PATCH {VM} 1", "killed"]),
        (Kind.CUT_BEFORE, []),
        (Kind.CUT_AFTER, [f"PATCH {VM} 1"]),
        (Kind.LATE_END, []),
    ],
)
async def test_it_goes_wrong_before_or_after_the_server_has_it(
    proxy: Proxy, upstream: Upstream, kind: Kind, order: list[str]
) -> None:
    _arm(proxy, kind)
    assert await _patch(proxy, "1") == 0
    assert upstream.got == order


@pytest.mark.parametrize(
    ("kind", "status"),
    [(Kind.CONFLICT, 409), (Kind.TEST_FAILED, 422), (Kind.TOO_MANY, 429), (Kind.INTERNAL, 500)],
)
async def test_a_refused_write_does_not_reach_the_server_and_the_next_one_does(
    proxy: Proxy, upstream: Upstream, kind: Kind, status: int
) -> None:
    _arm(proxy, kind)
    assert [await _patch(proxy, "1"), await _patch(proxy, "2")] == [status, 200]
    assert upstream.got == [f"PATCH {VM} 2"]


async def test_a_late_write_is_applied_when_it_was_sent_again_and_answered(
    proxy: Proxy, upstream: Upstream
) -> None:
    _arm(proxy, Kind.LATE)
    assert [await _patch(proxy, "1"), await _patch(proxy, "2")] == [0, 200]
    await _until(upstream, 2)
    assert upstream.got == [f"PATCH {VM} 2", f"PATCH {VM} 1"]


async def test_a_late_write_that_is_not_sent_again_is_applied_all_the_same(
    proxy: Proxy, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.faults.proxy.LATE", 0.01)
    _arm(proxy, Kind.LATE)
    assert await _patch(proxy, "1") == 0
    await _until(upstream, 1)
    assert upstream.got == [f"PATCH {VM} 1"]


@pytest.mark.parametrize("kind", [Kind.KILL_LATE, Kind.LATE_END])
async def test_what_is_to_land_last_lands_when_it_is_told_to(
    proxy: Proxy, upstream: Upstream, kind: Kind
) -> None:
    _arm(proxy, kind)
    await _patch(proxy, "1")
    upstream.got.clear()
    await _patch(proxy, "2")
    assert await proxy.land() == 1
    assert upstream.got == [f"PATCH {VM} 2", f"PATCH {VM} 1"]
    assert await proxy.land() == 0


async def test_a_stalled_write_outlasts_its_client_and_is_never_applied(
    proxy: Proxy, upstream: Upstream
) -> None:
    _arm(proxy, Kind.STALL)
    assert await _patch(proxy, "1", seconds=0.05) == 0
    assert await _patch(proxy, "2") == 200
    assert upstream.got == [f"PATCH {VM} 2"]


async def test_a_write_whose_client_went_away_is_forwarded_to_its_end(
    proxy: Proxy, upstream: Upstream
) -> None:
    asked = asyncio.create_task(_patch(proxy, "1"))
    await _until(upstream, 0)
    while not proxy.ledger.came:
        await asyncio.sleep(0)
    asked.cancel()
    await _until(upstream, 1)


async def _watched(proxy: Proxy) -> tuple[bytes, bool]:
    """What a watch got, and whether it came to its proper end."""
    got = b""
    headers = {STEP_HEADER: "watch"}
    async with aiohttp.ClientSession(headers=headers) as session:
        try:
            async with session.get(f"{proxy.url}{VMS}?watch=true") as answer:
                async for chunk in answer.content.iter_any():
                    got += chunk
        except aiohttp.ClientError:
            return got, False
    return got, True


async def test_a_watch_is_passed_on_and_its_events_are_counted(proxy: Proxy, upstream: Upstream) -> None:
    assert await _watched(proxy) == (EVENTS, True)
    assert upstream.got == ["WATCH /apis/kubevirt.io/v1/namespaces/lane/virtualmachines"]
    assert proxy.ledger.came == {"watch/virtualmachines": 1, "event/virtualmachines": 2}


async def test_a_watch_is_cut_before_an_event(proxy: Proxy) -> None:
    _arm(proxy, Kind.CUT, "event/virtualmachines", 2)
    assert await _watched(proxy) == (b'{"type":"ADDED"}\n', False)


async def test_an_expired_opening_is_answered_with_410(proxy: Proxy, upstream: Upstream) -> None:
    _arm(proxy, Kind.EXPIRED, "watch/virtualmachines")
    got, _ = await _watched(proxy)
    assert b'"Expired"' in got
    assert upstream.got == []
