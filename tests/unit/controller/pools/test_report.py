"""The pool's status writer: rarely, and never without the last word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest

from controller.kube.client import ApiClient
from controller.kube.errors import NotFound, TestFailed, UnknownOutcome
from controller.pools import report
from controller.pools.report import Reporter
from crds.pool import VirtualMachinePool, parse_pool
from tests.support.builders import POOL_UID, make_pool

Json = dict[str, Any]


def _stored(uid: str) -> bytes:
    return b'{"metadata": {"uid": "%b"}}' % uid.encode()


class SlowServer:
    """An API server whose writes take a while; what it was sent, and what it answers."""

    def __init__(self) -> None:
        self.written: list[Json] = []
        self.refuse: list[Exception] = []
        self.answer = b"{}"
        self.stored: bytes | Exception = _stored(POOL_UID)
        self.tried: Callable[[float], None] = lambda _at: None
        self.under_way = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def json_patch(self, _path: str, body: list[Json], **_: object) -> bytes:
        self.under_way.set()
        self.tried(asyncio.get_running_loop().time())
        await self.go_on.wait()
        if self.refuse:
            raise self.refuse.pop()
        self.written.append(body[-1]["value"])
        return self.answer

    async def get(self, _path: str, **_: object) -> bytes:
        if isinstance(self.stored, Exception):
            raise self.stored
        return self.stored


class Bench:
    def __init__(self) -> None:
        self.server = SlowServer()
        self.status: Json = {"replicas": 0}
        self.gone = False
        self.pool = make_pool()
        self.reporter = Reporter(
            cast("ApiClient", self.server), lambda: self.pool, lambda _before: dict(self.status), self.is_gone
        )

    def is_gone(self) -> None:
        self.gone = True

    async def until_written(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.server.written) < count:
                await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "INTERVAL", 0.0)
    monkeypatch.setattr(report, "AGAIN", 0.0)


async def test_what_changes_while_a_write_is_under_way_is_written_next() -> None:
    bench = Bench()
    bench.server.go_on.clear()
    bench.reporter.soon()
    await bench.server.under_way.wait()
    bench.status = {"replicas": 1}
    bench.reporter.soon()
    bench.server.go_on.set()
    await bench.until_written(2)
    assert bench.server.written == [{"replicas": 0}, {"replicas": 1}]


async def test_a_status_that_has_not_changed_is_not_written_again() -> None:
    bench = Bench()
    bench.reporter.soon()
    await bench.until_written(1)
    bench.reporter.soon()
    bench.status = {"replicas": 2}
    bench.reporter.soon()
    await bench.until_written(2)
    assert bench.server.written == [{"replicas": 0}, {"replicas": 2}]


async def test_a_write_without_an_answer_is_made_again() -> None:
    bench = Bench()
    bench.server.refuse = [UnknownOutcome()]
    bench.reporter.soon()
    await bench.until_written(1)
    assert bench.server.written == [{"replicas": 0}]


REFUSALS = pytest.mark.parametrize("refusal", [NotFound(), TestFailed()], ids=["none", "a namesake"])


@REFUSALS
@pytest.mark.parametrize("stored", [NotFound(), _stored("another")], ids=["gone", "another one"])
async def test_a_pool_that_is_not_there_ends_its_loop(refusal: Exception, stored: bytes | Exception) -> None:
    bench = Bench()
    bench.server.refuse, bench.server.stored = [refusal], stored
    bench.reporter.soon()
    async with asyncio.timeout(5):
        while not bench.gone:
            await asyncio.sleep(0)
    assert bench.server.written == []


@REFUSALS
@pytest.mark.parametrize("stored", [_stored(POOL_UID), UnknownOutcome()], ids=["there", "not to be read"])
async def test_a_refusal_alone_ends_no_loop(refusal: Exception, stored: bytes | Exception) -> None:
    bench = Bench()
    bench.server.refuse, bench.server.stored = [refusal], stored
    bench.reporter.soon()
    await bench.until_written(1)
    assert not bench.gone


async def test_what_is_refused_again_and_again_waits_ever_longer_whatever_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "INTERVAL", 0.02)
    bench = Bench()
    times: list[float] = []
    bench.server.refuse = [TestFailed() for _ in range(4)]
    bench.server.tried = times.append
    async with asyncio.timeout(10):
        while not bench.server.written:
            bench.reporter.soon()
            await asyncio.sleep(0.001)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert [gap >= least for gap, least in zip(gaps, (0.02, 0.04, 0.08, 0.16), strict=True)] == [True] * 4


async def test_a_status_whose_reply_was_lost_is_not_taken_for_the_one_before_it() -> None:
    bench = Bench()
    bench.reporter.soon()
    await bench.until_written(1)
    bench.server.refuse, bench.status = [UnknownOutcome()], {"replicas": 1}
    bench.reporter.soon()
    async with asyncio.timeout(5):
        while bench.server.refuse:
            await asyncio.sleep(0)
    bench.status = {"replicas": 0}  # as it was; the server may have the one in between
    await bench.until_written(2)
    assert bench.server.written == [{"replicas": 0}, {"replicas": 0}]


async def test_a_status_that_somebody_else_wrote_late_is_written_over() -> None:
    bench = Bench()
    bench.reporter.soon()
    await bench.until_written(1)
    bench.pool = _pool(version="9", status={"replicas": 5})
    bench.reporter.soon()
    await bench.until_written(2)
    bench.pool = _pool(version="10", status={"replicas": 0})
    bench.reporter.soon()
    assert bench.reporter._task is not None
    await asyncio.wait_for(bench.reporter._task, 5)
    assert bench.server.written == [{"replicas": 0}] * 2


async def test_what_was_seen_before_our_last_write_is_not_another_status() -> None:
    bench = Bench()
    bench.server.answer = b'{"metadata": {"resourceVersion": "9"}}'
    bench.reporter.soon()
    await bench.until_written(1)
    bench.pool = _pool(version="8", status={"replicas": 5})
    bench.reporter.soon()
    bench.status = {"replicas": 1}
    bench.reporter.soon()
    await bench.until_written(2)
    assert bench.server.written == [{"replicas": 0}, {"replicas": 1}]


def _pool(*, version: str, status: Json) -> VirtualMachinePool:
    raw = make_pool().model_dump(by_alias=True, exclude_none=True, mode="json")
    raw["metadata"]["resourceVersion"] = version
    return parse_pool({**raw, "status": status})
