"""A controller's decisions: the product's own code asked about what one controller believes.

The router pairs claims and VMs, `plan` says what to do about a claim, a pool's loop makes the snapshot and
its plan, the procedures are the product's. What stands here is what the product's event loop does around
them, and nothing that decides. Level-triggered: each decision that the caches allow may come at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from controller.claims import announce, patches, plan, release, repair, status
from controller.claims import desk as controllers_desk
from controller.claims.drain import Drain
from controller.claims.handover import HandOver
from controller.claims.objects import FOREGROUND, Claim
from controller.claims.protocol import StepName
from controller.claims.router import Hooks, Router
from controller.claims.status import Terms
from controller.machines.inventory import Instance
from controller.machines.rendering import render
from controller.pools import loop as pool_loop
from controller.pools.plan import Create, DropFinalizer, Remove
from controller.pools.plan import plan as plan_pool
from crds import names
from tests.protocol import chores
from tests.protocol.people import where
from tests.protocol.things import Thing, work
from tests.protocol.view import Purpose, Task, View, guest_of
from tests.protocol.worlds import World
from tests.support.builders import NAMESPACE


@dataclass
class Desk:
    """One controller's router, filled from its caches, with what it has in hand."""

    view: View
    now: float
    world: World
    suspects: dict[str, Instance] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hooks = Hooks(lambda _: None, lambda _: None, self._suspect)
        self.router = Router(NAMESPACE, lambda: self.now, hooks, lambda _: None)
        self.record = self.router.pool_seen(self.view.pool.pool) if self.view.pool else None
        for versions in self.view.vms:
            for version in versions:
                if (guest := guest_of(version)) is not None:
                    self.router.vmis[version.name] = guest
                self.router.vm_seen(version.vm)
        for claim in self.view.claims:
            self.router.claim_seen(claim.claim)
        self.busy_claims = {task.claim_uid for task in self.view.tasks if task.purpose in _BUSY_CLAIM}
        for task in self.view.tasks:
            self._in_hand(task)
        for uid in self.view.aside:
            if (instance := self.router.instances.get(uid)) is not None and not instance.busy:
                self.inventory(instance).reserve(instance, "set-aside")

    def _suspect(self, instance: Instance) -> None:
        self.suspects[instance.uid] = instance

    def _in_hand(self, task: Task) -> None:
        instance = self.router.instances.get(task.vm_uid)
        if instance is not None and task.purpose in _BUSY_VM:
            self.inventory(instance).reserve(instance, task.purpose.value)
        if task.purpose is Purpose.HAND_OVER and self.record is not None:
            entry = self.record.queue.find(task.claim_uid)
            if entry is not None:
                self.record.queue.assign(entry)

    def inventory(self, instance: Instance) -> Any:
        return self.router.inventory(instance.vm.metadata.labels.get(names.LABEL_POOL_UID, ""))

    # ---- what may be begun now

    def decisions(self, number: int) -> Iterator[Task]:
        """Every task that this controller might begin, on what it believes."""
        self.suspects.clear()
        for instance in list(self.router.instances.values()):
            self.router.check(instance)
        for instance in self.suspects.values():
            if not instance.busy:
                yield self._repair(instance)
        for claim in self.view.claims:
            yield from self._claim(claim.claim)
        if self.record is not None:
            yield from self._pool(number)
            for chosen in self.router.assign(self.record, 1):
                hand_over = HandOver(
                    chosen.entry.claim, chosen.instance.vm, chosen.instance.vmi, self._terms(0.0)
                )
                yield Task(
                    Purpose.HAND_OVER,
                    f"hand {chosen.instance.name} to {chosen.entry.claim.name} ({chosen.entry.uid})",
                    work(hand_over),
                    chosen.instance.uid,
                    chosen.entry.uid,
                )
        if self.world.resync:
            yield from self._labels()

    def _terms(self, waited: float) -> Terms:
        record = self.record
        default, bound = record.lifetimes() if record else (None, None)
        return Terms(
            record.name if record else "pool",
            record.uid if record else "pool-uid",
            self.now,
            waited,
            lifetime_default=default,
            lifetime_max=bound,
        )

    def _repair(self, instance: Instance) -> Task:
        uid = instance.vm.metadata.labels.get(names.LABEL_CLAIM_UID, "")
        found = repair.Repair(instance.name, instance.uid, self._terms(0.0), instance.vmi)
        return Task(Purpose.REPAIR, f"repair {instance.name}", work(found), instance.uid, uid)

    # ---- a claim

    def _claim(self, claim: Claim) -> Iterator[Task]:
        if claim.uid in self.busy_claims:
            return
        if (action := plan.plan(self._view(claim)).action) is not None:
            yield from self._carry_out(claim, action)
        if self.world.tells and claim.waiting and (task := self._tell(claim)):
            yield task

    def _view(self, claim: Claim) -> plan.View:
        named = claim.status.virtual_machines[0] if claim.status and claim.status.virtual_machines else None
        record = self.record
        if record is not None and claim.status is not None and claim.status.pool_uid not in {"", record.uid}:
            record = None
        default, bound = record.lifetimes() if record else (None, None)
        instance = self._cached(named.uid) if named else None
        return plan.View(
            claim=claim,
            now=self.now,
            pool_known=record is not None,
            pool_swept=record is None or FOREGROUND in record.pool.metadata.finalizers,
            lifetime_default=default,
            lifetime_max=bound,
            vm=instance.vm if instance else None,
            vmi=guest_of(instance) if instance else None,
        )

    def _cached(self, uid: str) -> Thing | None:
        return next((seen[-1] for seen in self.view.vms if seen and seen[-1].uid == uid), None)

    def _carry_out(self, claim: Claim, action: plan.Action) -> Iterator[Task]:
        def task(what: str, procedure: Any, then: Any = None, vm_uid: str = "") -> Task:
            follow = work(then) if then is not None else None
            return Task(
                Purpose.CLAIM,
                f"{what} {claim.name} ({claim.uid})",
                work(procedure),
                vm_uid,
                claim.uid,
                follow,
            )

        def write(step: StepName, fresh: dict[str, Any], *, alive: bool) -> release.StatusWrite:
            return release.StatusWrite(step, claim, patches.whole_status(claim, fresh, alive=alive))

        match action:
            case plan.GiveUp(status=fresh):
                yield task("give up", write(StepName.FINISH_STATUS, fresh, alive=True))
            case plan.Expire(status=fresh):
                yield task("expire", release.expire(claim, fresh))
            case plan.GiveBack(vm_name=name, vm_uid=uid, status=told):
                then = None if told is None else write(StepName.FINISH_STATUS, told, alive=False)
                yield task("give back the VM of", release.Release(name, uid), then)
            case plan.CheckLost(vm_name=name, vm_uid=uid, status=fresh):
                yield task("look for the VM of", release.Lost(claim, name, uid, fresh))
            case plan.Refresh(status=fresh):
                yield task("refresh", write(StepName.CLAIM_STATUS, fresh, alive=False))
            case plan.RemoveClaim():
                yield task("remove", chores.RemoveClaim(claim.name, claim.uid))
            case plan.PlaceOrder():
                return

    def _tell(self, claim: Claim) -> Task | None:
        """As the announcer tells a claim that waits, without the times at which it does."""
        pool = claim.spec.pool_ref.name
        entry = self.router.queue(pool).find(claim.uid)
        if entry is None or entry.assigned:
            return None
        why = announce.situation(pool, self.record)
        place = status.place(1 + list(self.router.queue(pool).line).index(claim.uid), None)
        fresh = status.waiting(claim, why.reason, why.message, self.now, place if self.record else None)
        before = status.kept(claim)
        if {**before, "queue": None} == {**fresh, "queue": None}:
            return None  # a place in line is not told again within seconds
        procedure = release.StatusWrite(StepName.CLAIM_STATUS, claim, patches.whole_status(claim, fresh))
        return Task(Purpose.CLAIM, f"tell {claim.name} why it waits", work(procedure), "", claim.uid)

    # ---- the pool

    def _pool(self, number: int) -> Iterator[Task]:
        pool = self._loop()
        seen = pool._snapshot()
        for action in plan_pool(seen):
            match action:
                case Create() if self.view.made < self.world.creates:
                    name = f"new-{number}{self.view.made + 1}"
                    body = render(pool.pool, seen.revision, "x")
                    yield Task(
                        Purpose.CREATE, f"make {name}", work(chores.creation(name, body)), f"{name}-uid"
                    )
                case Remove(instances=instances):
                    for each in instances:
                        yield Task(Purpose.DRAIN, f"remove {each.name}", work(Drain.of(each.vm)), each.uid)
                case DropFinalizer() if not self._under_way(Purpose.POOL):
                    meta = pool.pool.metadata
                    found = chores.Dropping(meta.name, meta.uid, tuple(meta.finalizers))
                    yield Task(Purpose.POOL, "let the pool go", work(found))
                case _:
                    pass

    def _loop(self) -> pool_loop.PoolLoop:
        """The pool's loop as it is in the middle of its work."""
        assert self.record is not None
        known = {versions[-1].name for versions in self.view.vms if versions}
        vms = SimpleNamespace(by_name=lambda _, name: name if name in known else None)
        space: Any = SimpleNamespace(
            client=None,
            name=NAMESPACE,
            vms=vms,
            executor=None,
            now=lambda: self.now,
            router=self.router,
            desk=controllers_desk.Desk(1),
        )
        found = pool_loop.PoolLoop(space, self.record, 10.0, 300.0)
        found._read_template()
        found._sizing.look(found._judged, found._revision, found._boots.brake)
        found._checked = True
        found._removals.under_way = {task.vm_uid for task in self.view.tasks if task.purpose is Purpose.DRAIN}
        found._writer._under_way = {
            task.work.procedure.name for task in self.view.tasks if task.purpose is Purpose.CREATE
        }
        return found

    def _under_way(self, purpose: Purpose) -> bool:
        return any(task.purpose is purpose for task in self.view.tasks)

    # ---- labels

    def _labels(self) -> Iterator[Task]:
        """One look at the metadata of all VMs: begun when the last one ended."""
        if self._under_way(Purpose.LABELS):
            return
        for name in where(self.world).vms:
            looked = chores.Mending(name, tuple(self.router.claims.values()))
            yield Task(Purpose.LABELS, f"put the labels of {name} right", work(looked))


_BUSY_CLAIM = frozenset({Purpose.HAND_OVER, Purpose.CLAIM})
_BUSY_VM = frozenset({Purpose.HAND_OVER, Purpose.REPAIR, Purpose.RELEASE, Purpose.DRAIN})


def claim_ended(view: View, gone: Thing, now: float, world: World) -> tuple[Task, ...]:
    """The releases that a watched end of a claim begins at once. `view` still has the claim."""
    desk = Desk(view, now, world)
    claim = desk.router.claims.get(gone.uid)
    if claim is None or claim.going:
        return ()
    return tuple(
        Task(
            Purpose.RELEASE,
            f"destroy {each.name}, whose claim is gone",
            work(release.Release(each.name, each.uid)),
            each.uid,
        )
        for each in desk.router.claim_gone(claim)
        if not each.busy
    )
