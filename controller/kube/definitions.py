"""Waits until the API server serves Bullpen's own kinds: without them there is nothing to lead.

It asks by discovery, which every client may, and decides nothing from any other trouble: whoever goes on then
meets that trouble and says so.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from controller.kube.client import ApiClient
from controller.kube.errors import ApiError, NotFound, NotServed

_PAUSE = 2.0  # s between two looks

log = structlog.get_logger(__name__)


class _Kind(msgspec.Struct):
    name: str = ""


class _Kinds(msgspec.Struct):
    resources: list[_Kind] = []


_KINDS = msgspec.json.Decoder(_Kinds)


class Definitions:
    """`await wait()`; meanwhile `trouble` says what is missing and what to do about it."""

    def __init__(
        self,
        client: ApiClient,
        version: str,
        plurals: tuple[str, ...],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._version = version
        self._plurals = plurals
        self._sleep = sleep
        self.trouble = ""

    async def wait(self) -> None:
        """Return when all of them are served, or when that can't be told."""
        while missing := await self._missing():
            kinds = " and no ".join(missing)
            if not self.trouble:
                log.warning("waiting for Bullpen's definitions", missing=missing, version=self._version)
            self.trouble = (
                f"the API server serves no {kinds} ({self._version}): apply Bullpen's definitions "
                "(the chart does, or `kubectl apply -f crds/manifests`); no restart is needed"
            )
            await self._sleep(_PAUSE * random.uniform(0.7, 1.3))
        self.trouble = ""

    async def _missing(self) -> list[str]:
        try:
            body = await self._client.send("GET", f"/apis/{self._version}", step="definitions", limit=5.0)
            served = {each.name for each in _KINDS.decode(body).resources}
        except (NotServed, NotFound):
            served = set()
        except (ApiError, msgspec.MsgspecError):
            return []
        return [plural for plural in self._plurals if plural not in served]
