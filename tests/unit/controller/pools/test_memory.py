"""A pool's history over restarts: nothing is written before it was read, nothing is lost that can be kept."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from capacity.archive import decode, encode
from capacity.history import History
from controller.claims.desk import Desk
from controller.claims.loop import Namespace
from controller.kube import errors
from controller.pools.keeping import Kept, Note, NotOursError
from controller.pools.memory import AGAIN, UNSEEN, Memory
from crds.pool import VirtualMachinePool
from tests.support.builders import NOW, make_pool

INTERVAL = 300.0


class Shelf:
    """Where a history is kept, in place of a ConfigMap; `refuse` is what it answers instead."""

    def __init__(self) -> None:
        self.kept: Kept | None = None
        self.aside = b""
        self.refuse: Exception | None = None
        self.writes = 0

    async def read(self) -> Kept | None:
        await asyncio.sleep(0)
        if self.refuse is not None:
            raise self.refuse
        return self.kept

    async def write(self, history: bytes, note: Note, aside: bytes = b"") -> None:
        self.writes += 1
        await asyncio.sleep(0)
        if self.refuse is not None:
            raise self.refuse
        self.kept, self.aside = Kept(history, note), aside or self.aside

    @property
    def arrivals(self) -> list[int]:
        return list(decode(self.kept.history).arrivals) if self.kept else []


class Bench:
    """A leadership that begins at NOW, and a clock."""

    def __init__(self, shelf: Shelf, *, arrived: list[float] | None = None, led_until: float = NOW) -> None:
        self.shelf, self.desk, self.now, self.woken = shelf, Desk(1), NOW, 0
        self.desk.led_until = led_until
        space = SimpleNamespace(client=None, desk=self.desk, now=lambda: self.now)
        self.memory = Memory(cast("Namespace", space), self.pool, arrived or [], INTERVAL, self.wake)
        self.memory._keeper = shelf  # type: ignore[assignment]

    def pool(self) -> VirtualMachinePool:
        return make_pool()

    def wake(self) -> None:
        self.woken += 1

    async def begin(self) -> None:
        await self.memory.begin()

    async def look(self, after: float = 0.0) -> None:
        self.now += after
        self.memory.look()
        await asyncio.gather(*self.desk.tasks)

    def claim(self, at: float) -> None:
        self.memory.demand.claims([at], [], 0.0)

    @property
    def arrivals(self) -> list[int]:
        return list(self.memory.demand.history.arrivals)


def past(*arrivals: float, written: float = NOW - 60) -> Kept:
    history = History(NOW - 100_000)
    for at in arrivals:
        history.arrive(at)
    return Kept(encode(history), Note(written, [(1, 2.0)]))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


async def test_what_was_kept_is_gone_on_with(shelf: Shelf) -> None:
    shelf.kept = past(NOW - 500)
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    assert bench.arrivals == [int(NOW - 500), int(NOW + 1)]
    assert bench.memory.spent.to_pairs() == [(1, 2.0)]


async def test_it_is_written_when_the_interval_is_over_and_not_before(shelf: Shelf) -> None:
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    await bench.look(0.8 * INTERVAL)
    assert shelf.writes == 0
    await bench.look(0.4 * INTERVAL)
    assert shelf.arrivals == [int(NOW + 1)]


async def test_what_has_not_changed_is_not_written_again(shelf: Shelf) -> None:
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    for _ in range(5):
        await bench.look(2 * INTERVAL)
    assert shelf.writes == 1


async def test_a_pool_of_which_nothing_was_asked_keeps_nothing(shelf: Shelf) -> None:
    bench = Bench(shelf)
    await bench.begin()
    await bench.look(2 * INTERVAL)
    await bench.memory.keep()
    assert shelf.writes == 0


async def test_a_clean_stop_keeps_what_came_since(shelf: Shelf) -> None:
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    await bench.memory.keep()
    assert shelf.arrivals == [int(NOW + 1)]


async def test_nothing_is_written_before_it_was_read(shelf: Shelf) -> None:
    """Else a leader that could not read would write days over with minutes."""
    shelf.kept, shelf.refuse = past(NOW - 500), errors.UnknownOutcome(503)
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    await bench.memory.keep()
    assert shelf.writes == 0
    shelf.refuse = None
    await bench.look(1.1 * INTERVAL * AGAIN)
    assert bench.arrivals == [int(NOW - 500), int(NOW + 1)], "and what came meanwhile is not lost"


async def test_a_write_that_is_refused_is_told_and_tried_again_soon(shelf: Shelf) -> None:
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    shelf.refuse = errors.Forbidden(403, message="no")
    await bench.look(2 * INTERVAL)
    assert "could not be written down: no" in bench.memory.trouble
    shelf.refuse = None
    await bench.look(1.1 * INTERVAL * AGAIN)
    assert (shelf.arrivals, bench.memory.trouble) == ([int(NOW + 1)], "")


async def test_a_broken_history_is_set_aside_told_and_begun_anew(shelf: Shelf) -> None:
    shelf.kept = Kept(b"broken", Note(NOW - 60, [(1, 2.0)]))
    bench = Bench(shelf)
    await bench.begin()
    assert "set aside" in bench.memory.broken
    assert bench.memory.spent.to_pairs() == [(1, 2.0)], "the note beside it could be read"
    bench.claim(NOW + 1)
    await bench.look(2 * INTERVAL)
    assert (shelf.aside, shelf.arrivals) == (b"broken", [int(NOW + 1)])


async def test_a_broken_history_stays_where_it_is_until_the_new_one_is_written(shelf: Shelf) -> None:
    shelf.kept = Kept(b"broken", Note())
    bench = Bench(shelf)
    await bench.begin()
    shelf.refuse = errors.UnknownOutcome(503)
    await bench.look(2 * INTERVAL)
    assert shelf.kept.history == b"broken"
    shelf.refuse = None
    await bench.look(2 * INTERVAL)
    assert shelf.aside == b"broken"


async def test_where_the_name_is_anothers_demand_is_known_all_the_same(shelf: Shelf) -> None:
    shelf.refuse = NotOursError("give it another name")
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    assert bench.memory.demand.read
    assert bench.arrivals == [int(NOW + 1)]
    assert bench.memory.trouble == "give it another name"


async def test_time_without_a_leader_does_not_count(shelf: Shelf) -> None:
    shelf.kept = past(NOW - 90_000, written=NOW - 90_000)
    bench = Bench(shelf, led_until=NOW - 5_000)
    await bench.begin()
    assert bench.memory.demand.history.gaps == [(NOW - 5_000, NOW)]


async def test_a_quiet_pool_that_had_nothing_to_write_was_watched_all_the_same(shelf: Shelf) -> None:
    shelf.kept = past(NOW - 90_000, written=NOW - 90_000)
    bench = Bench(shelf, led_until=NOW - UNSEEN * INTERVAL / 2)
    await bench.begin()
    assert bench.memory.demand.history.gaps == []


async def test_claims_of_before_the_first_write_are_counted_by_the_next_leader(shelf: Shelf) -> None:
    bench = Bench(shelf, arrived=[NOW - 5 * INTERVAL, NOW - 0.5 * INTERVAL])
    await bench.begin()
    assert bench.arrivals == [int(NOW - 0.5 * INTERVAL)]


async def test_a_write_that_is_cut_off_by_a_stop_is_made_up_for(shelf: Shelf) -> None:
    bench = Bench(shelf)
    await bench.begin()
    bench.claim(NOW + 1)
    bench.now += 2 * INTERVAL
    bench.memory.look()
    await asyncio.sleep(0)
    for task in list(bench.desk.tasks):
        task.cancel()
    await asyncio.gather(*bench.desk.tasks, return_exceptions=True)
    await bench.memory.keep()
    assert shelf.arrivals == [int(NOW + 1)]


async def test_the_loop_is_woken_when_something_was_read_or_written(shelf: Shelf) -> None:
    bench = Bench(shelf)
    await bench.begin()
    await asyncio.sleep(0)
    assert bench.woken == 1
