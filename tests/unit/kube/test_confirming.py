"""A reflector whose store is made as new as a consistent read, at the moment in which somebody takes over."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from controller.kube.client import METADATA_ONLY, ApiClient
from tests.unit.kube.fake_api import (
    Answer,
    FakeApi,
    cuts,
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
from tests.unit.kube.test_reflector import NOT_SERVED, PATH, Running, hangs, no_time, running


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with serving() as served:
        yield served


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[ApiClient]:
    async with api.client(sleep=no_time) as made:
        yield made


async def standing_by(api: FakeApi, watched: Running) -> None:
    """It has listed, and its watch is open and silent: whatever happens from here on it does not hear."""
    await eventually(lambda: len(api.asked) == 2)
    assert watched.reflector.synced.is_set()
    api.asked.clear()


async def confirmed(watched: Running) -> None:
    await asyncio.wait_for(watched.reflector.confirm(asyncio.get_running_loop().time()), 5)


async def test_what_is_as_it_was_costs_one_list_of_metadata(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3), thing("b", 4)), hangs())
    async with running(client, selector="x=y") as watched:
        await standing_by(api, watched)
        api.will(things(20, thing("a", 3), thing("b", 4)))
        await confirmed(watched)
        assert watched.versions() == {"a": "3", "b": "4"}
    [asked] = api.asked
    assert (asked.path, asked.query["labelSelector"]) == (PATH, "x=y")
    assert asked.headers["Accept"] == METADATA_ONLY
    assert "resourceVersion" not in asked.query, "a list from a cache may be stale"


async def test_what_the_watch_has_not_told_is_found_out(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("same", 3), thing("changed", 4), thing("gone", 5)), hangs())
    async with running(client, selector="x=y") as watched:
        await standing_by(api, watched)
        api.will(things(20, thing("same", 3), thing("changed", 15)), things(21, thing("changed", 16)))
        await confirmed(watched)
        assert watched.versions() == {"same": "3", "changed": "16"}
    _, read = api.asked
    assert read.path == "/apis/x.dev/v1/namespaces/n/things"
    assert read.query == {"fieldSelector": "metadata.name=changed", "labelSelector": "x=y"}


async def test_what_goes_between_the_list_and_the_read_is_gone(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3)), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(things(20, thing("a", 15)), things(21))
        await confirmed(watched)
        assert watched.versions() == {}


async def test_a_namesake_that_came_between_the_list_and_the_read_is_another(
    api: FakeApi, client: ApiClient
) -> None:
    api.will(things(7, thing("a", 3, "old")), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(things(20, thing("a", 15, "old")), things(23, thing("a", 22, "new")))
        await confirmed(watched)
        assert [found.metadata.uid for found in watched.store] == ["new"]


async def test_much_that_has_changed_is_listed_as_a_whole(api: FakeApi, client: ApiClient) -> None:
    many = [thing(f"t{number}", 100 + number) for number in range(40)]
    api.will(things(7), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(things(200, *many), things(201, *many))
        await confirmed(watched)
        assert len(watched.store) == 40
    assert len(api.asked) == 2


async def test_a_long_comparison_is_read_in_pages(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3), thing("b", 4)), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(things(20, thing("a", 3), more="page2"), things(20, thing("b", 4)))
        await confirmed(watched)
        assert watched.versions() == {"a": "3", "b": "4"}
    assert api.asked[1].query["continue"] == "page2"


async def test_an_empty_list_of_metadata_is_null(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3)), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(says(200, {"metadata": {"resourceVersion": "9"}, "items": None}))
        await confirmed(watched)
        assert watched.versions() == {}


async def test_it_is_tried_until_it_is_known(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3)), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(
            *[cuts()] * 5, says(410, {"code": 410}), things(20, thing("a", 9)), things(21, thing("a", 9))
        )
        await confirmed(watched)
        assert watched.versions() == {"a": "9"}


async def test_an_answer_that_is_no_list_is_asked_for_again(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3)), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(says(200, {"hello": "from a proxy"}), things(20, thing("a", 3)))
        await confirmed(watched)
    assert len(api.asked) == 2


async def test_what_was_in_the_way_of_a_comparison_is_over_when_one_has_succeeded(
    api: FakeApi, client: ApiClient
) -> None:
    api.will(things(7, thing("a", 3)), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(refuses(403, "Forbidden", "not yet"), things(20, thing("a", 3)))
        await confirmed(watched)
        assert watched.reflector.trouble == ""


async def test_a_list_that_began_after_the_taking_over_is_enough(api: FakeApi, client: ApiClient) -> None:
    since = asyncio.get_running_loop().time()
    api.will(things(7, thing("a", 3)), hangs())
    async with running(client) as watched:
        await asyncio.wait_for(watched.reflector.confirm(since), 5)
        await eventually(lambda: len(api.asked) == 2)
    assert [each.query.get("watch") for each in api.asked] == [None, "true"]


async def test_without_a_first_list_it_waits_for_that(api: FakeApi, client: ApiClient) -> None:
    api.will(cuts(), cuts(), cuts(), cuts(), cuts(), things(7, thing("a", 3)), hangs())
    async with running(client) as watched:
        await asyncio.wait_for(watched.reflector.confirm(asyncio.get_running_loop().time()), 5)
        assert watched.versions()["a"] == "3"


async def test_a_watch_that_is_broken_meanwhile_takes_nothing_back(api: FakeApi, client: ApiClient) -> None:
    api.will(things(7, thing("a", 3), thing("b", 4)), hangs())
    async with running(client) as watched:
        await standing_by(api, watched)
        api.will(things(20, thing("a", 9)), things(21, thing("a", 9)))
        await confirmed(watched)
        reflector = watched.reflector
        reflector._version = "7"
        late = (
            event("MODIFIED", thing("b", 5)),
            event("DELETED", thing("b", 6)),
            event("MODIFIED", thing("a", 8)),
        )
        api.will(streams(*late, too_old()), hangs())
        watching = asyncio.create_task(reflector._watch())
        with pytest.raises(Exception, match="too old"):
            await asyncio.wait_for(watching, 5)
        assert watched.versions() == {"a": "9"}


async def test_an_object_that_a_comparison_showed_and_nobody_could_read_is_taken_from_the_watch(
    api: FakeApi, client: ApiClient
) -> None:
    """It was older than the comparison, and counted as gone before that."""
    go = asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await go.wait()
        await response.write(event("ADDED", thing("new", 15)))
        await asyncio.sleep(3600)
        return response

    api.will(things(7, thing("a", 3)), late)
    async with running(client, optional=True) as watched:
        await standing_by(api, watched)
        api.will(things(20, thing("a", 3), thing("new", 15)), refuses(403, "Forbidden", "no"))
        await confirmed(watched)
        go.set()
        await eventually(lambda: watched.versions() == {"a": "3", "new": "15"})


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([NOT_SERVED], id="by the comparison"),
        pytest.param([things(20, thing("a", 3), thing("new", 15)), NOT_SERVED], id="by what it then reads"),
    ],
)
async def test_a_kind_that_a_take_over_alone_found_not_served_is_listed_and_served_again(
    api: FakeApi, client: ApiClient, answers: list[Answer]
) -> None:
    """Its watch was in order and silent, so nobody listed it: no claim was served any more."""
    told: list[bool] = []
    api.will(things(7, thing("a", 3)), hangs())
    async with running(client, on_served=told.append) as watched:
        await standing_by(api, watched)
        api.will(*answers, things(30, thing("a", 3), thing("new", 15)), hangs())
        await confirmed(watched)
        assert told == [False]
        await eventually(lambda: told == [False, True])
        assert watched.versions() == {"a": "3", "new": "15"}
        await eventually(lambda: api.asked[-1].query.get("resourceVersion") == "30")
