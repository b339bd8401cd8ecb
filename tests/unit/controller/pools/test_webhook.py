"""The webhook is asked beside everything else: what it is told, what is taken of its answers and told."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capacity.decision import WebhookAnswer
from controller.claims.desk import Desk
from controller.pools.webhook import MOST_READ, MOST_TOLD, Asker
from crds.warm import Webhook
from tests.support.builders import NOW

Json = dict[str, Any]
Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]

INTERVAL = 30.0
QUESTION: Json = {"pool": {"name": "ci"}}


class Service:
    """Somebody's webhook: `reply` makes its answer, `asked` is what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.reply: Reply = self.says({"replicas": 7})

    def says(self, body: object, status: int = 200) -> Reply:
        async def reply(_request: web.Request) -> web.StreamResponse:
            return web.json_response(body, status=status)

        return reply

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert request.method == "POST"
        self.asked.append(await request.json())
        return await self.reply(request)


class Bench:
    """An asker of the service, and a clock. Plain HTTP: certificates are tried on a real control plane."""

    def __init__(self, service: Service, server: TestServer) -> None:
        self.service, self.server, self.desk, self.now, self.woken = service, server, Desk(1), NOW, 0
        self.asker = Asker("pool", self.desk, lambda: self.now, INTERVAL, self.wake)

    def wake(self) -> None:
        self.woken += 1

    def whom(self, path: str = "/warm", timeout: str = "5s", bundle: str | None = None) -> Webhook:
        url = str(self.server.make_url(path))
        return Webhook.model_construct(url=url, timeout=timeout, ca_bundle=bundle)

    async def ask(self, whom: Webhook | None = None, *, after: float = 0.0) -> WebhookAnswer | None:
        """What is known after one more look."""
        self.now += after
        self.asker.look(whom or self.whom(), lambda: QUESTION)
        await asyncio.gather(*self.desk.tasks, return_exceptions=True)
        return self.asker.heard


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
async def bench(service: Service) -> AsyncIterator[Bench]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.handle)
    server = TestServer(app)
    async with server:
        yield Bench(service, server)


async def test_it_is_asked_and_its_number_is_known_with_the_time(bench: Bench) -> None:
    assert await bench.ask() == WebhookAnswer(7, NOW)
    assert bench.service.asked == [QUESTION]
    assert bench.woken == 1


async def test_it_is_asked_again_when_the_interval_is_over_and_not_before(bench: Bench) -> None:
    await bench.ask()
    await bench.ask(after=0.9 * INTERVAL)
    assert len(bench.service.asked) == 1
    await bench.ask(after=0.2 * INTERVAL)
    assert len(bench.service.asked) == 2


async def test_nobody_is_asked_without_a_webhook_and_what_one_said_is_forgotten(bench: Bench) -> None:
    await bench.ask()
    bench.asker.look(None, lambda: QUESTION)
    assert bench.asker.heard is None
    assert not bench.desk.tasks


async def test_another_address_is_asked_at_once_and_the_first_ones_word_counts_no_more(bench: Bench) -> None:
    await bench.ask()
    bench.service.reply = bench.service.says({}, 503)
    heard = await bench.ask(bench.whom("/other"))
    assert heard is not None
    assert heard.units is None


async def test_an_answer_that_comes_after_the_address_was_changed_is_not_heard(bench: Bench) -> None:
    bench.asker.look(bench.whom("/slow"), lambda: QUESTION)
    bench.service.reply = bench.service.says({"replicas": 9})
    assert await bench.ask(bench.whom("/other")) == WebhookAnswer(9, NOW)
    await bench.ask(bench.whom("/other"), after=2 * INTERVAL)
    assert bench.asker.heard == WebhookAnswer(9, NOW + 2 * INTERVAL)


async def test_while_it_fails_the_last_good_answer_stays_with_its_time(bench: Bench) -> None:
    await bench.ask()
    bench.service.reply = bench.service.says({"error": "planned for tomorrow"}, 503)
    assert await bench.ask(after=INTERVAL) == WebhookAnswer(7, NOW, "it answered 503, not 200")
    bench.service.reply = bench.service.says({"replicas": 2})
    assert await bench.ask(after=INTERVAL) == WebhookAnswer(2, NOW + 2 * INTERVAL)
    assert bench.woken == 3


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"replicas": -1},
        {"replicas": 10_001},
        {"replicas": 2.5},
        {"replicas": "7"},
        {"replicas": None},
        [],
    ],
    ids=str,
)
async def test_an_answer_that_is_no_number_of_vms_is_none(bench: Bench, body: object) -> None:
    bench.service.reply = bench.service.says(body)
    heard = await bench.ask()
    assert heard is not None
    assert heard.units is None
    assert "whole number from 0 to 10000" in heard.error


async def test_more_in_an_answer_harms_nobody(bench: Bench) -> None:
    bench.service.reply = bench.service.says({"replicas": 3, "because": "it is Monday"})
    assert await bench.ask() == WebhookAnswer(3, NOW)


async def test_nothing_that_an_answer_says_is_repeated(bench: Bench) -> None:
    """Who writes a pool could have the controller read addresses that they can't reach."""
    for reply in (bench.service.says("the-secret", 500), bench.service.says({"replicas": "the-secret"})):
        bench.service.reply = reply
        heard = await bench.ask(after=INTERVAL)
        assert heard is not None
        assert "the-secret" not in heard.error


async def test_a_redirect_is_not_followed(bench: Bench) -> None:
    async def elsewhere(_request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("/elsewhere")

    bench.service.reply = elsewhere
    heard = await bench.ask()
    assert heard is not None
    assert heard.error == "it answered 302, not 200"
    assert len(bench.service.asked) == 1


async def test_an_endless_answer_is_not_read_to_its_end(bench: Bench) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 4096)

    bench.service.reply = endless
    heard = await bench.ask()
    assert heard is not None
    assert heard.error == f"its answer is longer than {MOST_READ} bytes"


async def test_one_that_does_not_answer_is_given_up_after_its_timeout(bench: Bench) -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    bench.service.reply = never
    heard = await bench.ask(bench.whom(timeout="50ms"))
    assert heard is not None
    assert heard.error == "it gave no answer within 50ms"


async def test_nobody_is_asked_twice_at_once(bench: Bench) -> None:
    for _ in range(3):
        bench.now += INTERVAL
        bench.asker.look(bench.whom(), lambda: QUESTION)
    await asyncio.gather(*bench.desk.tasks)
    assert len(bench.service.asked) == 1


async def test_one_that_is_not_there_is_told_in_a_few_words(bench: Bench) -> None:
    gone = Webhook.model_construct(url="http://127.0.0.1:1/warm", timeout="1s", ca_bundle=None)
    heard = await bench.ask(gone)
    assert heard is not None
    assert heard.error.startswith("it can't be asked: ClientConnectorError")
    assert len(heard.error) <= MOST_TOLD


@pytest.mark.parametrize("bundle", [b"no certificate", b"-----BEGIN CERTIFICATE-----\nabc"])
async def test_certificates_that_are_none_are_told_and_end_nothing(bench: Bench, bundle: bytes) -> None:
    heard = await bench.ask(bench.whom(bundle=base64.b64encode(bundle).decode()))
    assert heard is not None
    assert heard.error.startswith("it can't be asked: ")
