"""An API server that answers the load generator from memory, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import orjson

from benchmarks.bare import RefusedError
from simulator.api import JSON


class FakeApi:
    """Takes the place of `Bare`. Objects get a uid; each line put into `events` is shown by the watch."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.refuses: dict[str, int] = {}
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(self, method: str, path: str, body: bytes | None = None, kind: str = JSON) -> bytes:
        assert kind
        await asyncio.sleep(0)
        self.asked.append((method, path))
        self.bodies.append(orjson.loads(body) if body else None)
        if method in self.refuses:
            raise RefusedError(self.refuses[method], path)
        return orjson.dumps({"metadata": {"uid": f"uid-{len(self.asked)}"}})

    async def remove(self, path: str, options: bytes | None = None) -> None:
        await self.send("DELETE", path, options)

    async def pages(self, path: str, selector: str = "") -> AsyncIterator[tuple[list[msgspec.Raw], str]]:
        assert path
        assert not selector
        yield [], "1"

    async def watch(self, path: str, version: str) -> AsyncIterator[list[bytes]]:
        assert path
        assert version == "1"
        while (event := await self.events.get()) is not None:
            yield [event]

    def show(self, kind: str, name: str, **status: Any) -> None:
        seen = {"type": kind, "object": {"metadata": {"name": name}, "status": status or None}}
        self.events.put_nowait(orjson.dumps(seen))

    def show_bound(self, name: str, *, ready: bool = True, warm: bool = True) -> None:
        condition = {"type": "Ready", "status": str(ready)}
        self.show("MODIFIED", name, phase="Bound", virtualMachines=[{"warm": warm}], conditions=[condition])

    def made(self) -> list[str]:
        """The names of what was created, in order."""
        return [
            body["metadata"]["name"]
            for (method, _), body in zip(self.asked, self.bodies, strict=True)
            if method == "POST"
        ]
