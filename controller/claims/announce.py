"""Tells waiting claims why they wait and where they stand: rarely, late, and never ahead of a hand-over.

A claim that is served within the first second is never written to; a place is written at first, at 1 and at
halvings, at least ten seconds apart, so that a long line costs no claim more than eight writes.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.claims import status
from controller.claims.queue import Queue, Waiting, estimated_ready, worth_telling
from controller.claims.records import PoolRecord
from crds.conditions import ClaimReason

if TYPE_CHECKING:
    from controller.claims.loop import Namespace

FIRST = 1.0  # s in line before a claim is told anything
INTERVAL = 2.0  # s between two looks at a line
REASON_INTERVAL = 10.0  # s until a changed reason is told


@dataclass(frozen=True, slots=True)
class Situation:
    """Why a pool's claims wait, in words."""

    reason: ClaimReason
    message: str


def situation(name: str, record: PoolRecord | None, misfit: str = "", missing: str = "") -> Situation:
    """What stands between a pool's claims and a VM.

    `misfit` is why the pool can't be read, if it can't; `missing` that KubeVirt is not there, if it is not.
    """
    if record is None and misfit:
        return Situation(ClaimReason.POOL_INVALID, f"pool {name} can't be read: {misfit}")
    if record is None:
        return Situation(
            ClaimReason.POOL_NOT_FOUND,
            f"pool {name} does not exist in this namespace; the claim binds when it does",
        )
    if record.deleting:
        return Situation(
            ClaimReason.POOL_DELETING, f"pool {name} is being deleted and hands nothing over any more"
        )
    if missing:
        return Situation(ClaimReason.KUBEVIRT_MISSING, missing)
    if record.trouble:
        return Situation(ClaimReason.POOL_INVALID, f"pool {name} can make no VM: {record.trouble}")
    if record.denied:
        return Situation(
            ClaimReason.QUEUED, f"the API server refuses hand-overs of pool {name}: {record.denied}"
        )
    why = f"; the pool makes none: {record.hindrance}" if record.hindrance else ""
    return Situation(ClaimReason.QUEUED, f"no VM of pool {name} is warm; the claim is in line{why}")


class Announcer:
    """One task per pool that has a line; it ends with the line."""

    def __init__(self, namespace: "Namespace") -> None:
        self._namespace = namespace
        self._at_work: set[str] = set()
        self._telling: dict[str, asyncio.Task[bool]] = {}

    def hush(self, claim_uid: str) -> None:
        """This claim is being served: what it was about to be told is nothing that it should wait for."""
        if (telling := self._telling.get(claim_uid)) is not None:
            telling.cancel()

    def wake(self, pool: str) -> None:
        if pool not in self._at_work:
            self._at_work.add(pool)
            self._namespace.desk.start(self._announce(pool))

    async def _announce(self, pool: str) -> None:
        queues = self._namespace.router.queues
        try:
            await asyncio.sleep(FIRST)
            while (queue := queues.get(pool)) is not None and len(queue):
                await self._pass(pool, queue)
                await asyncio.sleep(INTERVAL)
        finally:
            self._at_work.discard(pool)

    async def _pass(self, pool: str, queue: Queue) -> None:
        router = self._namespace.router
        record = router.pools.get(pool)
        why = situation(pool, record, router.misfits.get(pool, ""), self._namespace.desk.missing)
        orders = [each.created for each in record.inventory.in_flight()] if record else []
        median = record.boots.median if record else None
        now = self._namespace.now()
        line = list(enumerate(queue.waiting(), 1))
        # From the end: who stands in front is served soon, and would have to be read again if told meanwhile.
        for position, entry in reversed(line):
            if entry.arrived + FIRST / 2 > now or not self._stale(entry, position, why, now):
                continue
            before, place = entry.told_position, None
            entry.tell(position, now)
            if record is not None:
                place = status.place(position, estimated_ready(position, orders, median, now))
            telling = asyncio.ensure_future(
                self._namespace.aftercare.tell(entry, why.reason, why.message, place)
            )
            self._telling[entry.uid] = telling
            try:
                await asyncio.wait({telling})
                if not telling.cancelled() and not telling.result():
                    entry.still_knows(before)
            finally:
                telling.cancel()
                del self._telling[entry.uid]

    def _stale(self, entry: Waiting, position: int, why: Situation, now: float) -> bool:
        if worth_telling(entry, position, now):
            return True
        told = entry.claim.status.conditions if entry.claim.status else []
        news = not any(each.reason == why.reason and each.message == why.message for each in told)
        return now - entry.told_at >= REASON_INTERVAL and news
