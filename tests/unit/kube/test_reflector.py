import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.kube.client import ApiClient
from controller.kube.objects import KubeObject, ObjectMeta
from controller.kube.reflector import Reflector
from controller.kube.store import Store
from tests.unit.kube.fake_api import (
    Answer,
    FakeApi,
    bookmark,
    event,
    eventually,
    refuses,
    says,
    serving,
    streams,
    thing,
    things,
    too_old,
)

PATH = "/apis/x.dev/v1/things"


class Spec(msgspec.Struct, frozen=True):
    size: int = 0


class Thing(msgspec.Struct):
    """Strict on purpose: neither a bookmark nor an error fits it."""

    metadata: ObjectMeta
    spec: Spec = Spec()


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with serving() as served:
        yield served


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[ApiClient]:
    async with api.client(sleep=no_time) as made:
        yield made


@pytest.fixture
def logs() -> Iterator[list[dict[str, object]]]:
    with structlog.testing.capture_logs() as captured:
        yield captured  # type: ignore[misc]  # structlog's own type is a MutableMapping


async def no_time(_: float) -> None:
    await asyncio.sleep(0)


class Running:
    def __init__(self, client: ApiClient, *, selector: str = "", idle: float = 30.0, **options: Any) -> None:
        self.changes: list[tuple[str, str]] = []
        self.store = Store[Thing](self.note)
        self.reflector = Reflector(
            client, PATH, Thing, self.store, label_selector=selector, idle=idle, sleep=no_time, **options
        )

    def note(self, old: Thing | None, new: Thing | None) -> None:
        kind = "gone" if new is None else "new" if old is None else "changed"
        self.changes.append((kind, (new or old or Thing(ObjectMeta())).metadata.name))

    def versions(self) -> dict[str, str]:
        return {found.metadata.name: found.metadata.resource_version for found in self.store}


@contextlib.asynccontextmanager
async def running(client: ApiClient, **options: Any) -> AsyncIterator[Running]:
    watched = Running(client, **options)
    task = asyncio.create_task(watched.reflector.run())
    try:
        yield watched
        assert not task.done(), "a reflector never ends by itself"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def hangs(*chunks: bytes) -> Answer:
    return streams(*chunks, then="hang")


async def test_it_lists_and_then_watches_from_the_lists_version(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3)), hangs(event("ADDED", thing("b", 8))))
    async with running(client, selector="x=y") as watched:
        await asyncio.wait_for(watched.reflector.synced.wait(), 5)
        await eventually(lambda: len(watched.store) == 2)
    listed, watch = api.asked
    assert "resourceVersion" not in listed.query, "a list from a cache may be stale"
    assert watch.query["resourceVersion"] == "7"
    assert watch.query["allowWatchBookmarks"] == "true"
    assert listed.query["labelSelector"] == watch.query["labelSelector"] == "x=y"


async def test_a_long_list_is_read_in_pages_and_shown_when_it_is_complete(
    api: FakeApi, client: ApiClient
) -> None:
    api.will(things(7, thing("a", 3), more="page2"), things(7, thing("b", 4)), hangs())
    async with running(client) as watched:
        await eventually(lambda: len(api.asked) == 3)
        assert len(watched.store) == 2
    assert api.asked[1].query["continue"] == "page2"
    assert api.asked[2].query["resourceVersion"] == "7"


async def test_events_create_change_and_remove(api: FakeApi, client: ApiClient) -> None:
    lines = (
        event("ADDED", thing("a", 2)),
        event("MODIFIED", thing("a", 3)),
        event("DELETED", thing("a", 4)),
    )
    api.will(things(1), hangs(*lines))
    async with running(client) as watched:
        await eventually(lambda: len(watched.changes) == 3)
    assert watched.changes == [("new", "a"), ("changed", "a"), ("gone", "a")]


LINES = b"".join(
    (
        event("ADDED", thing("ä\u2028ö", 2, annotations={"text": "two\nlines\r and \\n"})),
        event("ADDED", thing("large", 3, annotations={"blob": "x" * 3000})),
        bookmark(9),
        event("MODIFIED", thing("large", 10)),
        event("DELETED", thing("ä\u2028ö", 11)),
    )
)


@settings(max_examples=100)
@given(st.lists(st.integers(0, len(LINES)), max_size=8))
def test_a_stream_may_be_cut_into_chunks_at_any_byte(cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(LINES)]
    chunks = [LINES[start:end] for start, end in pairwise(at)]

    class Client:
        @contextlib.asynccontextmanager
        async def stream(self, *_: object, **__: object) -> AsyncIterator[AsyncIterator[bytes]]:
            async def body() -> AsyncIterator[bytes]:
                for chunk in chunks:
                    yield chunk

            yield body()

    watched = Running(Client())  # type: ignore[arg-type]  # all that a watch needs
    asyncio.run(watched.reflector._watch())
    assert watched.versions() == {"large": "10"}
    assert watched.reflector._version == "11"
    assert [kind for kind, _ in watched.changes] == ["new", "new", "changed", "gone"]


async def test_a_line_of_a_megabyte_is_one_event(api: FakeApi, client: ApiClient) -> None:
    line = event("ADDED", thing("a", 2, annotations={"blob": "x" * 1_000_000}))
    pieces = [line[start : start + 50_000] for start in range(0, len(line), 50_000)]
    api.will(things(1), hangs(*pieces))
    async with running(client) as watched:
        await eventually(lambda: watched.versions() == {"a": "2"})


async def test_all_events_of_a_chunk_are_seen_at_once(api: FakeApi, client: ApiClient) -> None:
    api.will(things(1), hangs(b"".join(event("ADDED", thing(f"t{n}", n + 2)) for n in range(50))))
    sizes = set()
    async with running(client) as watched:
        while len(watched.store) < 50:
            sizes.add(len(watched.store))
            await asyncio.sleep(0)
    assert sizes == {0}


async def test_a_watch_that_ends_goes_on_where_it_was(api: FakeApi, client: ApiClient) -> None:
    api.will(
        things(1),
        streams(event("ADDED", thing("a", 5))),
        streams(bookmark(9)),
        streams(then="cut"),
        refuses(503),
        hangs(event("ADDED", thing("b", 12))),
    )
    async with running(client) as watched:
        await eventually(lambda: len(watched.store) == 2)
    assert [asked.query["resourceVersion"] for asked in api.asked[1:]] == ["1", "5", "9", "9", "9"]


async def test_what_vanished_behind_a_410_vanishes_here(api: FakeApi, client: ApiClient) -> None:
    api.will(
        things(5, thing("a", 2), thing("b", 3)),
        streams(event("MODIFIED", thing("a", 6)) + too_old() + event("ADDED", thing("never", 7))),
        things(30, thing("a", 20), thing("c", 21)),
        hangs(),
    )
    async with running(client) as watched:
        await eventually(lambda: watched.versions() == {"a": "20", "c": "21"} and len(api.asked) == 4)
    assert ("gone", "b") in watched.changes
    assert ("new", "never") not in watched.changes
    assert api.asked[-1].query["resourceVersion"] == "30"


async def test_a_410_as_the_answer_itself_means_list_again(api: FakeApi, client: ApiClient) -> None:
    api.will(things(5, thing("a", 2)), refuses(410, "Expired"), things(9), hangs())
    async with running(client) as watched:
        await eventually(lambda: ("gone", "a") in watched.changes)


async def test_a_list_that_expired_between_its_pages_starts_again(api: FakeApi, client: ApiClient) -> None:
    api.will(
        things(5, thing("a", 2), more="old"),
        refuses(410, "Expired"),
        things(9, thing("a", 2), thing("b", 7)),
        hangs(),
    )
    async with running(client) as watched:
        await eventually(lambda: len(watched.store) == 2)
    assert watched.versions() == {"a": "2", "b": "7"}


async def test_a_stale_list_does_not_undo_an_answer_to_our_own_write(api: FakeApi, client: ApiClient) -> None:
    go = asyncio.Event()

    async def late(_: object) -> object:
        await go.wait()
        return await things(9, thing("a", 4))(None)  # type: ignore[arg-type]  # it looks at no request

    api.will(things(5, thing("a", 2)), refuses(410), late, hangs())  # type: ignore[arg-type]
    async with running(client) as watched:
        await eventually(lambda: len(api.asked) == 3)
        for name, version in (("a", "11"), ("mine", "12")):
            meta = ObjectMeta(name=name, namespace="n", uid=f"uid-{name}", resource_version=version)
            watched.store.apply(Thing(meta))
        go.set()
        await eventually(lambda: len(api.asked) == 4)
    assert watched.versions() == {"a": "11", "mine": "12"}
    assert watched.changes.count(("changed", "a")) == 1


async def test_silence_for_too_long_ends_a_watch_and_is_no_trouble(
    api: FakeApi, client: ApiClient, logs: list[dict[str, object]]
) -> None:
    api.will(things(1), hangs(bookmark(3)), hangs(event("ADDED", thing("a", 4))))
    async with running(client, idle=0.05) as watched:
        await eventually(lambda: len(watched.store) == 1)
    assert api.asked[2].query["resourceVersion"] == "3"
    assert [line for line in logs if line["log_level"] == "warning"] == []


async def test_a_missing_kind_is_waited_for_and_complained_about_once(
    api: FakeApi, client: ApiClient, logs: list[dict[str, object]]
) -> None:
    api.otherwise = says(404, {"message": "404 page not found"})
    async with running(client) as watched:
        await eventually(lambda: len(api.asked) > 10)
        assert not watched.reflector.synced.is_set()
        api.will(things(3, thing("a", 2)), hangs())
        await asyncio.wait_for(watched.reflector.synced.wait(), 5)
    assert len([line for line in logs if line["log_level"] == "warning"]) == 1


async def test_a_kind_that_was_taken_away_is_listed_again_when_it_is_back(
    api: FakeApi, client: ApiClient
) -> None:
    api.will(things(3, thing("a", 2)), refuses(404), refuses(404), things(9), hangs())
    async with running(client) as watched:
        await eventually(lambda: ("gone", "a") in watched.changes)


async def test_an_event_that_does_not_fit_is_skipped_and_the_next_one_is_not(
    api: FakeApi, client: ApiClient, logs: list[dict[str, object]]
) -> None:
    odd = event("ADDED", {**thing("odd", 2), "spec": {"size": "large"}})
    api.will(things(1), hangs(odd + b"no json at all\n" + b"{}\n" + event("ADDED", thing("a", 3))))
    async with running(client) as watched:
        await eventually(lambda: watched.versions() == {"a": "3"})
    assert len([line for line in logs if line["log_level"] == "error"]) == 3
    assert len(api.asked) == 2


async def test_an_object_in_a_list_that_does_not_fit_is_skipped_alone(
    api: FakeApi, client: ApiClient, logs: list[dict[str, object]]
) -> None:
    api.will(things(3, thing("a", 1), {**thing("odd", 2), "spec": 5}, thing("b", 3)), hangs())
    async with running(client) as watched:
        await eventually(lambda: watched.versions() == {"a": "1", "b": "3"})
    assert [line["event"] for line in logs if line["log_level"] == "error"] == [
        "object skipped: it does not fit"
    ]


async def test_the_best_is_made_of_what_does_not_fit_where_somebody_knows_how(
    api: FakeApi, client: ApiClient, logs: list[dict[str, object]]
) -> None:
    def misfit(raw: msgspec.Raw, why: str) -> Thing:
        assert "Expected" in why
        return Thing(msgspec.json.decode(raw, type=KubeObject).metadata, Spec(-1))

    odd = {**thing("odd", 2), "spec": 5}
    later = event("ADDED", {**thing("later", 4), "spec": 5})
    api.will(
        things(3, thing("a", 1), odd), hangs(later, event("DELETED", {**odd, **thing("odd", 5), "spec": 5}))
    )
    store = Store[Thing]()
    task = asyncio.create_task(Reflector(client, PATH, Thing, store, misfit=misfit, sleep=no_time).run())
    await eventually(lambda: {each.metadata.name: each.spec.size for each in store} == {"a": 0, "later": -1})
    task.cancel()
    assert not [line for line in logs if line["log_level"] == "error"]


async def test_a_list_that_is_none_is_asked_for_again(api: FakeApi, client: ApiClient) -> None:
    api.will(says(200, {"kind": "Surprise"}), things(3, thing("a", 2)), hangs())
    async with running(client) as watched:
        await eventually(lambda: len(watched.store) == 1)


async def test_an_error_event_that_is_no_410_keeps_the_version(api: FakeApi, client: ApiClient) -> None:
    broken = event("ERROR", {"kind": "Status", "code": 500, "message": "etcd lost a value"})
    api.will(things(4), streams(broken), hangs(event("ADDED", thing("a", 6))))
    async with running(client) as watched:
        await eventually(lambda: len(watched.store) == 1)
    assert api.asked[2].query["resourceVersion"] == "4"


async def test_a_version_nobody_wants_is_given_up_after_a_while(api: FakeApi, client: ApiClient) -> None:
    api.will(things(4), *[refuses(504, "Timeout", "Too large resource version")] * 6, things(2), hangs())
    api.otherwise = hangs()
    async with running(client):
        await eventually(lambda: any("limit" in asked.query for asked in api.asked[1:]))


async def test_a_listener_that_fails_does_not_blind_the_others(
    api: FakeApi, client: ApiClient, logs: list[dict[str, object]]
) -> None:
    api.will(things(1), hangs(event("ADDED", thing("a", 2)) + event("ADDED", thing("b", 3))))
    seen: list[str] = []

    def listener(_: Thing | None, new: Thing | None) -> None:
        assert new is not None
        if new.metadata.name == "a":
            raise ValueError("a listener's mistake")
        seen.append(new.metadata.name)

    async with running(client) as watched:
        watched.store.on_change = listener
        await eventually(lambda: seen == ["b"])
    assert any(line["event"] == "event skipped" for line in logs)


async def test_the_pauses_grow_and_are_not_the_same_for_all(api: FakeApi, client: ApiClient) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    api.otherwise = refuses(404)
    reflector = Reflector(client, PATH, Thing, Store[Thing](), sleep=pause)
    task = asyncio.create_task(reflector.run())
    await eventually(lambda: len(pauses) > 12)
    task.cancel()
    assert pauses[0] <= 0.2
    assert all(5.0 <= seconds <= 10.0 for seconds in pauses[8:])
    assert len(set(pauses)) > 10


# ---- a kind that comes and goes


NOT_SERVED = refuses(404, "", "404 page not found")


async def test_a_kind_that_is_not_served_is_not_waited_for_and_taken_up_when_it_is(
    api: FakeApi, client: ApiClient
) -> None:
    told: list[bool] = []
    api.will(NOT_SERVED, NOT_SERVED, things(7, thing("a", 3)), hangs())
    store = Store[Thing]()
    reflector = Reflector(client, PATH, Thing, store, on_served=told.append, sleep=no_time)
    task = asyncio.create_task(reflector.run())
    await asyncio.wait_for(reflector.synced.wait(), 5)
    assert told == [False]
    assert "404 page not found" in reflector.trouble
    await eventually(lambda: told == [False, True])
    assert (len(store), reflector.trouble) == (1, "")
    task.cancel()


async def test_what_was_known_of_a_kind_that_is_not_served_any_more_is_kept_until_a_list_comes(
    api: FakeApi, client: ApiClient
) -> None:
    told: list[bool] = []
    api.will(things(7, thing("a", 3)), streams(too_old()), NOT_SERVED)
    api.otherwise = NOT_SERVED
    store = Store[Thing]()
    reflector = Reflector(client, PATH, Thing, store, on_served=told.append, sleep=no_time)
    task = asyncio.create_task(reflector.run())
    await eventually(lambda: told == [False])
    assert len(store) == 1, "a kind that is not served says nothing about its objects"
    api.otherwise = None
    api.will(things(9, thing("b", 8)), hangs())
    await eventually(lambda: told == [False, True])
    assert [each.metadata.name for each in store] == ["b"]
    task.cancel()


@pytest.mark.parametrize(("optional", "synced"), [(True, True), (False, False)])
async def test_a_kind_that_we_may_not_see_is_waited_for_unless_it_is_optional(
    api: FakeApi,
    client: ApiClient,
    optional: bool,  # noqa: FBT001 - a table's columns
    synced: bool,  # noqa: FBT001
) -> None:
    api.otherwise = refuses(403, "Forbidden", "nodes is forbidden")
    reflector = Reflector(client, PATH, Thing, Store[Thing](), optional=optional, sleep=no_time)
    task = asyncio.create_task(reflector.run())
    await eventually(lambda: len(api.asked) > 3)
    assert reflector.synced.is_set() is synced
    assert "nodes is forbidden" in reflector.trouble
    task.cancel()


async def test_a_kind_that_is_not_served_or_not_to_be_seen_holds_up_no_take_over(
    api: FakeApi, client: ApiClient
) -> None:
    now = asyncio.get_running_loop().time()
    for answer, how in (
        (NOT_SERVED, {"on_served": lambda _: None}),
        (refuses(403, "Forbidden", "no"), {"optional": True}),
    ):
        api.otherwise = answer
        reflector = Reflector(client, PATH, Thing, Store[Thing](), sleep=no_time, **how)
        reflector.synced.set()
        await asyncio.wait_for(reflector.confirm(now), 5)
