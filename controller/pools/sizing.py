"""How many VMs one pool aims at: history, webhook and curve are kept up to date, and the engine is asked.

What takes time happens beside the passes. It must never hold up a claim, nor decide anything itself.
"""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from capacity.decide import decide, floor_alone
from capacity.decision import Advice, Decision, Limits, Stock
from capacity.stabilize import Stabilizer
from controller.claims.loop import Namespace
from controller.claims.records import PoolRecord
from controller.claims.tally import arrivals
from controller.machines.inventory import IN_FLIGHT, Instance, revision_of
from controller.metrics import IDLE_SECONDS, WARM_TARGET
from controller.pools.brake import BrakeState
from controller.pools.curves import Curves
from controller.pools.memory import Memory
from controller.pools.telling import Told, figures, remembered
from controller.pools.webhook import Asker
from crds.conditions import PoolReason
from crds.durations import seconds
from crds.pool import VirtualMachinePool
from crds.warm import WarmCapacity
from statemachines.instance import State

Json = dict[str, Any]

PACE = 1.0  # s between two decisions of a pool that sizes itself, as long as its spec stays the same
FIRST_READ = 5.0  # s that its first pass waits for the history at most
ASKED = 0.1  # of the interval: how often a webhook is asked, every 30 s by default
TOLD = 0.2  # of the interval: how often rates and sentences are told anew, every minute by default


class Sizing:
    """One pool's. `look` once in each pass; then `decision` is what holds and `told` what the status says.

    `interval` is how often, in seconds, the history is kept and the curve drawn.
    """

    def __init__(
        self, space: Namespace, record: PoolRecord, interval: float, wake: Callable[[], None]
    ) -> None:
        now = space.now()
        came = arrivals(space.router.claims.values(), record.name, now)
        self.memory = Memory(space, lambda: record.pool, came, interval, wake)
        self.decision = _first(record.pool)
        self.told = Told(self.decision)
        self._space = space
        self._record = record
        self._interval = interval
        self._asker = Asker(record.name, space.desk, space.now, ASKED * interval, wake)
        self._curves = Curves(space.desk, space.now, interval, wake)
        self._stabilizer = Stabilizer()
        if self.decision.decided_by != "replicas":
            self._stabilizer.seed(self.decision.target, now)
        self._decided: WarmCapacity | None = None
        self._decided_at = self._again_at = self._told_at = -math.inf
        self._idle, self._idle_at = 0, now

    async def begin(self) -> None:
        """Read what was kept; a pool whose size may hang on it waits for what it says, but not for long."""
        reading, pool = self.memory.begin(), self._record.pool
        if not pool.spec.warm.sizes_itself:
            return
        await asyncio.wait({reading}, timeout=FIRST_READ)
        drawing = self._curves.look(
            pool, self.memory.demand, (pool.status and pool.status.current_revision) or ""
        )
        if drawing is not None:
            await asyncio.wait({drawing}, timeout=FIRST_READ)

    @property
    def due(self) -> Iterator[float]:
        """When there is something to do although nothing changes (epoch seconds)."""
        yield self.decision.next_change_at or math.inf
        yield self._again_at
        yield self.memory.due
        yield self._asker.due
        yield self._curves.due

    def look(self, pool: VirtualMachinePool, revision: str, brake: BrakeState) -> None:
        """Take note of what happened, start what is due, and have it decided anew."""
        now, spec = self._space.now(), pool.spec.warm
        self._take_note(spec, brake, now)
        self.memory.look()
        self._asker.look(spec.webhook, self._question)
        self._curves.look(pool, self.memory.demand, revision)
        self._decide(pool, now)
        if not self.told.shows(self.decision) or now >= self._told_at + TOLD * self._interval:
            self._tell(now)

    def booted(self, instance: Instance, took: float) -> None:
        """A VM became warm. One for which there was no node says nothing about its template."""
        if not instance.had_no_room:
            longest = seconds(self._record.pool.spec.readiness.deadline)
            self.memory.demand.boot(min(took, longest), instance.created, revision_of(instance))

    # ---- inside

    def _take_note(self, spec: WarmCapacity, brake: BrakeState, now: float) -> None:
        demand, inventory = self.memory.demand, self._record.inventory
        arrived, served = self._record.tally.take()
        patience = seconds(spec.service_level.max_wait) if spec.service_level else 0.0
        demand.claims(arrived, served, patience)
        blocked = brake.open_since if brake.open else now if self._space.desk.missing else None
        demand.block(now, blocked)
        IDLE_SECONDS.labels(self._space.name, self._record.name).inc(
            self._idle * max(0.0, now - self._idle_at)
        )
        self._idle, self._idle_at = inventory.count(State.WARM) + inventory.count(State.UNREADY), now
        self.memory.spent.observe(self._idle, now)
        if spec.budget is not None:
            demand.changed = True  # the hours of the day are kept beside it

    def _decide(self, pool: VirtualMachinePool, now: float) -> None:
        spec = pool.spec.warm
        changes_at = self.decision.next_change_at or math.inf
        if spec == self._decided and spec.sizes_itself and now < min(self._decided_at + PACE, changes_at):
            self._again_at = self._decided_at + PACE
            return
        limits = Limits(
            servers=pool.spec.limits.max_concurrent_creations,
            most=pool.spec.limits.max_replicas,
        )
        decision = decide(
            spec,
            self._stock(),
            now=now,
            stabilizer=self._stabilizer,
            limits=limits,
            curve=self._curves.curve,
            recent=self.memory.demand.history.recent(now) if spec.service_level is not None else None,
            webhook=self._asker.heard,
            spent=self.memory.spent,
        )
        # First what was lost: it is why there are too few claims.
        self.decision = replace(decision, warnings=(*self._forgetful(spec), *decision.warnings))
        self._decided, self._decided_at, self._again_at = spec, now, math.inf

    def _forgetful(self, spec: WarmCapacity) -> Iterator[Advice]:
        """A history that is lost concerns only those who build on it."""
        if spec.service_level is not None:
            for why in filter(None, (self.memory.broken, self.memory.trouble)):
                yield Advice(PoolReason.HISTORY_LOST, why)

    def _stock(self) -> Stock:
        inventory = self._record.inventory
        warm, ready = inventory.count(State.WARM), inventory.idle(State.WARM)
        return Stock(
            ready=ready,
            in_flight=sum(inventory.idle(state) for state in IN_FLIGHT),
            in_use=inventory.count(State.CLAIMED) + warm - ready,
            backorders=len(self._record.queue.orders),
        )

    def _question(self) -> Json:
        """What a webhook is told: what the pool's status says."""
        meta, stock = self._record.pool.metadata, self._stock()
        return {
            "pool": {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
            "warm": {"ready": stock.ready, "booting": stock.in_flight, "target": self.decision.target},
            "claimed": stock.in_use,
            "pending": len(self._record.queue),
            "demand": figures(self.told),
        }

    def _tell(self, now: float) -> None:
        demand, meta = self.memory.demand, self._record.pool.metadata
        before, after = ({each.name for each in of.policies} for of in (self.told.decision, self.decision))
        for gone in before - after:
            with suppress(KeyError):
                WARM_TARGET.remove(meta.namespace, meta.name, gone)
        known = demand.read and len(demand.history.arrivals) > 0
        self.told = Told(
            self.decision,
            demand.history.claims_per_hour(now) if known else None,
            demand.history.hit_ratio(now) if known else None,
        )
        self._told_at = now


def _first(pool: VirtualMachinePool) -> Decision:
    """What the last leader decided; of a new pool, its floor."""
    if pool.status is not None and pool.status.warm is not None:
        return remembered(pool.status.warm)
    return floor_alone(pool.spec.warm.replicas)
