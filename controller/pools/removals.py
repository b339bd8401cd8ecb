"""A pool's removals under way, and their pace when they are refused.

It decides neither which VM goes nor how: the plan and the drain procedure do. It must never try a refused
removal again at once.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from time import monotonic

import structlog

from controller.claims.desk import Desk
from controller.claims.drain import Outcome
from controller.claims.records import PoolRecord
from controller.machines.inventory import Instance
from controller.metrics import DRAINED
from controller.pools.execute import PoolWriter
from controller.pools.plan import Why
from controller.pools.refusals import FIRST_REMOVAL, growing_pause

log = structlog.get_logger()

_SHORTEST, _LONGEST = 0.9, 1.1  # times its length that a pause may take


class Removals:
    """`under_way` are the UIDs in hand; `denied` is the last refusal, until a removal succeeds.

    `changed` is told when something has come of one.
    """

    def __init__(
        self, desk: Desk, writer: PoolWriter, record: PoolRecord, changed: Callable[[], None]
    ) -> None:
        self._desk = desk
        self._writer = writer
        self._record = record
        self._changed = changed
        self._setbacks = 0
        self._again_at = 0.0
        self.under_way: set[str] = set()
        self.denied = ""

    def start(self, instances: Sequence[Instance], why: Why) -> None:
        """Reserve these VMs and drain them."""
        for instance in instances:
            self._record.inventory.reserve(instance, "drain")
            self.under_way.add(instance.uid)
            self._desk.start(self._remove(instance, why))

    def settle(self) -> None:
        """Nothing is to be removed any more: what was refused is of no interest."""
        if not self.under_way:
            self._succeeded()

    async def _remove(self, instance: Instance, why: Why) -> None:
        gone = False
        try:
            done = await self._writer.remove(self._record.pool, instance)
            gone = done.outcome == Outcome.GONE
            if gone:
                self._succeeded()
                DRAINED.labels(self._record.name, why.value).inc()
            elif done.outcome == Outcome.GIVEN_UP:
                await self._refused(done.message)
        finally:
            if not gone:
                self._record.inventory.release(instance)
            self.under_way.discard(instance.uid)
            self._changed()

    def _succeeded(self) -> None:
        self.denied, self._setbacks, self._again_at = "", 0, 0.0

    async def _refused(self, why: str) -> None:
        """The VM stays in hand for the pause: so maxConcurrentDeletions bounds how many are tried in it.

        Those that are refused within one pause are one setback, and have the same pause.
        """
        if not self.denied:
            log.warning("removal refused", pool=self._record.name, why=why)
        if (now := monotonic()) >= self._again_at:
            self._setbacks += 1
            self._again_at = now + _SHORTEST * growing_pause(FIRST_REMOVAL, self._setbacks - 1)
        self.denied = why or "the API server gave no reason"
        self._changed()
        pause = growing_pause(FIRST_REMOVAL, self._setbacks - 1)
        await asyncio.sleep(pause * random.uniform(_SHORTEST, _LONGEST))
