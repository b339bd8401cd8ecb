"""The VMs of one pool, kept in order as they change, so that no question costs a walk over all of them.

Pure: told of each change and of the time, it answers who is warm, who is next, how many are where. It never
writes; it never forgets a VM before the API server does.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from controller.kube.timeline import Timeline
from controller.machines.instance import Derived, Observation, created_at, derive
from controller.machines.objects import Node, VirtualMachine, VirtualMachineInstance
from controller.machines.readiness import ReadinessRule
from crds import names
from crds.pool import ClaimOrder
from statemachines.base import path
from statemachines.instance import MACHINE, State

IN_FLIGHT = (State.PROVISIONING, State.WAKING)
_SLACK = 64  # entries that a heap may hold of nobody: sweeping for a few would cost more than they do
_BOOTS = 1000  # that nobody asked for yet: a standby sees them all and counts none
_JUDGED = frozenset({State.WARM, State.UNREADY, State.FAILED})
_UNCLAIMED = frozenset({*IN_FLIGHT, *_JUDGED, State.STANDBY})
STOCK = (*IN_FLIGHT, State.WARM, State.UNREADY, State.STANDBY)
"""The states of a VM that a claim may get, now or later: what a roll-out is about."""


@dataclass(slots=True)
class Instance:
    """One VM with its derived state. `busy` names the step of ours that is under way on it."""

    vm: VirtualMachine
    vmi: VirtualMachineInstance | None = None
    node: Node | None = None
    derived: Derived = field(default_factory=lambda: Derived(State.PROVISIONING))
    warm_at: float | None = None
    booted_here: bool = False
    had_no_room: bool = False
    was_claimed: bool = False
    busy: str = ""
    created: float = 0.0
    counted: tuple[str, State] | None = None

    @property
    def uid(self) -> str:
        return self.vm.metadata.uid

    @property
    def name(self) -> str:
        return self.vm.metadata.name

    @property
    def state(self) -> State:
        return self.derived.state


class Inventory:
    """All VMs that say they belong to one pool and that are ours."""

    def __init__(
        self,
        pool_uid: str,
        on_release: Callable[[Instance], None] = lambda _: None,
        timeline: Callable[[], Timeline] = Timeline,
    ) -> None:
        self.pool_uid = pool_uid
        self.on_release = on_release
        self.timeline = timeline
        self.rule: ReadinessRule | None = None
        self.order = ClaimOrder.OLDEST
        self.instances: dict[str, Instance] = {}
        self.by_state: dict[State, dict[str, Instance]] = {state: {} for state in State}
        self.boots: deque[tuple[Instance, float]] = deque(maxlen=_BOOTS)
        self._busy: dict[str, Instance] = {}
        self._free: list[tuple[float, str, str]] = []
        self._due: list[tuple[float, str]] = []
        self._due_at: dict[str, float] = {}
        self._revisions: Counter[tuple[str, State]] = Counter()

    # ---- being told

    def configure(self, rule: ReadinessRule, order: ClaimOrder, now: float) -> None:
        """Take over the pool's rules; a changed rule is judged anew over all VMs."""
        if order != self.order:
            self.order = order
            self._free = [self._rank(each) for each in self.by_state[State.WARM].values()]
            heapq.heapify(self._free)
        if rule != self.rule:
            self.rule = rule
            for each in list(self.instances.values()):
                self._settle(each, now)

    def observe(
        self, vm: VirtualMachine, vmi: VirtualMachineInstance | None, node: Node | None, now: float
    ) -> Instance:
        """A VM, its guest or its node has changed."""
        found = self.instances.get(vm.metadata.uid)
        if found is None:
            found = Instance(vm, created=created_at(vm))
            self.instances[found.uid] = found
            self.by_state[found.state][found.uid] = found
        found.vm, found.vmi, found.node = vm, vmi, node
        self._settle(found, now)
        return found

    def forget(self, uid: str) -> Instance | None:
        """The API server has this VM no more."""
        found = self.instances.pop(uid, None)
        self._busy.pop(uid, None)
        self._due_at.pop(uid, None)
        if found is not None:
            del self.by_state[found.state][uid]
            self._count_revision(found, None)
            self._compact()
        return found

    def reserve(self, instance: Instance, purpose: str) -> None:
        """A step of ours begins on this VM; nobody takes it until `release`."""
        instance.busy = purpose
        self._busy[instance.uid] = instance

    def release(self, instance: Instance) -> None:
        """A step of ours on this VM ended; it is free again if it is warm still. `on_release` is told."""
        instance.busy = ""
        if (
            self._busy.get(instance.uid) is instance
        ):  # else: it was away, and another step has it since it is back
            del self._busy[instance.uid]
        if instance.uid in self.instances and instance.state is State.WARM:
            heapq.heappush(self._free, self._rank(instance))
        self.on_release(instance)

    def tick(self, now: float) -> list[Instance]:
        """Judge anew what time alone may have changed; the VMs whose state did."""
        changed = []
        while self._due and self._due[0][0] <= now:
            at, uid = heapq.heappop(self._due)
            if self._due_at.get(uid) == at:
                del self._due_at[uid]
            found = self.instances.get(uid)
            if found is not None and found.derived.recheck_at is not None and found.derived.recheck_at <= now:
                before = found.state
                self._settle(found, now)
                if found.state is not before:
                    changed.append(found)
        return changed

    def next_due(self) -> float | None:
        """When `tick` should be called next (epoch seconds)."""
        return self._due[0][0] if self._due else None

    # ---- being asked

    def count(self, state: State) -> int:
        return len(self.by_state[state])

    @property
    def total(self) -> int:
        return len(self.instances)

    def idle(self, state: State) -> int:
        """VMs of this state on which nothing of ours is under way. Costs a walk over the busy ones alone."""
        return self.count(state) - sum(1 for each in self._busy.values() if each.state is state)

    def revisions(self, *states: State) -> Counter[str]:
        """How many VMs in these states there are of each revision. Only those of `STOCK` are counted."""
        found: Counter[str] = Counter()
        for (revision, state), number in self._revisions.items():
            if state in states:
                found[revision] += number
        return found

    def take(self, purpose: str) -> Instance | None:
        """The best warm VM in the pool's order, marked busy so that nobody takes it again."""
        while self._free:
            _, _, uid = heapq.heappop(self._free)
            found = self.instances.get(uid)
            if found is not None and found.state is State.WARM and not found.busy:
                self.reserve(found, purpose)
                return found
        return None

    def in_flight(self) -> Iterator[Instance]:
        """The VMs on their way to warm, in the order of their creation."""
        return iter(
            sorted(
                (each for state in IN_FLIGHT for each in self.by_state[state].values()),
                key=lambda each: (each.created, each.name),
            )
        )

    def drain_boots(self) -> list[tuple[Instance, float]]:
        """The VMs that became warm since the last call, each with its boot time in seconds."""
        boots = list(self.boots)
        self.boots.clear()
        return boots

    # ---- inside

    def _rank(self, each: Instance) -> tuple[float, str, str]:
        sign = 1.0 if self.order is ClaimOrder.OLDEST else -1.0
        return (sign * each.created, each.name, each.uid)

    def _settle(self, each: Instance, now: float) -> None:
        self._judge(each, now)
        self._count_revision(each, (revision_of(each), each.state) if each.state in STOCK else None)

    def _count_revision(self, each: Instance, key: tuple[str, State] | None) -> None:
        if key == each.counted:
            return
        if each.counted is not None:
            self._revisions[each.counted] -= 1
            if not self._revisions[each.counted]:
                del self._revisions[each.counted]
        if key is not None:
            self._revisions[key] += 1
        each.counted = key

    def _judge(self, each: Instance, now: float) -> None:
        before = each.state
        derived = derive(
            Observation(
                vm=each.vm,
                vmi=each.vmi,
                node=each.node,
                rule=self.rule or ReadinessRule(),
                warm_before=each.warm_at is not None,
                unready_since=each.derived.unready_since,
                ready_since=each.derived.ready_since,
                now=now,
                room_since=now if each.derived.unschedulable else each.derived.room_since,
                timeline=self.timeline(),
            )
        )
        if self.rule is None and derived.state in _JUDGED:
            derived = Derived(State.PROVISIONING)  # nobody has said yet when it counts as warm
        each.was_claimed = each.was_claimed or bool(each.vm.metadata.labels.get(names.LABEL_CLAIM_UID))
        if each.was_claimed and derived.state in _UNCLAIMED:
            return  # it carried a claim's UID once: whatever a person makes of its labels, it is not offered
        decided = before in _UNCLAIMED and derived.state not in _UNCLAIMED
        if not decided and derived.state is not before and path(MACHINE, before, derived.state) is None:
            # A person set a label back: what we decided stands, Draining above all. What we only took it for
            # does not: one that we saw fail may have been handed over by another leader, or by us, before.
            return
        each.booted_here = each.booted_here or derived.state is State.PROVISIONING
        each.had_no_room = each.had_no_room or derived.unschedulable
        each.derived = derived
        if derived.recheck_at is not None and self._due_at.get(each.uid) != derived.recheck_at:
            self._due_at[each.uid] = derived.recheck_at
            heapq.heappush(self._due, (derived.recheck_at, each.uid))
        if derived.state is not before:
            del self.by_state[before][each.uid]
            self.by_state[derived.state][each.uid] = each
            if derived.state is State.WARM:
                self._warmed(each, now)

    def _compact(self) -> None:
        """Drop what is left in the heaps of VMs that are gone, once it is more than what is there."""
        enough = 2 * len(self.instances) + _SLACK
        if len(self._due) > enough:
            self._due = [(at, uid) for uid, at in self._due_at.items()]
            heapq.heapify(self._due)
        if len(self._free) > enough:
            warm = self.by_state[State.WARM].values()
            self._free = [self._rank(each) for each in warm if not each.busy]
            heapq.heapify(self._free)

    def _warmed(self, each: Instance, now: float) -> None:
        if each.warm_at is None:
            each.warm_at = now
            ready_since = each.derived.ready_since
            if each.booted_here or ready_since != now:  # else: warm before we came, nobody knows since when
                self.boots.append((each, max(0.0, (ready_since or now) - each.created)))
        if not each.busy:
            heapq.heappush(self._free, self._rank(each))


def revision_of(instance: Instance) -> str:
    """The revision that a VM was made from; empty when nobody knows.

    A person may have stripped the label, which a resync can't put back; but the guest has it, from the VM's
    own template. Unknown is not stale: such a VM leaves by being claimed, or by its age.
    """
    for carrier in (instance.vm, instance.vmi):
        if carrier is not None and (found := carrier.metadata.labels.get(names.LABEL_REVISION)):
            return found
    return ""
