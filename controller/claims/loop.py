"""A namespace's claims at work: what the router decides is carried out, what ends is looked at again.

Event-driven: whatever changes marks a pool, a claim or a VM dirty, and one callback in the same turn of the
event loop serves them. Hand-overs wait for nothing; nothing here walks over all claims or VMs but at the
start of a leadership. It needs no pool to be there.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from weakref import WeakValueDictionary

import structlog

from controller.claims import handover
from controller.claims.aftercare import Aftercare
from controller.claims.alarm import Alarm
from controller.claims.announce import Announcer
from controller.claims.desk import Desk
from controller.claims.execute import Executor
from controller.claims.handover import HandOver
from controller.claims.objects import FOREGROUND, Claim
from controller.claims.outcomes import Outcomes
from controller.claims.plan import View, plan
from controller.claims.queue import Waiting
from controller.claims.records import PoolRecord
from controller.claims.repair import Outcome as RepairOutcome
from controller.claims.repair import Repair
from controller.claims.router import Assignment, Hooks, Router
from controller.claims.status import Terms
from controller.kube.client import ApiClient
from controller.kube.store import Store
from controller.machines.inventory import Instance
from controller.machines.objects import Node, VirtualMachine
from controller.machines.readiness import epoch
from controller.metrics import REPAIRS
from crds import names

log = structlog.get_logger()

LOOK_AGAIN = 5.0  # s: after a task ended without success


class Namespace:
    """One namespace: its router, the tasks at work in it, and its timer."""

    def __init__(
        self,
        name: str,
        client: ApiClient,
        desk: Desk,
        vms: Store[VirtualMachine],
        claims: Store[Claim],
        node_of: Callable[[str], Node | None],
    ) -> None:
        self.name = name
        self.client = client
        self.desk = desk
        self.vms = vms
        self.claims = claims
        hooks = Hooks(self.changed, self._review, self._suspect)
        self.router = Router(name, self.now, hooks, node_of, client.timeline)
        self.executor = Executor(client, name, vms, claims, self._writer)
        self.pool_changed: Callable[[str], None] = lambda _pool: None
        self.aftercare = Aftercare(self)
        self.announcer = Announcer(self)
        self.outcomes = Outcomes(self)
        self.begun = False
        self.in_hand: set[str] = set()
        self._missed: set[str] = set()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._pools: dict[str, None] = {}
        self._claims: dict[str, None] = {}
        self._suspects: dict[str, None] = {}
        self._scheduled = False
        self._alarm = Alarm(self.now, self._rings)

    def now(self) -> float:
        """The API server's clock, in seconds since the epoch."""
        return self.client.server_time().timestamp()

    @property
    def active(self) -> bool:
        """Whether anything may be done here: we lead, and what is here was listed."""
        return self.begun and self.desk.active

    def begin(self) -> None:
        """A leadership begins: the line by age, everything looked at once, and only then write 1s."""
        self.begun = True
        self.router.tick(self.now())  # nobody told the time while we stood by
        for queue in self.router.queues.values():
            queue.sort(lambda claim: epoch(claim.metadata.creation_timestamp) or 0.0)
        self.look_all_over()

    def look_all_over(self) -> None:
        """Everything is looked at once: what was known may be long past."""
        for instance in list(self.router.instances.values()):
            self.router.check(instance)
        for uid in self.router.claims:
            self._review(uid)
        for pool in (*self.router.pools, *self.router.queues):
            self.changed(pool)

    def look_again(self, uid: str, at: float) -> None:
        """Review this claim at that time (epoch seconds), or before if it changes."""
        if uid in self.router.claims:
            self._alarm.set(uid, at)
            self._arm()

    def put_down(self, uid: str) -> None:
        """A task on this claim ended: what happened to it meanwhile is looked at now."""
        self.in_hand.discard(uid)
        if uid in self._missed:
            self._missed.discard(uid)
            self._review(uid)

    def serve_soon(self) -> None:
        if self.active and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._serve)

    # ---- dirty

    # A standby keeps no account of it: when it leads, everything is looked at.

    def changed(self, pool: str) -> None:
        if self.active:
            self._pools[pool] = None
            self.serve_soon()

    def _review(self, uid: str) -> None:
        if self.active:
            self._claims[uid] = None
            self.serve_soon()

    def _suspect(self, instance: Instance) -> None:
        if self.active:
            self._suspects[instance.uid] = None
            self.serve_soon()

    def _serve(self) -> None:
        """Hand over first, then everything else. Synchronous: it only starts tasks."""
        self._scheduled = False
        pools, self._pools = self._pools, {}
        for pool in pools:
            self._serve_pool(pool)
        suspects, self._suspects = self._suspects, {}
        for uid in suspects:
            self._repair(uid)
        claims, self._claims = self._claims, {}
        for uid in claims:
            self._look(uid)
        self._arm()

    def _serve_pool(self, name: str) -> None:
        record = self.router.pools.get(name)
        if record is not None and not record.held and not len(record.queue):
            record.denied, record.setbacks = "", 0  # nobody is refused any more
        if record is not None and not self.desk.missing:
            for assignment in self.router.assign(record, self.desk.room):
                self.desk.room -= 1
                self.announcer.hush(assignment.entry.uid)
                self.desk.start(self._hand_over(assignment))
            if self.desk.room <= 0 and len(record.queue):
                self._pools[name] = None
                self.desk.wait_for_room(self.name, self.serve_soon)
            elif not record.deleting:
                for entry in self.router.unserved(record):
                    self.desk.start(self.aftercare.nothing_warm(entry, name))
        queue = self.router.queues.get(name)
        if queue is not None and len(queue):
            self.announcer.wake(name)
        self.pool_changed(name)

    # ---- hand-over

    async def _hand_over(self, chosen: Assignment) -> None:
        entry, instance = chosen.entry, chosen.instance
        uid = entry.uid
        self.in_hand.add(uid)
        try:
            work = HandOver(entry.claim, instance.vm, instance.vmi, self._terms(chosen.pool, entry))
            ended, done = await self.executor.drive(work)
            self.outcomes.follow(chosen, handover.Outcome(done.outcome), done.message, ended)
        finally:
            self.put_down(uid)
            self.desk.give_back()
            if instance.busy == "hand-over":
                chosen.pool.inventory.release(instance)
            chosen.pool.queue.unassign(entry)
            self.changed(chosen.pool.name)
            self._review(uid)
            self.router.check(instance)

    def _terms(self, pool: PoolRecord, entry: Waiting) -> Terms:
        default, bound = pool.lifetimes()
        now = self.now()
        return Terms(
            pool.name, pool.uid, now, now - entry.arrived, lifetime_default=default, lifetime_max=bound
        )

    # ---- repair and review

    def _repair(self, uid: str) -> None:
        instance = self.router.instances.get(uid)
        if instance is None or self.desk.missing:  # all are checked when KubeVirt is there again
            return
        if instance.busy:
            self.router.check(instance)  # suspected again when it is released
            return
        self._inventory(instance).reserve(instance, "repair")
        self.desk.start(self._repair_one(instance))

    async def _repair_one(self, instance: Instance) -> None:
        try:
            record = self.router.pools.get(instance.vm.metadata.labels.get(names.LABEL_POOL, ""))
            claim_uid = instance.vm.metadata.labels.get(names.LABEL_CLAIM_UID, "")
            claim = self.router.claims.get(claim_uid)
            default, bound = record.lifetimes() if record else (None, None)
            meta, now = instance.vm.metadata, self.now()
            since = epoch(claim.metadata.creation_timestamp) if claim else None
            terms = Terms(
                pool=meta.labels.get(names.LABEL_POOL, ""),
                pool_uid=meta.labels.get(names.LABEL_POOL_UID, ""),
                now=now,
                waited=now - (since or now),
                lifetime_default=default,
                lifetime_max=bound,
            )
            _, done = await self.executor.drive(Repair(instance.name, instance.uid, terms, instance.vmi))
        finally:
            self._inventory(instance).release(instance)
        REPAIRS.labels(done.outcome).inc()
        log.info("repaired", vm=instance.name, outcome=done.outcome)
        if done.outcome == RepairOutcome.GIVEN_UP:
            self.later(LOOK_AGAIN, lambda: self.router.check(instance))
        self._review(claim_uid)

    def _look(self, uid: str) -> None:
        claim = self.router.claims.get(uid)
        if claim is None:
            return
        if uid in self.in_hand:
            self._missed.add(uid)
            return
        if claim.waiting and claim.trouble:  # stored under an older schema: told, never a crash
            self.desk.start(self.aftercare.unreadable(claim))
            return
        try:
            decided = plan(self._view(claim))
        except ValueError as error:
            log.warning("claim can't be followed", claim=claim.name, why=str(error))
            return
        if decided.look_again is not None:
            self.look_again(uid, decided.look_again)
        if decided.action is not None:
            self.in_hand.add(uid)
            self.desk.start(self.aftercare.carry_out(claim, decided.action))

    def _view(self, claim: Claim) -> View:
        router = self.router
        record = router.pools.get(claim.spec.pool_ref.name)
        if (
            claim.status is not None
            and claim.status.pool_uid
            and record
            and record.uid != claim.status.pool_uid
        ):
            record = None  # a namesake of the pool that served it has no say
        default, bound = record.lifetimes() if record else (None, None)
        named = claim.status.virtual_machines[0] if claim.status and claim.status.virtual_machines else None
        vm = self.vms.get(named.uid) if named else None
        return View(
            claim=claim,
            now=self.now(),
            timeline=self.client.timeline(),
            missing=self.desk.missing,
            stuck_after=self.desk.stuck_after,
            pool_known=record is not None,
            pool_swept=record is None or FOREGROUND in record.pool.metadata.finalizers,
            lifetime_default=default,
            lifetime_max=bound,
            vm=vm,
            vmi=router.guest_of(vm) if vm else None,
            guest_changed=router.guest_changed.get(claim.uid, 0.0),
            refreshed_at=self.aftercare.refreshed.get(claim.uid, 0.0),
        )

    def claim_gone(self, claim: Claim, *, watched: bool) -> None:
        """A claim is not there any more; `watched` if its DELETED event was seen.

        A claim without deletionTimestamp went at once, so its VM may go at once too. After a deletion in
        steps (orphan, foreground, finalizers), and when a claim is only missing from a list, repair reads
        first whose the VM is now.
        """
        left = self.router.claim_gone(claim)
        self.aftercare.forget(claim.uid)
        self._missed.discard(claim.uid)
        self._alarm.forget(claim.uid)
        for instance in left:
            if claim.going or not watched or instance.busy or not self.active:
                self.router.check(instance)
            else:
                self._inventory(instance).reserve(instance, "release")
                self.desk.start(self.aftercare.release(instance))

    def held(self) -> dict[str, int]:
        """How many entries each table has: what grows although there are no more claims and VMs is a leak."""
        return {
            **self.router.held(),
            "in hand": len(self.in_hand) + len(self._missed),
            "alarm": len(self._alarm),
            "refreshed": len(self.aftercare.refreshed),
        }

    # ---- inside

    def _inventory(self, instance: Instance) -> Any:
        return self.router.inventory(instance.vm.metadata.labels.get(names.LABEL_POOL_UID, ""))

    def later(self, delay: float, then: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(delay, then)

    def _writer(self, claim_uid: str) -> AbstractAsyncContextManager[object]:
        """The one writer of a claim's status at a time. A lock is there while somebody has or wants it."""
        return self._locks.setdefault(claim_uid, asyncio.Lock())

    def _arm(self) -> None:
        if self.active:
            self._alarm.arm(self.router.next_due())

    def _rings(self, claims: list[str]) -> None:
        self.router.tick(self.now())
        for uid in claims:
            self._review(uid)
        self._arm()
