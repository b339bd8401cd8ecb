"""Asks a pool's `spec.warm.webhook` how many VMs to keep: now and then, beside everything else.

It must never hold up a pass, follow a redirect, or repeat what an answer says: whoever writes the pool
chooses the address and reads the status. How long an answer counts is not its business.
"""

import asyncio
import base64
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import aiohttp
import msgspec
import structlog

from capacity.decision import WebhookAnswer
from controller.claims.desk import Desk
from crds.durations import seconds
from crds.warm import Webhook

log = structlog.get_logger()

Json = dict[str, Any]

MOST_READ = 64 * 1024  # bytes of an answer
MOST_TOLD = 200  # characters of why one could not be had


class _Body(msgspec.Struct):
    replicas: Annotated[int, msgspec.Meta(ge=0, le=10_000)]


_DECODER = msgspec.json.Decoder(_Body)


class UnfitAnswerError(Exception):
    """It answered, and that can't be used; the message says why."""


class Asker:
    """Of one pool. `heard` is None where nobody is to be asked, or was yet; `wake` is called when it is new.

    `interval`: seconds between two questions.
    """

    def __init__(
        self, pool: str, desk: Desk, now: Callable[[], float], interval: float, wake: Callable[[], None]
    ) -> None:
        self.heard: WebhookAnswer | None = None
        self.due = 0.0
        self._pool = pool
        self._desk = desk
        self._now = now
        self._interval = interval
        self._wake = wake
        self._asked: Webhook | None = None
        self._asking: asyncio.Task[object] | None = None

    def look(self, whom: Webhook | None, question: Callable[[], Json]) -> None:
        """Ask if it is time to. What another address said is forgotten."""
        if whom != self._asked:
            if self._asking is not None:
                self._asking.cancel()
            self._asked, self._asking, self.heard, self.due = whom, None, None, 0.0
        if whom is None or self._asking is not None or self._now() < self.due:
            return
        self.due = self._now() + self._interval
        self._asking = self._desk.start(self._ask(whom, question()))

    async def _ask(self, whom: Webhook, question: Json) -> None:
        before = self.heard
        try:
            self.heard = WebhookAnswer(await asked(whom, question), self._now())
        except UnfitAnswerError as error:
            self._failed(str(error))
        except TimeoutError:
            self._failed(f"it gave no answer within {whom.timeout}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self._failed(f"it can't be asked: {type(error).__name__}: {error}"[:MOST_TOLD])
        finally:
            if self._asking is asyncio.current_task():
                self._asking = None
            if self.heard != before:
                self._wake()

    def _failed(self, why: str) -> None:
        known = self.heard or WebhookAnswer(None, 0.0)
        if known.error != why:
            log.warning("webhook gives no answer", pool=self._pool, why=why)
        self.heard = replace(known, error=why)


async def asked(whom: Webhook, question: Json) -> int:
    """How many VMs it wants.

    Raises:
        UnfitAnswerError: it answered something else.
        TimeoutError, aiohttp.ClientError, OSError, ValueError: it could not be asked; ValueError and
            ssl.SSLError (an OSError) for a caBundle that is none.
    """
    trust = ssl.create_default_context(cadata=_pem(whom.ca_bundle)) if whom.ca_bundle else True
    limits = aiohttp.ClientTimeout(total=seconds(whom.timeout))
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=limits) as session,
        session.post(whom.url, json=question, ssl=trust, allow_redirects=False) as answer,
    ):
        if answer.status != 200:  # noqa: PLR2004 - the one that means: here it is
            raise UnfitAnswerError(f"it answered {answer.status}, not 200")
        return _replicas(await _read(answer))


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > MOST_READ:
            raise UnfitAnswerError(f"its answer is longer than {MOST_READ} bytes")
    return body


def _replicas(body: bytes) -> int:
    try:
        return _DECODER.decode(body).replicas
    except msgspec.MsgspecError:
        raise UnfitAnswerError(
            'its answer is not {"replicas": n} with a whole number from 0 to 10000'
        ) from None


def _pem(bundle: str) -> str:
    return base64.b64decode(bundle).decode("ascii")
