"""Whatever happens in whatever order, an inventory's books agree with a recount."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller.machines.inventory import STOCK, Instance, Inventory, revision_of
from controller.machines.readiness import ReadinessRule
from crds import names
from crds.pool import ClaimOrder
from statemachines.instance import State
from tests.support.builders import NOW, make_node, make_vm, make_vmi

NAMES = st.sampled_from([f"vm-{number}" for number in range(6)])
GUESTS: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
    [None, {"phase": "Scheduling", "ready": None}, {"ready": True}, {"ready": False}, {"deleting": True}]
)
MARKS = st.sampled_from([*names.Mark, None])
LABELS = st.sampled_from(["one", "two", None]).map(lambda revision: {names.LABEL_REVISION: revision})
RULES = st.builds(
    ReadinessRule,
    min_ready_seconds=st.sampled_from([0.0, 30.0]),
    deadline=st.sampled_from([60.0, 900.0]),
    unready_grace=st.sampled_from([0.0, 120.0]),
)


class Books(RuleBasedStateMachine):
    """Random events, and after each the recount."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.inventory = Inventory("pool-uid")
        self.taken: dict[str, Instance] = {}
        self.drained: set[str] = set()

    @rule(
        name=NAMES,
        guest=GUESTS,
        mark=MARKS,
        labels=LABELS,
        cordoned=st.booleans(),
        deleting=st.booleans(),
    )
    def observe(
        self,
        name: str,
        guest: dict[str, Any] | None,
        mark: names.Mark | None,
        labels: dict[str, str | None],
        cordoned: bool,  # noqa: FBT001 - hypothesis gives it by name
        deleting: bool,  # noqa: FBT001 - hypothesis gives it by name
    ) -> None:
        vm = make_vm(name, state=mark, deleting=deleting, age=float(len(name)), labels=labels)
        vmi = None if guest is None else make_vmi(name, **guest)
        found = self.inventory.observe(vm, vmi, make_node(cordoned=cordoned), self.now)
        if found.state is State.DRAINING:
            self.drained.add(found.uid)

    @rule(name=NAMES, guest=GUESTS)
    def observe_pooled(self, name: str, guest: dict[str, Any] | None) -> None:
        self.inventory.observe(
            make_vm(name), None if guest is None else make_vmi(name, **guest), None, self.now
        )

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        self.inventory.forget(f"{name}-uid")
        self.taken.pop(f"{name}-uid", None)
        self.drained.discard(f"{name}-uid")

    @rule()
    def take(self) -> None:
        best = self._best()
        found = self.inventory.take("test")
        assert found is best
        if found is not None:
            assert found.state is State.WARM
            assert found.uid not in self.taken
            self.taken[found.uid] = found

    @rule(name=NAMES)
    def reserve(self, name: str) -> None:
        found = self.inventory.instances.get(f"{name}-uid")
        if found is not None and not found.busy:
            self.inventory.reserve(found, "test")
            self.taken[found.uid] = found

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        if (found := self.taken.pop(f"{name}-uid", None)) is not None:
            self.inventory.release(found)

    @rule(seconds=st.floats(0, 2000))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.inventory.tick(self.now)

    @rule(order=st.sampled_from(ClaimOrder), readiness=RULES)
    def configure(self, order: ClaimOrder, readiness: ReadinessRule) -> None:
        self.inventory.configure(readiness, order, self.now)

    @invariant()
    def every_vm_is_counted_once(self) -> None:
        inventory = self.inventory
        assert inventory.total == sum(inventory.count(state) for state in State)
        for state, members in inventory.by_state.items():
            assert members == {uid: each for uid, each in inventory.instances.items() if each.state is state}

    @invariant()
    def every_revision_is_counted_in_every_state(self) -> None:
        every = self.inventory.instances.values()
        for state in STOCK:
            found = Counter(revision_of(each) for each in every if each.state is state)
            assert self.inventory.revisions(state) == found
        assert self.inventory.revisions(*STOCK).total() == sum(each.state in STOCK for each in every)

    @invariant()
    def idle_is_what_is_not_busy(self) -> None:
        for state, members in self.inventory.by_state.items():
            assert self.inventory.idle(state) == sum(not each.busy for each in members.values())

    @invariant()
    def busy_is_what_was_taken(self) -> None:
        busy = {uid for uid, each in self.inventory.instances.items() if each.busy}
        assert busy == set(self.taken)

    @invariant()
    def draining_is_the_end_but_for_deletion(self) -> None:
        for uid in self.drained:
            assert self.inventory.instances[uid].state in {State.DRAINING, State.TERMINATING}

    @invariant()
    def what_time_will_change_is_due(self) -> None:
        waits = [
            each.derived.recheck_at
            for each in self.inventory.instances.values()
            if each.derived.recheck_at is not None
        ]
        due = self.inventory.next_due()
        assert not waits or (due is not None and due <= min(waits))

    def _best(self) -> Instance | None:
        sign = 1.0 if self.inventory.order is ClaimOrder.OLDEST else -1.0
        free = [
            each for each in self.inventory.instances.values() if each.state is State.WARM and not each.busy
        ]
        return min(free, key=lambda each: (sign * each.created, each.name), default=None)


TestBooks = Books.TestCase
TestBooks.settings = settings(max_examples=60, stateful_step_count=40)
