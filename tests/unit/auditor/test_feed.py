"""The watch itself, against a server that says what the test wants: cuts, 410, lists that disagree."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web

from auditor import cluster
from auditor.connection import Connection, Refused
from auditor.events import Change, Event, Kind
from auditor.feed import Source, Stream

Raw = dict[str, Any]


def vm(name: str, rv: int, **fields: Any) -> Raw:
    return {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(rv)}, **fields}


def line(change: str, raw: Raw) -> bytes:
    return orjson.dumps({"type": change, "object": raw}) + b"\n"


EXPIRED = line("ERROR", {"code": 410, "message": "too old resource version"})


@dataclass
class Server:
    """Answers lists from `listed`, and each watch with the next of `watches`; the last one stays open."""

    listed: list[Raw] = field(default_factory=list)
    rv: int = 100
    watches: list[list[bytes]] = field(default_factory=list)
    refuse_watch: list[int] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    page: int = 500
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query) | {"token": request.headers.get("Authorization", "")})
        return await self._watch(request) if "watch" in request.query else self._list(request)

    def _list(self, request: web.Request) -> web.Response:
        start = int(request.query.get("continue", "0"))
        page = self.listed[start : start + self.page]
        more = {"continue": str(start + self.page)} if start + self.page < len(self.listed) else {}
        return web.json_response({"metadata": {"resourceVersion": str(self.rv)} | more, "items": page})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        if self.refuse_watch:
            return web.json_response({"message": "not now"}, status=self.refuse_watch.pop(0))
        answer = web.StreamResponse()
        await answer.prepare(request)
        for part in self.watches.pop(0) if self.watches else ():
            await answer.write(part)
        if not self.watches:
            await self.closing.wait()
        return answer

    @property
    def watched_from(self) -> list[str]:
        return [query["resourceVersion"] for query in self.asked if "watch" in query]


@dataclass
class Watched:
    """A stream and what it delivered."""

    server: Server
    stream: Stream
    events: list[Event] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.stream.start()
        self.task = asyncio.create_task(self.stream.run())

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.01)

    @property
    def shown(self) -> list[tuple[Change, int]]:
        return [(event.change, event.rv) for event in self.events]


@pytest.fixture
async def watched(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Watched]:
    server = Server()
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    connection = Connection.to(cluster.find(kubeconfig(tmp_path, f"http://127.0.0.1:{unused_tcp_port}")))
    events: list[Event] = []
    reached: list[int] = []
    stream = Stream(Source(Kind.VM, "ns"), connection, events.append, lambda _kind, rv: reached.append(rv))
    watched = Watched(server, stream, events, reached)
    yield watched
    if watched.task is not None:
        watched.task.cancel()
        await asyncio.gather(watched.task, return_exceptions=True)
    stream.stop()
    server.closing.set()
    await connection.close()
    await runner.cleanup()


def kubeconfig(directory: Path, server: str) -> Path:
    path = directory / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": {"token": "secret"}}],
    }
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


async def test_a_list_and_then_what_happens(watched: Watched) -> None:
    watched.server.listed = [vm("a", 90)]
    watched.server.watches = [[line("ADDED", vm("b", 101)), line("DELETED", vm("a", 102))]]
    await watched.start()
    await watched.until(lambda: len(watched.events) == 4)

    assert watched.shown == [
        (Change.DARK, 0),
        (Change.LISTED, 100),
        (Change.ADDED, 101),
        (Change.DELETED, 102),
    ]
    assert watched.events[0].until == 100
    assert watched.events[0].why == ""
    assert {query["token"] for query in watched.server.asked} == {"Bearer secret"}


async def test_a_long_list_comes_in_pages(watched: Watched) -> None:
    watched.server.listed = [vm(f"vm-{number}", number + 1) for number in range(7)]
    watched.server.page = 3
    await watched.start()

    assert [len(event.objects) for event in watched.events] == [0, 7]


async def test_a_bookmark_is_progress_and_no_event(watched: Watched) -> None:
    watched.server.watches = [[line("BOOKMARK", {"metadata": {"resourceVersion": "150"}})]]
    await watched.start()
    await watched.until(lambda: watched.reached == [150])

    assert watched.shown == [(Change.DARK, 0), (Change.LISTED, 100)]


async def test_a_watch_that_ends_goes_on_where_it_was(watched: Watched) -> None:
    watched.server.watches = [
        [line("ADDED", vm("a", 101)), line("BOOKMARK", {"metadata": {"resourceVersion": "110"}})],
        [line("MODIFIED", vm("a", 111))],
    ]
    await watched.start()
    await watched.until(lambda: len(watched.events) == 4)

    assert watched.server.watched_from == ["100", "110"]
    assert Change.DARK not in [change for change, _ in watched.shown[2:]]


async def test_a_line_in_pieces_and_longer_than_any_buffer_is_one_event(watched: Watched) -> None:
    whole = line("ADDED", vm("a", 101, spec="x" * 400_000))
    watched.server.watches = [[whole[:70_000], whole[70_000:], b"\n"]]
    await watched.start()
    await watched.until(lambda: len(watched.events) == 3)

    assert len(watched.events[2].objects[0]["spec"]) == 400_000


async def test_a_watch_that_cannot_be_continued_is_a_gap(watched: Watched) -> None:
    watched.server.watches = [[line("ADDED", vm("a", 101)), EXPIRED], []]
    await watched.start()
    watched.server.listed, watched.server.rv = [vm("a", 150)], 200
    await watched.until(lambda: (Change.LISTED, 200) in watched.shown)

    dark = watched.events[3]
    assert (dark.change, dark.rv, dark.until) == (Change.DARK, 101, 200)
    assert dark.why == "410: too old resource version"


async def test_an_http_410_is_the_same(watched: Watched) -> None:
    watched.server.watches = [[line("ADDED", vm("a", 101))], []]
    await watched.start()
    watched.server.refuse_watch, watched.server.rv = [410], 200
    await watched.until(lambda: (Change.LISTED, 200) in watched.shown)

    assert (Change.DARK, 101) in watched.shown


async def test_a_break_after_which_nothing_has_changed_is_none(watched: Watched) -> None:
    watched.server.watches = [[line("ADDED", vm("a", 101)), EXPIRED], [line("MODIFIED", vm("a", 201))]]
    await watched.start()
    watched.server.listed, watched.server.rv = [vm("a", 101)], 200
    await watched.until(lambda: (Change.MODIFIED, 201) in watched.shown)

    assert watched.shown[2:] == [(Change.ADDED, 101), (Change.MODIFIED, 201)]
    assert watched.reached == [200]
    assert watched.server.watched_from == ["100", "200"]


async def test_a_server_that_refuses_for_a_while_is_asked_again(watched: Watched) -> None:
    watched.server.watches = [[], [line("ADDED", vm("a", 101))]]
    await watched.start()
    watched.server.refuse_watch = [503, 429]
    await watched.until(lambda: (Change.ADDED, 101) in watched.shown)

    assert watched.stream.trouble == ""


async def test_a_server_that_refuses_at_the_start_is_an_error(watched: Watched) -> None:
    watched.server.refuse_watch = [403]

    with pytest.raises(Refused, match="403: not now"):
        await watched.stream.start()


async def test_a_silent_stream_is_as_far_as_the_servers_answer(watched: Watched) -> None:
    await watched.start()
    watched.server.rv = 300
    await watched.stream.confirm()

    assert watched.reached == [300]


async def test_a_stream_that_has_not_shown_what_a_list_holds_is_not_that_far(watched: Watched) -> None:
    watched.server.listed = [vm("a", 90)]
    await watched.start()
    watched.server.listed, watched.server.rv = [vm("a", 250)], 300
    await watched.stream.confirm()

    assert watched.reached == []


async def test_a_stream_that_is_down_confirms_nothing(watched: Watched) -> None:
    await watched.stream.confirm()

    assert watched.reached == []
    assert watched.server.asked == []


async def test_a_list_that_agrees_with_the_watch_verifies_it(watched: Watched) -> None:
    watched.server.listed = [vm("a", 90), vm("b", 91)]
    watched.server.watches = [[line("DELETED", vm("a", 101)), line("MODIFIED", vm("b", 105))]]
    await watched.start()
    await watched.until(lambda: len(watched.events) == 4)
    watched.server.listed, watched.server.rv = [vm("b", 102)], 103

    assert await watched.stream.verify(1)
    assert watched.reached == [103]


@pytest.mark.parametrize(
    "listed",
    [[vm("a", 90), vm("new", 150)], [vm("a", 150)], []],
    ids=["one more", "one changed", "one less"],
)
async def test_a_list_that_shows_what_the_watch_did_not_is_a_gap(watched: Watched, listed: list[Raw]) -> None:
    watched.server.listed = [vm("a", 90)]
    await watched.start()
    watched.server.listed, watched.server.rv = listed, 200

    assert not await watched.stream.verify(0.3)
    await watched.until(lambda: (Change.LISTED, 200) in watched.shown)
    assert watched.events[2].why == "a list showed what the watch did not"
    assert await watched.stream.verify(1)


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (Source(Kind.VM, None), "/apis/kubevirt.io/v1/virtualmachines"),
        (Source(Kind.CLAIM, "ns"), "/apis/bullpen.dev/v1alpha1/namespaces/ns/virtualmachineclaims"),
        (Source(Kind.POOL, "ns"), "/apis/bullpen.dev/v1alpha1/namespaces/ns/virtualmachinepools"),
        (Source(Kind.NAMESPACE, "ns"), "/api/v1/namespaces"),
    ],
)
def test_each_kind_is_looked_for_where_it_is(source: Source, path: str) -> None:
    assert source.path == path


def test_of_the_namespaces_only_the_watched_one_is_asked_for() -> None:
    assert Source(Kind.NAMESPACE, "ns").selector == {"fieldSelector": "metadata.name=ns"}
    assert Source(Kind.NAMESPACE, None).selector == {}
    assert Source(Kind.VM, "ns").selector == {}


async def test_a_watch_that_opens_when_nobody_waits_for_it_any_more_is_closed(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    asked, go_on, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        asked.set()
        await go_on.wait()
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"\n")
        await over.wait()
        return answer

    app = web.Application()
    app.router.add_get("/late", late)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    async with Connection.to(
        cluster.find(kubeconfig(tmp_path, f"http://127.0.0.1:{unused_tcp_port}"))
    ) as connection:
        waiting = asyncio.create_task(connection.stream("/late", {}))
        await asked.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        go_on.set()
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        del connection, waiting
        gc.collect()
    over.set()
    await runner.cleanup()
    assert [str(each.message) for each in left] == []
