import asyncio
import json
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from controller.kube import errors
from controller.kube.client import ApiClient, Priority, _translated
from controller.kube.config import Authorization, ClusterConfig
from tests.unit.kube.fake_api import FakeApi, cuts, eventually, refuses, says, serving, stalls, streams

PATH = "/api/v1/namespaces/n/things"
ONE = f"{PATH}/a"
OPS = [{"op": "test", "path": "/metadata/uid", "value": "u"}]


class Pauses(list[float]):
    """A sleep that only notes for how long."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with serving() as served:
        yield served


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def client(api: FakeApi, pauses: Pauses) -> AsyncIterator[ApiClient]:
    async with api.client(timeout=2.0, sleep=pauses) as made:
        yield made


async def patch(client: ApiClient, priority: Priority = Priority.HAND_OVER) -> bytes:
    return await client.json_patch(ONE, OPS, priority=priority, step="assign")


# What is sent


async def test_a_json_patch_carries_its_type_its_deadline_and_its_step(
    api: FakeApi, client: ApiClient
) -> None:
    api.will(says(200, {"kind": "Thing"}))
    assert json.loads(await patch(client)) == {"kind": "Thing"}
    [asked] = api.asked
    assert (asked.method, asked.path) == ("PATCH", ONE)
    assert asked.query == {"timeout": "2000ms"}
    assert asked.headers["Content-Type"] == "application/json-patch+json"
    assert asked.headers["X-Bullpen-Step"] == "assign"
    assert json.loads(asked.body) == OPS


async def test_each_verb_uses_its_method_and_content_type(api: FakeApi, client: ApiClient) -> None:
    await client.post(PATH, {}, priority=Priority.REFILL, step="create", params={"dryRun": "All"})
    await client.merge_patch(ONE, {}, priority=Priority.STATUS, step="status")
    await client.put(ONE, {}, priority=Priority.STATUS, step="put")
    await client.get(PATH, {"labelSelector": "a in (b,c)"})
    sent = [(asked.method, asked.headers.get("Content-Type")) for asked in api.asked]
    assert sent == [
        ("POST", "application/json"),
        ("PATCH", "application/merge-patch+json"),
        ("PUT", "application/json"),
        ("GET", None),
    ]
    assert api.asked[0].query == {"dryRun": "All", "timeout": "2000ms"}
    assert api.asked[3].query == {"labelSelector": "a in (b,c)"}


async def test_a_delete_names_the_uid_it_means(api: FakeApi, client: ApiClient) -> None:
    await client.delete(ONE, uid="u1", priority=Priority.RELEASE, step="release", propagation="Background")
    body = json.loads(api.asked[0].body)
    assert body["preconditions"] == {"uid": "u1"}
    assert body["propagationPolicy"] == "Background"
    await client.delete(ONE, uid="u1", priority=Priority.RELEASE, step="release")
    assert "propagationPolicy" not in json.loads(api.asked[1].body)


async def test_answers_are_asked_for_uncompressed(api: FakeApi, client: ApiClient) -> None:
    await client.get(PATH)
    assert api.asked[0].headers["Accept-Encoding"] == "identity"


async def test_a_refused_token_is_read_again_for_the_next_try(api: FakeApi, pauses: Pauses) -> None:
    tokens = iter(["Bearer old", "Bearer new"])
    config = ClusterConfig(server=api.url, authorization=Authorization(lambda: next(tokens)))
    api.will(refuses(401, "Unauthorized"), says(200))
    async with ApiClient(config, sleep=pauses) as client:
        await client.get(PATH)
    assert [asked.headers["Authorization"] for asked in api.asked] == ["Bearer old", "Bearer new"]


async def test_a_write_whose_token_was_rotated_is_sent_again_with_the_new_one(
    api: FakeApi, pauses: Pauses
) -> None:
    tokens = iter(["Bearer old", "Bearer new"])
    config = ClusterConfig(server=api.url, authorization=Authorization(lambda: next(tokens)))
    api.will(refuses(401, "Unauthorized"), says(200))
    async with ApiClient(config, sleep=pauses) as client:
        await patch(client)
    assert [asked.headers["Authorization"] for asked in api.asked] == ["Bearer old", "Bearer new"]


# What comes back


async def test_a_refusal_is_raised_as_what_it_means(api: FakeApi, client: ApiClient) -> None:
    api.will(refuses(422, "Invalid", "the server rejected our request due to an error in our request"))
    with pytest.raises(errors.TestFailed):
        await patch(client)
    assert len(api.asked) == 1


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_a_write_that_the_server_failed_at_is_unknown_and_sent_once(
    api: FakeApi, client: ApiClient, code: int
) -> None:
    api.will(refuses(code, "InternalError"))
    with pytest.raises(errors.UnknownOutcome) as caught:
        await patch(client)
    assert not isinstance(caught.value, errors.NotSent)
    assert len(api.asked) == 1


async def test_a_write_whose_connection_was_cut_is_unknown_and_sent_once(
    api: FakeApi, client: ApiClient
) -> None:
    api.will(cuts())
    with pytest.raises(errors.UnknownOutcome):
        await patch(client)
    assert len(api.asked) == 1


async def test_a_write_on_an_old_connection_is_not_sent_again_by_the_library(
    api: FakeApi, client: ApiClient
) -> None:
    api.will(says(200), cuts())
    await client.get(PATH)
    with pytest.raises(errors.UnknownOutcome):
        await client.post(PATH, {}, priority=Priority.REFILL, step="create")
    assert [asked.method for asked in api.asked] == ["GET", "POST"]


async def test_an_answer_cut_in_its_middle_is_unknown(api: FakeApi, client: ApiClient) -> None:
    api.will(streams(b'{"kind":', then="cut"))
    with pytest.raises(errors.UnknownOutcome):
        await patch(client)


async def test_a_write_that_takes_longer_than_its_deadline_is_unknown(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.kube.client._GRACE", 0.05)
    api.will(stalls())
    async with api.client(timeout=0.1) as client:
        with pytest.raises(errors.UnknownOutcome):
            await patch(client)


async def test_a_write_that_found_no_server_is_known_not_to_be_sent() -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else gets it, nobody answers
        taken.bind(("127.0.0.1", 0))
        config = ClusterConfig(server=f"http://127.0.0.1:{taken.getsockname()[1]}")
        async with ApiClient(config) as client:
            with pytest.raises(errors.NotSent):
                await patch(client)


async def test_a_write_that_was_told_to_come_back_does_so_when_told(
    api: FakeApi, client: ApiClient, pauses: Pauses
) -> None:
    api.will(refuses(429, "TooManyRequests", Retry_After="2"), refuses(429, Retry_After="90"), says(201))
    await patch(client)
    assert len(api.asked) == 3
    assert 2.0 <= pauses[0] <= 2.6
    assert pauses[1] <= 6.5, "an hour's Retry-After must not hang a hand-over"


async def test_a_write_gives_up_when_it_is_put_off_for_ever(api: FakeApi, client: ApiClient) -> None:
    api.otherwise = refuses(429, "TooManyRequests", Retry_After="1")
    with pytest.raises(errors.TooManyRequests) as caught:
        await patch(client)
    assert caught.value.retry_after == 1.0
    assert len(api.asked) == 5
    assert client.gate.in_flight == 0


async def test_a_write_that_waits_to_come_back_holds_no_slot(api: FakeApi) -> None:
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def pause(_: float) -> None:
        waiting.set()
        await go_on.wait()

    api.will(refuses(429, Retry_After="1"), says(200), says(200))
    async with api.client(max_writes_in_flight=1, sleep=pause) as client:
        put_off = asyncio.create_task(patch(client))
        await waiting.wait()
        await patch(client)
        go_on.set()
        await put_off


async def test_a_read_is_tried_again_after_a_cut_an_error_and_a_429(
    api: FakeApi, client: ApiClient, pauses: Pauses
) -> None:
    api.will(cuts(), refuses(503), refuses(429, Retry_After="1"), says(200, {"here": 1}))
    assert json.loads(await client.get(PATH)) == {"here": 1}
    assert len(pauses) >= 2  # the library may have repeated the cut one by itself


async def test_a_read_gives_up_in_the_end(api: FakeApi, client: ApiClient) -> None:
    api.otherwise = refuses(503)
    with pytest.raises(errors.UnknownOutcome):
        await client.get(PATH)
    assert len(api.asked) == 5


async def test_a_read_that_was_answered_no_is_not_repeated(api: FakeApi, client: ApiClient) -> None:
    api.will(refuses(404, "NotFound"))
    with pytest.raises(errors.NotFound):
        await client.get(ONE)
    assert len(api.asked) == 1


# The queue and the lease


class Held:
    """Answers that wait until they are let go."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.go = asyncio.Semaphore(0)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.steps.append(request.headers["X-Bullpen-Step"])
        await self.go.acquire()
        return web.json_response({})


async def test_a_hand_over_overtakes_what_waits(api: FakeApi) -> None:
    held = Held()
    api.otherwise = held
    async with api.client(max_writes_in_flight=1) as client:
        first = asyncio.create_task(patch(client, Priority.STATUS))
        await eventually(lambda: held.steps)
        tasks = [first]
        for step, priority in (("status", Priority.STATUS), ("hand-over", Priority.HAND_OVER)):
            tasks.append(asyncio.create_task(client.merge_patch(ONE, {}, priority=priority, step=step)))
            await asyncio.sleep(0)
        for _ in tasks:
            held.go.release()
        await asyncio.gather(*tasks)
    assert held.steps == ["assign", "hand-over", "status"]


async def test_reads_do_not_wait_behind_writes(api: FakeApi) -> None:
    held = Held()
    async with api.client(max_writes_in_flight=1) as client:
        api.will(held)
        write = asyncio.create_task(patch(client))
        await eventually(lambda: held.steps)
        await client.get(PATH)
        held.go.release()
        await write


async def test_a_write_that_is_cancelled_in_the_queue_or_on_its_way_loses_no_slot(api: FakeApi) -> None:
    held = Held()
    api.otherwise = held
    async with api.client(max_writes_in_flight=1) as client:
        on_its_way = asyncio.create_task(patch(client))
        await eventually(lambda: held.steps)
        queued = asyncio.create_task(patch(client))
        await asyncio.sleep(0)
        for task in (queued, on_its_way):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (client.gate.in_flight, client.gate.waiting) == (0, 0)
        api.otherwise = None
        await patch(client)


async def test_a_write_cancelled_in_the_moment_it_is_admitted_loses_no_slot(api: FakeApi) -> None:
    async with api.client(max_writes_in_flight=1) as client:
        slot = client.gate.ask(Priority.STATUS, 0.0)
        queued = asyncio.create_task(patch(client))
        await eventually(lambda: client.gate.waiting)
        client.gate.leave(slot, 0.0)  # admits the other one
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        assert client.gate.in_flight == 0


@pytest.mark.parametrize("left", [0.0, 1.0, 2.0])
async def test_a_write_that_could_outlive_the_lease_is_never_sent(
    api: FakeApi, client: ApiClient, left: float
) -> None:
    client.lease_left = lambda: left
    with pytest.raises(errors.NotLeading):
        await patch(client)
    assert api.asked == []
    assert client.gate.in_flight == 0


async def test_the_lease_is_looked_at_when_the_write_goes_not_when_it_queued(api: FakeApi) -> None:
    left = 10.0
    async with api.client(timeout=2.0, max_writes_in_flight=1) as client:
        client.lease_left = lambda: left
        slot = client.gate.ask(Priority.STATUS, 0.0)
        queued = asyncio.create_task(patch(client))
        await eventually(lambda: client.gate.waiting)
        left = 1.0
        client.gate.leave(slot, 0.0)
        with pytest.raises(errors.NotLeading):
            await queued
    assert api.asked == []


async def test_reads_need_no_lease(api: FakeApi, client: ApiClient) -> None:
    client.lease_left = lambda: 0.0
    await client.get(PATH)
    assert len(api.asked) == 1


# Time and figures


async def test_the_servers_time_comes_from_its_answers(api: FakeApi, client: ApiClient) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=5)
    api.will(says(200, Date=format_datetime(ahead, usegmt=True)))
    await client.get(PATH)
    assert abs((client.server_time() - ahead).total_seconds()) < 2.0
    assert -18003 < client.host_ahead() < -17997


async def test_a_server_with_our_time_agrees(client: ApiClient) -> None:
    await client.get(PATH)
    assert client.host_ahead() == 0.0
    assert client.server_time().utcoffset() == timedelta(0)


async def test_each_request_is_counted_with_its_step_and_answer(api: FakeApi, client: ApiClient) -> None:
    seen: list[tuple[str, int]] = []
    client.on_request = lambda step, status, seconds: seen.append((step, status if seconds >= 0 else -1))
    api.will(says(200), refuses(409, "Conflict"), cuts())
    await client.get(PATH)
    with pytest.raises(errors.Conflict):
        await patch(client)
    with pytest.raises(errors.UnknownOutcome):
        await patch(client)
    assert seen == [("get", 200), ("assign", 409), ("assign", 0)]


async def test_after_draining_every_write_is_answered_and_none_was_sent_meanwhile(
    api: FakeApi, client: ApiClient
) -> None:
    answered = asyncio.Event()

    async def late(_: web.Request) -> web.StreamResponse:
        await answered.wait()
        return web.json_response({})

    client.lease_left = lambda: 60.0
    api.will(late)
    under_way = asyncio.create_task(patch(client))
    await eventually(lambda: len(api.asked) == 1)
    draining = asyncio.create_task(client.drained())
    await asyncio.sleep(0)
    with pytest.raises(errors.NotLeading):
        await patch(client)
    assert not draining.done()
    answered.set()
    await asyncio.wait_for(draining, 5)
    assert under_way.done()
    await patch(client)
    assert len(api.asked) == 2, "then the last words may be said"


async def test_the_audit_log_can_tell_who_wrote_and_the_field_manager_is_the_same(api: FakeApi) -> None:
    for identity, agent in (("", "bullpen"), ("pod-1", "bullpen/pod-1"), ("a b\nä", "bullpen/a_b__")):
        async with api.client(identity=identity) as client:
            await client.get(PATH)
        assert api.asked[-1].headers["User-Agent"] == agent


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(
            RuntimeError("File descriptor 14 is used by transport <TCPTransport closed=False reading=True>"),
            errors.NotSent,
            id="a number that a connection given up before still has",
        ),
        pytest.param(RuntimeError("something else"), RuntimeError, id="a mistake of ours stays one"),
    ],
)
def test_an_error_of_the_loop_ends_no_controller(error: RuntimeError, told: type[Exception]) -> None:
    """It ended a standby in an outage of the API server, which would have tried again."""
    with pytest.raises(told), _translated():
        raise error
