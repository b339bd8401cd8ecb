"""One pool's loop: wait for a change → snapshot → plan → execute → status.

Level-triggered: every pass decides from what is seen now. A pass never ends without a status; an error
becomes a condition and a pause, never a dead loop. Hand-overs do not pass through here.
"""

import asyncio
import math
import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog

from controller.claims.loop import Namespace
from controller.claims.records import PoolRecord
from controller.kube import errors
from controller.machines.inventory import IN_FLIGHT, STOCK, Instance, revision_of
from controller.machines.privacy import private_texts, redacted
from controller.machines.rendering import TemplateError, check
from controller.machines.revision import revision
from controller.pools import finalizer
from controller.pools.boots import Boots
from controller.pools.brake import restored
from controller.pools.data import DataWatch
from controller.pools.endings import endings
from controller.pools.execute import PoolWriter
from controller.pools.freshness import Freshness
from controller.pools.plan import Action, Check, Create, DropFinalizer, Remove, plan, surplus
from controller.pools.refusals import Refusal, Refusals
from controller.pools.removals import Removals
from controller.pools.report import Reporter, expose
from controller.pools.sizing import Sizing
from controller.pools.snapshot import Snapshot, Trouble
from controller.pools.status import hindrance, status
from crds.conditions import PoolReason
from crds.pool import VirtualMachinePool
from statemachines.instance import State

log = structlog.get_logger()

IDLE_WINDOW = 0.015  # s: changes come in flocks; the plan looks once they have landed
RESYNC = 300.0  # s
_REMOVABLE = (State.UNREADY, *IN_FLIGHT, State.WARM)


class PoolLoop:
    """One pool. `run` ends when the pool is gone; cancel it to stop."""

    def __init__(
        self,
        space: Namespace,
        record: PoolRecord,
        brake_unit: float,
        resync: float,
        sizing: float = RESYNC,
    ) -> None:
        self.space = space
        self.record = record
        self.wake = asyncio.Event()
        self._writer = PoolWriter(space.client, space.name, space.vms, space.executor)
        self._sizing = Sizing(space, record, sizing, self.wake.set)
        brake = restored(record.pool, space.now())
        self._boots = Boots(record, brake, brake_unit, self._sizing.booted, self._public)
        self._planned = 0
        self._removals = Removals(space.desk, self._writer, record, self.wake.set)
        self._refusals = Refusals()
        self._checked = False
        self._retry_at = self._late_at = 0.0
        self._short_since: float | None = None
        self._reporter = Reporter(space.client, lambda: self.pool, self._status, self._is_gone)
        self._data = DataWatch(space, record.pool, resync, self.wake.set)
        self._judged = record.pool
        self._generation = -1
        self._revision = (record.pool.status and record.pool.status.current_revision) or ""
        self._freshness = Freshness()
        self._gone = False
        self._began = space.now()  # the last pass

    @property
    def pool(self) -> VirtualMachinePool:
        return self.record.pool

    async def run(self) -> None:
        """Passes until the pool is gone."""
        failures = 0
        await self._sizing.begin()
        while not self._gone:
            try:
                await self._pass()
                failures = 0
            except errors.NotLeading:  # for now, or the process is about to end: both are waited for
                self.wake.set()
                await asyncio.sleep(1.0)
            except errors.ApiError as error:
                failures += 1
                why = self._public(str(error))
                log.warning("pass ended early", pool=self.pool.metadata.name, error=why)
                await self._falter(PoolReason.API_REFUSED, f"{why}; it is tried again", failures)
            except Exception as error:
                failures += 1
                log.error("pass failed", pool=self.pool.metadata.name, error=repr(error), exc_info=error)
                why = f"a pass failed: {error!r}; it is tried again"
                await self._falter(PoolReason.INTERNAL_ERROR, why, failures)
            await self._wait()

    async def _falter(self, reason: PoolReason, why: str, failures: int) -> None:
        """Say what went wrong, pause, and see to it that there is a next pass: no change may ever come."""
        self._refusals, self._checked = Refusals(Trouble(reason, why)), False
        self._generation = -1  # what was found out about the template is forgotten by that: judge it anew
        self._reporter.soon()
        await asyncio.sleep(min(30.0, 0.5 * 2**failures))
        self.wake.set()

    # ---- one pass

    async def _pass(self) -> None:
        self._began = self.space.now()
        await self._adopt()
        self._read_template()
        self._data.look(self.pool)
        self._boots.count(self._freshness.standard, self.space.now())
        self._sizing.look(self._judged, self._revision, self._boots.brake)
        seen = self._snapshot()
        actions = plan(seen)
        for action in actions:
            await self._do(action, seen)
        if not any(isinstance(each, Remove) for each in actions):
            self._removals.settle()
        after = self._snapshot()
        self._short_since = (self._short_since or after.now) if after.ready < after.target else None
        self.record.hindrance = hindrance(after)
        expose(after)
        self._reporter.soon()

    async def _wait(self) -> None:
        """Until something changes, a pause ends, or for the resync; then let the flock land."""
        delay = RESYNC * random.uniform(0.9, 1.1)
        now = self.space.now()
        timers = (self._retry_at, self._refusals.retry_at, self._late_at, self._boots.brake.next_probe or 0.0)
        for at in (*timers, self._freshness.look_at, self._data.due, *self._sizing.due):
            # What came due while the pass was under way may have come after it was looked at.
            if self._began < at < math.inf:
                delay = min(delay, max(0.0, at - now) + 0.01)
        # Not wait_for: before Python 3.12 it forgets a cancellation that comes together with the wake.
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self.wake.wait()
        await asyncio.sleep(IDLE_WINDOW)
        self.wake.clear()

    async def _adopt(self) -> None:
        """The finalizer before the first side effect."""
        await finalizer.put_on(self.space.client, self.pool)

    def _read_template(self) -> None:
        """Judge the template once per generation, and again when a refusal's pause is over.

        Until the next pass everything goes by the pool as it was judged: a VM is never made from a template
        newer than its revision, and a status never says that a change was seen before it was.
        """
        now = self.space.now()
        pool = self._judged = self.pool
        if pool.metadata.generation != self._generation:
            self._generation = pool.metadata.generation
            self._freshness.configure(pool)
            if self._revision not in self._freshness.standard.revisions:
                self._boots.another_template()
            self._revision = revision(pool)
            self._refusals, self._checked = Refusals(), False
            try:
                check(pool)
            except TemplateError as error:  # nothing to try again before somebody changes it
                self._refusals = self._refusals.failed(Trouble(error.reason, str(error)))
        elif self._refusals.over(now, self.record.inventory.total):
            self._refusals, self._checked = self._refusals.again(), False
        self.record.trouble = self._refusals.template

    def _snapshot(self) -> Snapshot:
        record, inventory = self.record, self.record.inventory
        queue = record.queue
        first = next(queue.waiting(), None)
        oldest = first.arrived if first is not None and queue else None
        revisions, stale = self._freshness.count(inventory), self._freshness.standard.stale
        waiting = [each for each in self._idle(State.PROVISIONING) if each.derived.unschedulable]
        terminating = inventory.by_state[State.TERMINATING].values()  # in hand still, if we removed them
        ending = endings(terminating, self.space.now(), self.space.desk.stuck_after, inventory.timeline())
        self._late_at = ending.next_late
        seen = Snapshot(
            pool=self._judged,
            revision=self._revision,
            now=self.space.now(),
            counts={state: inventory.count(state) for state in State},
            handing_over=inventory.count(State.WARM) - inventory.idle(State.WARM),
            backorders=len(queue.orders),
            pending=len(queue),
            creating=self._creating(),
            removing=len(self._removals.under_way) + ending.under_way,
            oldest_pending=oldest,
            target=self._sizing.decision.target,
            told=self._sizing.told,
            brake=self._boots.brake,
            trouble=self._refusals.trouble,
            missing=self.space.desk.missing,
            quota=self._refusals.quota,
            denied=record.denied,
            removal_denied=self._removals.denied,
            unschedulable=len(waiting),
            no_room=any(not stale(revision_of(each)) for each in waiting),
            going=ending.going,
            stuck=ending.stuck,
            failed=self._idle(State.FAILED),
            draining=self._idle(State.DRAINING),
            outdated=self._freshness.outdated(inventory, revisions, self.space.now()),
            standard=self._freshness.standard,
            revisions=revisions,
            proven=self._boots.proven,
            departing=sum(inventory.count(state) - inventory.idle(state) for state in IN_FLIGHT),
            lead_time=(record.boots.quantile(0.5), record.boots.quantile(0.95)),
            short_since=self._short_since,
            last_failure=self._boots.last_failure,
            checked=self._checked,
        )
        if not seen.deleting and not surplus(seen):
            return seen
        return replace(seen, removable=[each for state in _REMOVABLE for each in self._idle(state)])

    def _creating(self) -> int:
        """VMs that will be there and that nothing shows yet."""
        return self._planned + self._writer.unseen()

    def _idle(self, state: State) -> list[Instance]:
        return [each for each in self.record.inventory.by_state[state].values() if not each.busy]

    # ---- actions

    async def _do(self, action: Action, seen: Snapshot) -> None:
        match action:
            case Check():
                await self._dry_run(seen)
            case Create(count=count):
                self._planned += count
                self.space.desk.start(self._create(count, seen))
            case Remove(instances=instances, why=why):
                self._removals.start(instances, why)
            case DropFinalizer():
                await self._drop_finalizer(seen)

    async def _dry_run(self, seen: Snapshot) -> None:
        try:
            refusal = await self._writer.dry_run(seen.pool, seen.revision)
        except errors.NotLeading:
            raise
        except errors.ApiError as error:
            refusal = Refusal(PoolReason.API_REFUSED, str(error))
        if refusal is None:
            self._checked = True
            self.wake.set()
        else:
            self._refused(refusal)

    async def _create(self, count: int, seen: Snapshot) -> None:
        """Slow start: 1, 2, 4, … at once, as long as none is refused. Never holds up the pass.

        The rest is not made when the template changes meanwhile.
        """
        batch = 1
        left = count
        try:
            while left > 0 and not self._refusals.any and not self.record.deleting:
                if self._revision != seen.revision:
                    return
                size = min(batch, left)
                left -= size
                results = await asyncio.gather(*(self._create_one(seen) for _ in range(size)))
                batch *= 2
                if not all(results):
                    return
        finally:
            self._planned -= left
            self.wake.set()

    async def _create_one(self, seen: Snapshot) -> bool:
        self._planned -= 1  # from here on the writer counts it, until a watch shows the VM
        try:
            urgent = len(self.record.queue) > 0
            refusal = await self._writer.create(seen.pool, seen.revision, urgent=urgent)
        except errors.ApiError as error:
            refusal = Refusal(PoolReason.API_REFUSED, str(error))
        if refusal is not None:
            self._refused(refusal)
        elif not self._refusals.any:
            self._refusals = Refusals()
        return refusal is None

    def _refused(self, refusal: Refusal) -> None:
        """No storm: the next try is a pause away, or at once when the pool is changed."""
        refusal = refusal.about(self.pool)
        now = self.space.now() + random.uniform(0.0, 1.0)
        self._refusals = self._refusals.refused(refusal, now, self.record.inventory.total)
        log.warning("creation refused", pool=self.record.name, reason=refusal.reason, why=refusal.message)
        self.wake.set()

    async def _drop_finalizer(self, seen: Snapshot) -> None:
        """The pool may go only when an uncached list shows no VM that it owns."""
        self._retry_at = self.space.now() + 1.0
        if await self._writer.owned(self.pool):
            return
        try:
            if await finalizer.take_off(self.space.client, self.pool):
                log.info("pool drained", pool=self.record.name, claimed=seen.counts[State.CLAIMED])
        except errors.NotFound:
            self._gone = True
        except errors.TestFailed:
            return
        self._retry_at = 0.0

    # ---- status

    def _public(self, text: str) -> str:
        """What others may read of a sentence: the API server and KubeVirt quote what they refuse."""
        return redacted(text, private_texts(self.pool))

    def _status(self, before: dict[str, Any]) -> dict[str, Any]:
        data, stock = self._data.data, self.record.inventory.by_state
        looked_at = STOCK if data is not None and data.changed else ()
        since = [each.created for state in looked_at for each in stock[state].values()]
        return status(replace(self._snapshot(), data=data, unclaimed_since=since), before)

    def _is_gone(self) -> None:
        self._gone = True
        self.wake.set()

    async def say_stopped(self) -> None:
        """A clean stop: the pool says that nobody watches it, and what was asked of it is kept."""
        await asyncio.gather(self._reporter.say_stopped(self.space.now()), self._sizing.memory.keep())
