"""People with claims: they create them, watch them and delete them, and write down in which order what came.

Their client retries until the API server has answered, as a person would; they never look at VMs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import count
from time import monotonic
from typing import Any

import msgspec

from crds.names import API_VERSION, CLAIMS
from simulator.api import Api, ApiError, Event
from tests.support.manifests import claim_manifest
from tests.trials.fairness import Life

AT_ONCE = 64  # requests of the crowd in flight
_NOT_FOUND, _CONFLICT = 404, 409
_POLL = 0.02  # seconds


class _Meta(msgspec.Struct):
    name: str
    uid: str


class _Condition(msgspec.Struct):
    type: str
    reason: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class _Claim(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


_claim = msgspec.json.Decoder(_Claim).decode


class Crowd:
    """All claims of one namespace, by name, as its one watch shows them."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.lives: dict[str, Life] = {}
        self.past: list[Life] = []  # of those whose name somebody else has now
        self._api = api
        self._path = f"/apis/{API_VERSION}/namespaces/{namespace}/{CLAIMS}"
        self._arrivals, self._services = count(1), count(1)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._listed = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def gathered(cls, api: Api, namespace: str) -> AsyncIterator[Crowd]:
        """A crowd that watches for as long as the block runs."""
        crowd = cls(api, namespace)
        watching = asyncio.create_task(crowd._watch())
        try:
            await crowd._listed.wait()
            yield crowd
            if watching.done():
                watching.result()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    # ---- what they do

    async def create(self, name: str, pool: str, **spec: Any) -> None:
        """Ask for a VM. Returns when the API server has the claim, however often it has to be told."""
        manifest = claim_manifest(name, pool, **spec)
        await self._insist(lambda: self._api.post(self._path, manifest), _CONFLICT)

    async def burst(self, names: Iterable[str], pool: str, **spec: Any) -> None:
        """All at once."""
        await asyncio.gather(*(self.create(name, pool, **spec) for name in names))

    async def delete(self, name: str, propagation: str = "Background") -> None:
        """Give it back. Returns when the API server knows, or has no such claim."""
        path = f"{self._path}/{name}?propagationPolicy={propagation}"
        await self._insist(lambda: self._api.delete(path), _NOT_FOUND)

    async def replace(self, name: str, pool: str, propagation: str = "Background", **spec: Any) -> None:
        """Give it back, and ask for one of the same name as soon as the API server takes it."""
        await self.delete(name, propagation)
        manifest = claim_manifest(name, pool, **spec)
        await self._insist(lambda: self._api.post(self._path, manifest), passing=_CONFLICT)

    async def patch(self, name: str, **spec: Any) -> None:
        """Change what it asks for."""
        await self._insist(lambda: self._api.merge_patch(f"{self._path}/{name}", {"spec": spec}), _NOT_FOUND)

    async def delete_all(self) -> None:
        await asyncio.gather(*(self.delete(name) for name in self.living()))

    async def _insist(self, send: Callable[[], Any], fine: int = 0, passing: int = 0) -> None:
        """Until it is answered; `fine` is an answer as good as success, `passing` one that will change."""
        async with self._room:
            while True:
                try:
                    await send()
                except ApiError as error:
                    if fine and error.status == fine:
                        return
                    if not (error.passing or error.status == passing):
                        raise
                    await asyncio.sleep(0.1)
                else:
                    return

    # ---- what they see

    def living(self) -> list[str]:
        """The claims that are there, in the order of their arrival."""
        return [life.name for life in self.lives.values() if life.arrival and not life.ended]

    def of(self, names: Iterable[str]) -> list[Life]:
        """Those of them that the watch has shown."""
        return [self.lives[name] for name in names if name in self.lives]

    async def until(self, what: str, holds: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until it holds; AssertionError when it does not in time."""
        deadline = monotonic() + seconds
        while not holds():
            assert monotonic() < deadline, f"not {what} within {seconds:g} s"
            await asyncio.sleep(_POLL)

    async def served(self, names: Iterable[str], seconds: float = 60.0) -> list[Life]:
        """Wait until all of them were bound; their lives."""
        wanted = list(names)
        await self.until(
            f"all {len(wanted)} claims bound",
            lambda: sum(each.served for each in self.of(wanted)) == len(wanted),
            seconds,
        )
        return self.of(wanted)

    async def _watch(self) -> None:
        async for news in self._api.follow(self._path):
            now = monotonic()
            if isinstance(news, Event):
                self._take(_claim(news.object), now, gone=news.type == "DELETED")
                continue
            here = [_claim(item) for item in news.items]
            for name in self.lives.keys() - {each.metadata.name for each in here}:
                self.lives[name].ended = self.lives[name].ended or now
            for each in here:
                self._take(each, now, gone=False)
            self._listed.set()

    def _take(self, claim: _Claim, now: float, *, gone: bool) -> None:
        name = claim.metadata.name
        life = self.lives.get(name)
        if life is not None and life.uid != claim.metadata.uid:
            self.past.append(life)
            life.ended = life.ended or now
            life = None
        if life is None:
            life = self.lives[name] = Life(name, claim.metadata.uid, next(self._arrivals), now)
        life.phase = claim.status.phase
        life.reason = next((each.reason for each in claim.status.conditions if each.type == "Finished"), "")
        if claim.status.phase == "Bound" and not life.served:
            life.service, life.bound = next(self._services), now
        if gone:
            life.ended = now
