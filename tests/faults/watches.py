"""What may go wrong with an open watch: it ends, its events come late, it expires while objects vanish."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from aiohttp import StreamReader

from tests.faults.addresses import Nature, event_address
from tests.faults.answers import expired_event
from tests.faults.kinds import Kind
from tests.faults.ledger import Ledger

DELAY = 1.5  # seconds
_BOOKMARK = b'{"type":"BOOKMARK"'


class Down(Protocol):
    """The answer to the controller."""

    async def write(self, data: bytes, /) -> None: ...


class Tap:
    """Which kinds are held at the moment: a watch that is opened again waits for the end of that, too."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    async def free(self, plural: str) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._held[plural])

    async def held(self, plural: str, work: Awaitable[None]) -> None:
        """No event of this kind gets through until the work is done."""
        self._held[plural] += 1
        try:
            await work
        finally:
            self._held[plural] -= 1
            async with self._changed:
                self._changed.notify_all()


async def lines(content: StreamReader) -> AsyncIterator[bytes]:
    """Whole lines, without their end, as soon as they are there."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


async def relay(
    content: StreamReader,
    down: Down,
    ledger: Callable[[], Ledger],
    tap: Tap,
    plural: str,
    vanish: Callable[[str], Awaitable[None]],
) -> bool:
    """Pass a watch on, line by line; whether it came to its proper end, and False if it is to be cut."""
    async for line in lines(content):
        kind = _fault(ledger(), plural, line)
        if kind is Kind.CUT:
            return False
        if kind is Kind.DELAY:
            await asyncio.sleep(DELAY)
        elif kind is Kind.VANISH:
            await tap.held(plural, vanish(plural))
        if kind in {Kind.VANISH, Kind.EXPIRED}:
            await down.write(expired_event() + b"\n")
            return True
        await down.write(line + b"\n")
    return True


def _fault(ledger: Ledger, plural: str, line: bytes) -> Kind | None:
    if line.startswith(_BOOKMARK):
        return None  # the API server's own, about once a minute
    found = ledger.arrive(event_address(plural), Nature.EVENT)
    return None if found is None else found.kind
