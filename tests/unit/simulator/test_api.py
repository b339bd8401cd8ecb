"""The bare client: one request for each call, errors with their sentences, a watch that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from aiohttp import web

from simulator.api import Api, ApiError, Cluster, Event, Listing
from tests.unit.kube.fake_api import Answer, FakeApi, refuses, says, serving

PATH = "/apis/x/v1/things"


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    async with serving() as fake:
        yield fake


@pytest.fixture
async def api(server: FakeApi) -> AsyncIterator[Api]:
    async with Api(Cluster(server.url, None, lambda: "Bearer t")) as client:
        yield client


def thing(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def page(*things: dict[str, Any], version: int, more: str = "") -> Answer:
    return says(200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(things)})


def streams(*chunks: bytes) -> Answer:
    """A watch that sends these pieces, wherever lines break, and ends."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.01)
        return response

    return answer


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


async def seen(api: Api, count: int) -> list[tuple[str, list[str]]]:
    """The first so many things that following tells."""
    told: list[tuple[str, list[str]]] = []
    async with asyncio.timeout(10):
        async for each in api.follow(PATH):
            if isinstance(each, Listing):
                told.append(("LIST", [orjson.loads(memoryview(i))["metadata"]["name"] for i in each.items]))
            else:
                assert isinstance(each, Event)
                told.append((each.type, [orjson.loads(memoryview(each.object))["metadata"]["name"]]))
            if len(told) == count:
                return told
    raise AssertionError(told)


async def test_a_body_is_json_and_the_token_goes_along(api: Api, server: FakeApi) -> None:
    await api.post(PATH, {"a": 1})
    (asked,) = server.asked
    assert (asked.method, asked.path, orjson.loads(asked.body)) == ("POST", PATH, {"a": 1})
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["Authorization"] == "Bearer t"


async def test_patches_name_their_kind_and_deletes_their_preconditions(api: Api, server: FakeApi) -> None:
    await api.json_patch(PATH, [{"op": "remove", "path": "/x"}])
    await api.merge_patch(PATH, {"x": None})
    await api.delete(PATH, uid="u", resourceVersion="5")
    await api.delete(PATH)
    kinds = [asked.headers["Content-Type"] for asked in server.asked]
    assert kinds[:2] == ["application/json-patch+json", "application/merge-patch+json"]
    assert orjson.loads(server.asked[2].body)["preconditions"] == {"uid": "u", "resourceVersion": "5"}
    assert server.asked[3].body == b""


@pytest.mark.parametrize(("status", "passing"), [(409, False), (422, False), (429, True), (503, True)])
async def test_a_refusal_is_raised_with_its_sentence_and_never_repeated(
    api: Api, server: FakeApi, status: int, *, passing: bool
) -> None:
    server.will(refuses(status, "Because", "of this", Retry_After="2"))
    with pytest.raises(ApiError, match="of this") as caught:
        await api.put(PATH, {})
    assert (caught.value.status, caught.value.reason, caught.value.passing) == (status, "Because", passing)
    assert caught.value.retry_after == 2.0
    assert len(server.asked) == 1


async def test_no_answer_is_status_nought() -> None:
    async with Api(Cluster("http://127.0.0.1:1", None, lambda: None)) as api:
        with pytest.raises(ApiError) as caught:
            await api.get(PATH)
    assert caught.value.status == 0
    assert caught.value.passing


async def test_a_socket_whose_number_is_taken_still_is_no_answer_either(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the stand-in when an API server was killed under it."""
    said = ["File descriptor 13 is used by transport <TCPTransport closed=False reading=True>"]

    def request(*_: object, **__: object) -> None:
        raise RuntimeError(*said)

    monkeypatch.setattr(api._session, "request", request)
    with pytest.raises(ApiError) as caught:
        await api.get(PATH)
    assert caught.value.status == 0
    said[:] = ["Session is closed"]
    with pytest.raises(RuntimeError, match="Session is closed"):
        await api.get(PATH)


async def test_a_watch_goes_on_after_a_socket_whose_number_is_taken(
    api: Api, server: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api._session is not None
    real, refused = api._session.get, ["File descriptor 13 is used by transport <TCPTransport>"]

    def get(*arguments: Any, **settings: Any) -> Any:
        if refused:
            raise RuntimeError(refused.pop())
        return real(*arguments, **settings)

    monkeypatch.setattr(api._session, "get", get)
    server.will(page(version=7), streams(line("ADDED", thing("a", 8))))
    assert await seen(api, 2) == [("LIST", []), ("ADDED", ["a"])]
    assert not refused


async def test_a_list_is_read_page_by_page_and_consistently(api: Api, server: FakeApi) -> None:
    server.will(page(thing("a", 1), version=7, more="next"), page(thing("b", 2), version=7))
    listing = await api.list(PATH)
    assert len(listing.items) == 2
    assert listing.resource_version == "7"
    assert [asked.query.get("continue") for asked in server.asked] == [None, "next"]
    assert all("resourceVersion" not in asked.query for asked in server.asked)


async def test_a_line_may_come_in_pieces_and_several_in_one(api: Api, server: FakeApi) -> None:
    first, second = line("ADDED", thing("a", 8)), line("DELETED", thing("b", 9))
    server.will(page(version=7), streams(first[:20], first[20:] + second))
    assert await seen(api, 3) == [("LIST", []), ("ADDED", ["a"]), ("DELETED", ["b"])]
    assert server.asked[1].query["resourceVersion"] == "7"


async def test_an_ended_watch_goes_on_from_the_last_event_or_bookmark(api: Api, server: FakeApi) -> None:
    server.will(
        page(version=7),
        streams(line("ADDED", thing("a", 8)), line("BOOKMARK", thing("", 20))),
        streams(line("MODIFIED", thing("a", 21))),
    )
    assert await seen(api, 3) == [("LIST", []), ("ADDED", ["a"]), ("MODIFIED", ["a"])]
    assert server.asked[2].query["resourceVersion"] == "20"


@pytest.mark.parametrize(
    "lost",
    [
        refuses(410, "Expired", "too old"),
        streams(line("ERROR", {"kind": "Status", "code": 410, "message": "too old"})),
    ],
    ids=["answer", "event"],
)
async def test_a_lost_watch_is_begun_anew_by_a_list(api: Api, server: FakeApi, lost: Answer) -> None:
    server.will(page(thing("a", 1), version=7), lost, page(thing("b", 30), version=31))
    assert await seen(api, 2) == [("LIST", ["a"]), ("LIST", ["b"])]


async def test_a_watch_outlives_an_api_server_that_is_away_for_a_moment(api: Api, server: FakeApi) -> None:
    server.will(page(version=7), refuses(503), refuses(500), streams(line("ADDED", thing("a", 8))))
    assert await seen(api, 2) == [("LIST", []), ("ADDED", ["a"])]


async def test_a_wrong_address_is_told_at_once(api: Api, server: FakeApi) -> None:
    server.will(refuses(404, "NotFound", "no such kind"))
    with pytest.raises(ApiError, match="no such kind"):
        await seen(api, 1)
