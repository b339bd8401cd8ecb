"""One pool in virtual time: the real inventory, snapshot and plan, over VMs whose lives a seed decides.

What the loop would do with its actions happens here after random delays: creations and marks arrive late,
guests boot, fail or stumble, claims come and take what is warm. No cluster, no clock, no I/O.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from controller.claims.desk import Desk
from controller.claims.loop import Namespace
from controller.claims.queue import Queue
from controller.claims.records import PoolRecord
from controller.machines.inventory import STOCK, Instance, Inventory
from controller.machines.readiness import ReadinessRule
from controller.pools.loop import PoolLoop
from controller.pools.plan import Check, Create, Remove, Why, plan
from controller.pools.rollout import floor
from controller.pools.snapshot import Snapshot
from crds import names
from crds.pool import VirtualMachinePool
from statemachines.instance import State
from tests.support.builders import (
    NOW,
    POOL_UID,
    make_claim,
    make_condition,
    make_pool,
    make_template,
    make_vm,
    make_vmi,
)

Json = dict[str, Any]
BROKEN = "broken"  # the hostname of a template whose VMs never start
_WRITE = (0.01, 0.4)  # s that a write takes


def template(generation: int, *, broken: bool = False) -> Json:
    """The pool's template of this generation."""
    return make_template(hostname=BROKEN if broken else f"g{generation}")


@dataclass
class VirtualPool:
    """Say what happens when, then `run`. `complaints` are the promises that were broken, with the time."""

    spec: Json
    seed: int = 0
    boot: tuple[float, float] = (5.0, 20.0)
    stumbles: float = 0.0
    now: float = NOW
    complaints: list[str] = field(default_factory=list)
    removed: list[tuple[float, str, Why]] = field(default_factory=list)
    lowest: int = 10**9
    most: int = 0
    made: int = 0
    claims: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.inventory = Inventory(POOL_UID)
        self.record = PoolRecord(self._pool(1, template(1)), self.inventory, Queue())
        space = SimpleNamespace(
            client=None,
            name="ns",
            vms=None,
            executor=None,
            now=lambda: self.now,
            router=SimpleNamespace(claims={}),
            desk=Desk(1),
        )
        self.loop = PoolLoop(cast("Namespace", space), self.record, 10.0, 300.0)
        self._configure()

    # ---- what happens

    def at(self, offset: float, deed: Callable[[], None]) -> None:
        """So many seconds after the beginning."""
        heapq.heappush(self._events, (max(self.now, NOW + offset), next(self._order), deed))

    def change(self, generation: int, *, broken: bool = False, back_to: int = 0, **spec: Any) -> None:
        """Somebody writes another template, or the one of an earlier generation."""
        self.spec = {**self.spec, **spec}
        self.record.pool = self._pool(generation, template(back_to or generation, broken=broken))
        self._configure()

    def claim(self) -> None:
        self.claims += 1
        self.record.queue.push(make_claim(f"claim-{self.claims}"), self.now)

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now + seconds
        while True:
            self._passes()
            at = min([self._events[0][0] if self._events else end, self.inventory.next_due() or end, end])
            if self.loop._freshness.look_at > self.now:
                at = min(at, self.loop._freshness.look_at + 0.01)
            if self.loop._boots.brake.next_probe and self.loop._boots.brake.next_probe > self.now:
                at = min(at, self.loop._boots.brake.next_probe + 0.01)
            if at >= end and not (self._events and self._events[0][0] < end):
                self.now = end
                return
            self.now = max(self.now, at)
            self.inventory.tick(self.now)
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()

    # ---- what is there

    @property
    def ready(self) -> int:
        return self.inventory.idle(State.WARM)

    def of_other_templates(self) -> int:
        return self.loop._freshness.count(self.inventory).stale

    def stock(self) -> Iterable[Instance]:
        return [each for state in STOCK for each in self.inventory.by_state[state].values()]

    # ---- inside

    def _released(self, name: str) -> None:
        self.inventory.forget(f"{name}-uid")

    def _pool(self, generation: int, vm: Json) -> VirtualMachinePool:
        made = make_pool(template=vm, **self.spec)
        return made.model_copy(
            update={"metadata": made.metadata.model_copy(update={"generation": generation})}
        )

    def _configure(self) -> None:
        spec = self.record.pool.spec
        self.inventory.configure(ReadinessRule.of(spec.readiness), spec.claims.order, self.now)

    def _later(self, deed: Callable[[], None], span: tuple[float, float] = _WRITE) -> None:
        self.at(self.now - NOW + self.random.uniform(*span), deed)

    def _passes(self) -> None:
        """Until nothing is to be done, as the wakes of the loop would have it."""
        for _ in range(50):
            self._hand_over()
            self.loop._read_template()
            self.loop._boots.count(self.loop._freshness.standard, self.now)
            self.loop._sizing._decide(self.loop._judged, self.now)
            seen = self.loop._snapshot()
            self._judge(seen)
            actions = plan(seen)
            if not actions:
                return
            for action in actions:
                self._do(action, seen)
            if any(isinstance(each, Check) for each in actions):
                return  # its answer is an event
        self.complaints.append(f"{self.now - NOW:.1f}: the plan never rests")

    def _judge(self, seen: Snapshot) -> None:
        limits = seen.pool.spec.limits
        self.lowest = min(self.lowest, seen.ready)
        self.most = max(self.most, seen.ready + seen.in_flight)
        if seen.total > limits.max_replicas:
            self.complaints.append(f"{self.now - NOW:.1f}: {seen.total} VMs, more than maxReplicas")
        if seen.in_flight > limits.max_concurrent_creations:
            self.complaints.append(f"{self.now - NOW:.1f}: {seen.in_flight} VMs boot at once")

    def _do(self, action: object, seen: Snapshot) -> None:
        match action:
            case Check():
                self._later(self._checked)
            case Create(count=count):
                self.loop._planned += count
                for _ in range(count):
                    self._later(lambda: self._create(seen))
            case Remove(instances=instances, why=why):
                for instance in instances:
                    self._remove(instance, why, seen)

    def _checked(self) -> None:
        self.loop._checked = True

    def _create(self, seen: Snapshot) -> None:
        self.loop._planned -= 1
        if self.loop._revision != seen.revision:
            return
        self.made += 1
        name = f"vm-{self.made}"
        born, labels = self.now, {names.LABEL_REVISION: seen.revision}
        self._see(name, born, labels)
        broken = seen.pool.spec.template.spec["template"]["spec"]["hostname"] == BROKEN
        self._later(lambda: self._booted(name, born, labels, broken=broken), self.boot)

    def _booted(self, name: str, born: float, labels: Json, *, broken: bool) -> None:
        if not self._is_pooled(name):
            return
        if broken:
            failure = make_condition("Failure", reason="FailedCreate", message="no")
            self._see(name, born, labels, conditions=[failure])
            return
        self._see(name, born, labels, ready=True)
        if self.random.random() < self.stumbles:
            self._later(lambda: self._stumbles(name, born, labels), (1.0, 60.0))

    def _stumbles(self, name: str, born: float, labels: Json) -> None:
        if self._is_pooled(name):
            self._see(name, born, labels, ready=False)
            self._later(lambda: self._booted(name, born, labels, broken=False), (1.0, 30.0))

    def _is_pooled(self, name: str) -> bool:
        found = self.inventory.instances.get(f"{name}-uid")
        return found is not None and found.state in {*STOCK} and found.busy != "hand-over"

    def _see(self, name: str, born: float, labels: Json, *, ready: bool | None = None, **vm: Any) -> None:
        made = make_vm(name, age=NOW - born, labels=labels, **vm)
        guest = None if ready is None else make_vmi(name, ready=ready, since=self.now - NOW)
        self.inventory.observe(made, guest, None, self.now)

    def _remove(self, instance: Instance, why: Why, seen: Snapshot) -> None:
        self.inventory.reserve(instance, "drain")
        self.loop._removals.under_way.add(instance.uid)
        self.removed.append((self.now, instance.name, why))
        if instance.state is State.WARM and why is not Why.SURPLUS and self.ready < floor(seen):
            self.complaints.append(
                f"{self.now - NOW:.1f}: {why} took {instance.name} and left {self.ready} ready, "
                f"the floor is {floor(seen)}"
            )
        vm = instance.vm
        name, labels, born = instance.name, dict(vm.metadata.labels), instance.created

        def marked() -> None:
            self.inventory.observe(
                make_vm(name, state=names.Mark.DRAINING, age=NOW - born, labels=_revision(labels)),
                None,
                None,
                self.now,
            )
            self._later(gone)

        def gone() -> None:
            self.inventory.forget(instance.uid)
            self.loop._removals.under_way.discard(instance.uid)

        self._later(marked)

    def _hand_over(self) -> None:
        queue = self.record.queue
        while (entry := queue.head({})) is not None:
            taken = self.inventory.take("hand-over")
            if taken is None:
                return
            queue.assign(entry)
            uid, name, labels, born = entry.uid, taken.name, dict(taken.vm.metadata.labels), taken.created

            def bound(
                uid: str = uid,
                name: str = name,
                labels: Json = labels,
                born: float = born,
                taken: Instance = taken,
            ) -> None:
                vm = make_vm(
                    name, state=names.Mark.CLAIMED, claim_uid=uid, age=NOW - born, labels=_revision(labels)
                )
                self.inventory.observe(vm, make_vmi(name), None, self.now)
                self.inventory.release(taken)
                queue.remove(uid)
                self._later(lambda: self._released(name), (20.0, 200.0))

            self._later(bound)


def _revision(labels: Json) -> Json:
    return {names.LABEL_REVISION: labels[names.LABEL_REVISION]}
