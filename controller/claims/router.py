"""One namespace's claims, VMs and pools as they are seen, and who gets what: serial, synchronous, no I/O.

Assignment happens here in one step before any await, so that one VM can't be promised twice by this process;
that no other process promises it is the business of write 1's tests.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from controller.claims.objects import Claim
from controller.claims.queue import Queue, Waiting
from controller.claims.records import PoolRecord
from controller.claims.tally import made
from controller.kube.timeline import Timeline
from controller.machines.inventory import Instance, Inventory
from controller.machines.objects import Node, VirtualMachine, VirtualMachineInstance
from controller.machines.ownership import controller_reference, forged, owner_of
from controller.machines.readiness import ReadinessRule
from crds import names
from crds.pool import VirtualMachinePool
from statemachines.claim import State as Phase
from statemachines.instance import State


@dataclass(frozen=True, slots=True)
class Assignment:
    """A claim and the VM that it is to get."""

    pool: PoolRecord
    entry: Waiting
    instance: Instance


@dataclass(frozen=True, slots=True)
class Hooks:
    """Whom the router tells: a pool to pass over again, a claim to review, a VM that may need repair."""

    changed: Callable[[str], None]
    review: Callable[[str], None]
    suspect: Callable[[Instance], None]


@dataclass(slots=True)
class Router:
    """All that is known of one namespace. `now` is the API server's clock in epoch seconds."""

    namespace: str
    now: Callable[[], float]
    hooks: Hooks
    node_of: Callable[[str], Node | None]
    timeline: Callable[[], Timeline] = Timeline
    pools: dict[str, PoolRecord] = field(default_factory=dict)
    misfits: dict[str, str] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    inventories: dict[str, Inventory] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    vmis: dict[str, VirtualMachineInstance] = field(default_factory=dict)
    guest_changed: dict[str, float] = field(default_factory=dict)
    carriers: dict[str, set[str]] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    _by_name: dict[str, Instance] = field(default_factory=dict)
    _unchecked: set[str] = field(default_factory=set)

    # ---- pools

    def pool_seen(self, pool: VirtualMachinePool) -> PoolRecord:
        """A pool has appeared or changed. A namesake with another UID is another pool with the same queue."""
        name, uid = pool.metadata.name, pool.metadata.uid
        record = self.pools.get(name)
        if record is None or record.uid != uid:
            record = PoolRecord(pool, self.inventory(uid), self.queue(name))
            self.pools[name] = record
        record.pool = pool
        self.misfits.pop(name, None)
        record.inventory.configure(ReadinessRule.of(pool.spec.readiness), pool.spec.claims.order, self.now())
        self.hooks.changed(name)
        return record

    def pool_misfit(self, name: str, why: str) -> None:
        """A pool is there and can't be read. What was known of it before stands."""
        self.misfits[name] = why
        self.hooks.changed(name)

    def pool_gone(self, name: str, uid: str) -> None:
        self.misfits.pop(name, None)
        record = self.pools.get(name)
        if record is not None and record.uid == uid:
            del self.pools[name]
        self._tidy(uid)  # also one whose namesake was seen before its end
        self._tidy_line(name)

    def queue(self, pool: str) -> Queue:
        return self.queues.setdefault(pool, Queue())

    def inventory(self, pool_uid: str) -> Inventory:
        found = self.inventories.get(pool_uid)
        if found is None:
            found = self.inventories[pool_uid] = Inventory(pool_uid, self._released, self.timeline)
        return found

    # ---- claims

    def claim_seen(self, claim: Claim) -> None:
        """A claim has appeared or changed."""
        pool = claim.spec.pool_ref.name
        if claim.uid not in self.claims and (record := self.pools.get(pool)) is not None:
            record.tally.arrived.append(made(claim, self.now()))
        self.claims[claim.uid] = claim
        if claim.waiting and not claim.trouble:
            self.queue(pool).push(claim, self.now())
            self.hooks.changed(pool)
        else:
            self._leaves_line(claim)
        if claim.status is not None:
            for vm in claim.status.virtual_machines:
                self.named[vm.uid] = claim.uid
        self._suspect_carriers(claim.uid)
        self.hooks.review(claim.uid)

    def claim_gone(self, claim: Claim) -> list[Instance]:
        """The API server has this claim no more; the VMs that its status named and that are there."""
        self.claims.pop(claim.uid, None)
        self._leaves_line(claim)
        left = []
        for vm in claim.status.virtual_machines if claim.status else ():
            self.named.pop(vm.uid, None)
            if (instance := self.instances.get(vm.uid)) is not None:
                left.append(instance)
        return left

    def _leaves_line(self, claim: Claim) -> None:
        pool = claim.spec.pool_ref.name
        queue = self.queues.get(pool)
        if queue is not None and queue.remove(claim.uid) is not None:
            self.hooks.changed(pool)
        self._tidy_line(pool)

    def _suspect_carriers(self, claim_uid: str) -> None:
        for uid in self.carriers.get(claim_uid, ()):
            self.check(self.instances[uid])

    # ---- VMs and their guests

    def vm_seen(self, vm: VirtualMachine) -> None:
        """A VM with our labels has appeared or changed: counted if it is ours, left alone if not."""
        uid = vm.metadata.uid
        if owner_of(vm.metadata) is None:
            self.vm_gone(vm)
            self.foreign.add(uid)
            return
        self.foreign.discard(uid)
        known = self.instances.get(uid)
        inventory = self.inventory(vm.metadata.labels.get(names.LABEL_POOL_UID, ""))
        if known is not None:
            self._uncarry(known)
            if known.vm.metadata.labels.get(names.LABEL_POOL_UID, "") != inventory.pool_uid:
                self._forget(known)
        instance = inventory.observe(vm, self.guest_of(vm), self._node(vm), self.now())
        self.instances[uid] = self._by_name[vm.metadata.name] = instance
        claim_uid = vm.metadata.labels.get(names.LABEL_CLAIM_UID)
        if claim_uid and vm.metadata.deletion_timestamp is None:  # a claim does not wait for one that dies
            self.carriers.setdefault(claim_uid, set()).add(uid)
        self._touched(instance)

    def vm_gone(self, vm: VirtualMachine) -> None:
        """The API server has this VM no more, or it is not ours any more."""
        self.foreign.discard(vm.metadata.uid)
        instance = self.instances.pop(vm.metadata.uid, None)
        if instance is not None:
            self._forget(instance)
            self._pool_changed(instance)
        if (claim_uid := self.named.get(vm.metadata.uid)) is not None:
            self.hooks.review(claim_uid)

    def vmi_seen(self, vmi: VirtualMachineInstance) -> None:
        """A guest has appeared or changed."""
        self.vmis[vmi.metadata.name] = vmi
        self._guest_moved(vmi.metadata.name)

    def vmi_gone(self, vmi: VirtualMachineInstance) -> None:
        known = self.vmis.get(vmi.metadata.name)
        if known is not None and known.metadata.uid == vmi.metadata.uid:
            del self.vmis[vmi.metadata.name]
            self._guest_moved(vmi.metadata.name)

    def node_changed(self, name: str) -> None:
        """A node's fitness may have changed: judge anew the VMs on it."""
        for instance in list(self.instances.values()):
            if instance.vmi is not None and instance.vmi.status.node_name == name:
                self._guest_moved(instance.name)

    def check(self, instance: Instance) -> None:
        """Tell of a VM that a person marked, or that carries the UID of a claim that does not name it.

        Never of one that a task has in hand. One without an owner is a person's by now and no suspect:
        leaving alone needs no proof.
        """
        if instance.busy:
            self._unchecked.add(instance.uid)  # what happens to it meanwhile is looked at at its release
            return
        if forged(instance.vm):
            self.hooks.suspect(instance)
            return
        meta = instance.vm.metadata
        claim_uid = meta.labels.get(names.LABEL_CLAIM_UID)
        if not claim_uid or instance.state is not State.CLAIMED:
            return
        claim = self.claims.get(claim_uid)
        fine = (
            claim is not None
            and claim.names(instance.uid)
            and claim.phase in {Phase.BOUND, Phase.RELEASING}  # the claim's own review sees to the rest
            and meta.labels.get(names.LABEL_STATE) == names.Mark.CLAIMED
        )
        if not fine and controller_reference(meta) is not None:
            self.hooks.suspect(instance)

    # ---- who gets what

    def assign(self, pool: PoolRecord, room: int) -> Iterator[Assignment]:
        """Pair the head of the line with the best warm VM, while there are both; at most `room` pairs.

        After a setback one alone is tried, and the others when it went well.
        """
        if pool.deleting or pool.held or (pool.setbacks and pool.queue.assigned):
            return
        room = min(room, 1) if pool.setbacks else room
        for _ in range(room):
            entry = pool.queue.head(self.carriers)
            if entry is None:
                return
            instance = pool.inventory.take("hand-over")
            if instance is None:
                return
            pool.queue.assign(entry)
            yield Assignment(pool, entry, instance)

    def unserved(self, pool: PoolRecord) -> list[Waiting]:
        """Those who asked to fail when nothing is warm, and for whom nothing is."""
        found = (pool.queue.line.get(uid) for uid in pool.queue.impatient)
        return [
            entry
            for entry in found
            if entry is not None and not entry.assigned and entry.uid not in self.carriers
        ]

    def tick(self, now: float) -> None:
        """Let time work: deadlines, graces, minReadySeconds, claims that stepped aside."""
        for inventory in self.inventories.values():
            for instance in inventory.tick(now):
                self._touched(instance)
        for name, queue in self.queues.items():
            if queue.parked and queue.unpark(now):
                self.hooks.changed(name)

    def next_due(self) -> float | None:
        """When `tick` is to be called next (epoch seconds)."""
        times = [at for each in self.inventories.values() if (at := each.next_due()) is not None]
        times += [entry.parked_until for queue in self.queues.values() for entry in queue.parked.values()]
        return min(times, default=None)

    def held(self) -> dict[str, int]:
        """How many entries each table has."""
        return {
            "pool": len(self.pools) + len(self.misfits),
            "line": len(self.queues),
            "waiting": sum(each.entries for each in self.queues.values()),
            "inventory": len(self.inventories),
            "instance": len(self.instances) + len(self._by_name) + len(self._unchecked),
            "guest": len(self.vmis) + len(self.guest_changed),
            "carrier": len(self.carriers),
            "named": len(self.named),
            "foreign": len(self.foreign),
        }

    # ---- inside

    def _tidy(self, pool_uid: str) -> None:
        """Keep no inventory of a pool that is gone once its last VM is, too."""
        found = self.inventories.get(pool_uid)
        if found and not found.total and all(each.uid != pool_uid for each in self.pools.values()):
            del self.inventories[pool_uid]

    def _tidy_line(self, pool: str) -> None:
        """Keep no line for a pool that is not there and that nobody waits for, served just now or not."""
        found = self.queues.get(pool)
        if found is not None and pool not in self.pools and not found.entries:
            del self.queues[pool]

    def _released(self, instance: Instance) -> None:
        if instance.uid in self._unchecked:
            self._unchecked.discard(instance.uid)
            self.check(instance)
        self._tidy(instance.vm.metadata.labels.get(names.LABEL_POOL_UID, ""))

    def guest_of(self, vm: VirtualMachine) -> VirtualMachineInstance | None:
        """The VM's guest: of its name and owned by it, never a namesake's."""
        found = self.vmis.get(vm.metadata.name)
        if found is None:
            return None
        owner = controller_reference(found.metadata)
        return found if owner is not None and owner.uid == vm.metadata.uid else None

    def _node(self, vm: VirtualMachine) -> Node | None:
        guest = self.vmis.get(vm.metadata.name)
        return self.node_of(guest.status.node_name) if guest is not None and guest.status.node_name else None

    def _guest_moved(self, name: str) -> None:
        instance = self._by_name.get(name)
        if instance is None:
            return
        vm = instance.vm
        pool = self.inventory(vm.metadata.labels.get(names.LABEL_POOL_UID, ""))
        before = instance.state
        pool.observe(vm, self.guest_of(vm), self._node(vm), self.now())
        if (claim_uid := self.named.get(instance.uid)) is not None:
            self.guest_changed[claim_uid] = self.now()
            self.hooks.review(claim_uid)
        if instance.state is not before:
            self._pool_changed(instance)

    def _touched(self, instance: Instance) -> None:
        self._pool_changed(instance)
        self.check(instance)
        if (claim_uid := self.named.get(instance.uid)) is not None:
            self.hooks.review(claim_uid)

    def _pool_changed(self, instance: Instance) -> None:
        self.hooks.changed(instance.vm.metadata.labels.get(names.LABEL_POOL, ""))

    def _uncarry(self, instance: Instance) -> None:
        claim_uid = instance.vm.metadata.labels.get(names.LABEL_CLAIM_UID, "")
        carriers = self.carriers.get(claim_uid)
        if carriers is not None:
            carriers.discard(instance.uid)
            if not carriers:
                del self.carriers[claim_uid]

    def _forget(self, instance: Instance) -> None:
        self._uncarry(instance)
        self._unchecked.discard(instance.uid)
        pool_uid = instance.vm.metadata.labels.get(names.LABEL_POOL_UID, "")
        self.inventory(pool_uid).forget(instance.uid)
        self._tidy(pool_uid)
        if self._by_name.get(instance.name) is instance:
            del self._by_name[instance.name]
