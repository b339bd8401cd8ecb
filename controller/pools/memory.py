"""A pool's history over restarts: read once when a leadership begins, kept now and then and at a clean stop.

It must never write before it has read, nor write over what it could not read: that is set aside. Claims are
served whatever becomes of it.
"""

import asyncio
import copy
import random
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from capacity.archive import HistoryError, decode, encode
from capacity.idle import IdleSpent
from controller.claims.loop import Namespace
from controller.kube import errors
from controller.pools.demand import Demand
from controller.pools.keeping import Keeper, Kept, Note, NotOursError
from crds.pool import VirtualMachinePool

log = structlog.get_logger()

UNSEEN = 2.0  # write intervals without a leader after which the time does not count
AGAIN = 0.2  # of the write interval, until what was refused is tried again


class Memory:
    """`demand` is the history, `spent` the idle hours; `trouble` is why neither outlives this process.

    `arrived`: when the claims came that there are (epoch seconds). `interval`: seconds between two writes.
    """

    def __init__(
        self,
        space: Namespace,
        pool: Callable[[], VirtualMachinePool],
        arrived: list[float],
        interval: float,
        wake: Callable[[], None],
    ) -> None:
        self.demand = Demand(space.now(), arrived)
        self.spent = IdleSpent()
        self.trouble = ""
        self.broken = ""
        self.due = space.now() + interval * random.uniform(0.9, 1.1)
        self._space = space
        self._pool = pool
        self._keeper = Keeper(space.client, pool)
        self._interval = interval
        self._wake = wake
        self._aside = b""
        self._at_work: asyncio.Task[object] | None = None

    def begin(self) -> asyncio.Task[object]:
        """Read what was kept; the task ends when that was tried. Until it succeeds nothing is written."""
        return self._start(self._read)

    def look(self) -> None:
        """Write it, or try to read it again, if it is time to."""
        if (
            self._at_work is None
            and self._space.now() >= self.due
            and (self.demand.changed or not self.demand.read)
        ):
            self._start(self._keep if self.demand.read else self._read)

    async def keep(self) -> None:
        """Write it now if there is anything new: the last deed of a clean stop."""
        if self.demand.read and self.demand.changed:
            await self._keep()

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[object]:
        self._at_work = self._space.desk.start(self._work(work))
        return self._at_work

    async def _work(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        finally:
            self._at_work = None
            self._wake()

    # ---- read

    async def _read(self) -> None:
        try:
            kept = await self._keeper.read()
        except NotOursError as error:
            self._refused(str(error))
            kept = None  # nothing is kept of this pool, and nothing can be
        except errors.ApiError as error:
            self._refused(f"what was asked of this pool before could not be read: {error}")
            self.due = self._space.now() + self._interval * AGAIN
            return
        if kept is None or not self._go_on(kept):
            log.info("no history: it begins anew", pool=self._pool().metadata.name)
            self.demand.begin(self._young_since())

    def _go_on(self, kept: Kept) -> bool:
        """Whether the history could be read. The idle hours are known in any case."""
        self.spent = IdleSpent(kept.note.idle)
        try:
            history = decode(kept.history)
        except HistoryError as error:
            self._aside = kept.history
            self.broken = f"the history could not be read and was set aside; it begins anew: {error}"
            log.warning("history set aside", pool=self._pool().metadata.name, why=str(error))
            self.demand.changed = True
            return False
        watched = max(kept.note.written_at, self._space.desk.led_until)
        self.demand.go_on(history, written=watched, patience=UNSEEN * self._interval)
        return True

    def _young_since(self) -> float:
        """A pool so young that nothing had to be kept yet: all its claims are there to be counted."""
        made = self._pool().metadata.creation_timestamp
        earliest = self._space.now() - UNSEEN * self._interval
        return earliest if made is None else max(earliest, made.timestamp())

    # ---- keep

    async def _keep(self) -> None:
        now, kept = self._space.now(), False
        self.demand.settle(now)
        history = copy.deepcopy(self.demand.history)
        self.demand.changed = False
        try:
            # Beside the loop: the history of a busy week takes a while to be pressed.
            written = await asyncio.to_thread(encode, history)
            await self._keeper.write(written, Note(now, self.spent.to_pairs()), self._aside)
            kept, self.trouble, self._aside = True, "", b""
        except NotOursError as error:
            self._refused(str(error))
        except errors.ApiError as error:
            self._refused(f"what is asked of this pool could not be written down: {error}")
        finally:
            self.demand.changed = self.demand.changed or not kept
            self.due = now + self._interval * (random.uniform(0.9, 1.1) if kept else AGAIN)

    def _refused(self, why: str) -> None:
        if why != self.trouble:
            log.warning("history not kept", pool=self._pool().metadata.name, why=why)
        self.trouble = why
