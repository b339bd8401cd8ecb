"""What the proxy does with the lines of a watch."""

from __future__ import annotations

import asyncio

from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

from tests.faults.kinds import Fault, Kind
from tests.faults.ledger import Ledger
from tests.faults.watches import Tap, lines, relay

LINES = [b'{"type":"ADDED"}', b'{"type":"BOOKMARK"}', b'{"type":"MODIFIED"}', b'{"type":"DELETED"}']


class Down:
    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def write(self, data: bytes, /) -> None:
        self.got += data.splitlines()


def _stream(*chunks: bytes) -> StreamReader:
    reader = StreamReader(BaseProtocol(asyncio.get_running_loop()), 2**16)
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return reader


async def _relayed(*faults: Fault, vanished: list[str] | None = None) -> tuple[bool, list[bytes]]:
    down, ledger, stream = Down(), Ledger(faults), _stream(b"\n".join(LINES) + b"\n")

    async def vanish(plural: str) -> None:
        assert vanished is not None
        vanished.append(plural)

    whole = await relay(stream, down, lambda: ledger, Tap(), "vms", vanish)
    return whole, down.got


async def test_lines_are_whole_however_they_come() -> None:
    assert [line async for line in lines(_stream(b"a", b"b\nc\n", b"\nd"))] == [b"ab", b"c", b""]


async def test_without_a_fault_everything_is_passed_on() -> None:
    assert await _relayed() == (True, LINES)


async def test_a_cut_comes_before_the_event_and_bookmarks_do_not_count() -> None:
    assert await _relayed(Fault("event/vms", 2, Kind.CUT)) == (False, LINES[:2])


async def test_an_expired_watch_ends_with_the_error() -> None:
    whole, got = await _relayed(Fault("event/vms", 1, Kind.EXPIRED))
    assert whole
    assert len(got) == 1
    assert b"Expired" in got[0]


async def test_objects_vanish_before_the_watch_says_that_it_expired() -> None:
    vanished: list[str] = []
    _, got = await _relayed(Fault("event/vms", 2, Kind.VANISH), vanished=vanished)
    assert vanished == ["vms"]
    assert got[:2] == LINES[:2]
    assert b"Expired" in got[2]


async def test_a_watch_that_is_opened_while_its_kind_is_held_waits() -> None:
    tap, over = Tap(), asyncio.Event()
    holding = asyncio.create_task(tap.held("vms", _wait(over)))
    await asyncio.sleep(0)
    opened = asyncio.create_task(tap.free("vms"))
    await tap.free("claims")
    for _ in range(5):
        await asyncio.sleep(0)
    assert not opened.done()
    over.set()
    await asyncio.gather(holding, opened)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
