"""A pool's loop, where it waits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from controller.claims.desk import Desk
from controller.claims.loop import Namespace
from controller.claims.queue import Queue
from controller.claims.records import PoolRecord
from controller.kube.errors import NotFound, UnknownOutcome
from controller.kube.timeline import Timeline
from controller.machines.inventory import Inventory
from controller.machines.objects import Node, VirtualMachineInstance
from controller.machines.readiness import ReadinessRule
from controller.machines.revision import revision
from controller.pools.brake import BrakeState
from controller.pools.changes import Data
from controller.pools.loop import PoolLoop
from controller.pools.plan import Check, Create, Remove, plan
from controller.pools.refusals import Refusal, Refusals
from controller.pools.snapshot import Snapshot, Trouble
from crds import names
from crds.conditions import PoolReason
from crds.pool import ClaimOrder, VirtualMachinePool
from crds.pool_status import ReferencedObject
from statemachines.instance import State
from tests.support.builders import NOW, POOL_UID, make_node, make_pool, make_template, make_vm, make_vmi


class Nothing:
    """An API server that has nothing."""

    async def get(self, _path: str, **_: object) -> bytes:
        raise NotFound(404)


@pytest.fixture
def loop() -> PoolLoop:
    space = SimpleNamespace(
        client=Nothing(),
        name="ns",
        vms=None,
        executor=None,
        now=lambda: NOW,
        router=SimpleNamespace(claims={}),
        desk=Desk(1),
    )
    inventory = Inventory(POOL_UID)
    inventory.configure(ReadinessRule(), ClaimOrder.OLDEST, NOW)
    return PoolLoop(cast("Namespace", space), PoolRecord(make_pool(), inventory, Queue()), 1.0, 300.0)


async def test_a_loop_that_is_cancelled_together_with_a_change_ends(loop: PoolLoop) -> None:
    waiting = asyncio.create_task(loop._wait())
    await asyncio.sleep(0)
    loop.wake.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_change_ends_the_wait_and_is_taken_note_of(loop: PoolLoop) -> None:
    loop.wake.set()
    async with asyncio.timeout(5):
        await loop._wait()
    assert not loop.wake.is_set()


async def test_what_comes_due_while_a_pass_is_under_way_is_not_waited_for_until_the_resync(
    loop: PoolLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [NOW]
    monkeypatch.setattr(loop.space, "now", lambda: clock[0])

    async def slow() -> None:
        loop._retry_at = clock[0] + 0.5  # it was looked at, and is due before the pass is over
        clock[0] += 1.0

    monkeypatch.setattr(loop, "_adopt", slow)
    monkeypatch.setattr("controller.pools.loop.plan", lambda _: [])
    monkeypatch.setattr(loop._reporter, "soon", lambda: None)
    await loop._pass()
    async with asyncio.timeout(5):
        await loop._wait()


async def test_what_was_due_before_the_last_pass_wakes_nobody(loop: PoolLoop) -> None:
    loop._retry_at = NOW - 1.0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await loop._wait()


def test_a_booting_vm_that_is_being_removed_is_not_counted_until_its_mark_is_seen(loop: PoolLoop) -> None:
    inventory = loop.record.inventory
    for name in "abcd":
        inventory.observe(make_vm(name, age=30.0), None, None, NOW)
    [first] = [each for each in plan(loop._snapshot()) if isinstance(each, Remove)]
    for instance in first.instances:
        inventory.reserve(instance, "drain")
    assert len(first.instances) == 1
    assert not any(isinstance(each, Remove) for each in plan(loop._snapshot())), "one more goes"


def test_a_vm_under_deletion_is_stuck_by_a_clock_that_nobody_sets(loop: PoolLoop) -> None:
    inventory = loop.record.inventory
    inventory.observe(make_vm("a", deleting=True), None, None, NOW)
    loop.space.desk.stuck_after = 0.5
    assert len(loop._snapshot().stuck) == 1
    host_behind = Timeline(Timeline().heard(NOW + 1.0, 1.0).stretches, host=NOW - 3600.0)
    inventory.timeline = lambda: host_behind
    assert not loop._snapshot().stuck


@pytest.mark.parametrize(("of_another", "failures"), [(True, 2), (False, 0)])
def test_a_boot_of_another_template_does_not_speak_for_this_one(
    loop: PoolLoop,
    of_another: bool,  # noqa: FBT001 - pytest gives it by name
    failures: int,
) -> None:
    loop._read_template()
    loop._boots.brake = BrakeState(2)
    labels: dict[str, str | None] = {} if of_another else {names.LABEL_REVISION: loop._revision}
    inventory = loop.record.inventory
    inventory.observe(make_vm("a", age=30.0, labels=labels), None, None, NOW)
    inventory.observe(make_vm("a", age=30.0, labels=labels), make_vmi("a"), None, NOW)
    loop._boots.count(loop._freshness.standard, NOW)
    assert loop._boots.brake.failures == failures
    assert loop.record.boots.median is not None
    assert loop._snapshot().proven == (0 if of_another else 1)


def changed(pool: VirtualMachinePool) -> VirtualMachinePool:
    """The same pool a moment later, with another template."""
    later = make_pool(template=make_template(hostname="b"))
    return later.model_copy(update={"metadata": pool.metadata.model_copy(update={"generation": 2})})


def test_a_status_never_says_that_a_change_was_seen_before_a_pass_has_judged_it(loop: PoolLoop) -> None:
    loop._read_template()
    loop.record.pool = changed(loop.pool)
    before = loop._status({})
    assert (before["observedGeneration"], before["currentRevision"]) == (1, revision(make_pool()))
    loop._read_template()
    after = loop._status({})
    assert (after["observedGeneration"], after["currentRevision"]) == (2, revision(loop.pool))


async def test_a_vm_is_made_from_the_template_that_its_revision_says(loop: PoolLoop) -> None:
    """The template changes while the first of two VMs is being made."""
    made: list[tuple[str, str]] = []

    async def create(pool: VirtualMachinePool, label: str, *, urgent: bool) -> None:
        assert not urgent
        loop.record.pool = changed(loop.pool)
        made.append((revision(pool), label))

    loop._writer.create = create  # type: ignore[method-assign, assignment]
    loop._read_template()
    loop._planned = 7
    await loop._create(7, loop._snapshot())
    assert len(made) == 7
    assert {template == label for template, label in made} == {True}


async def test_no_more_vms_of_a_template_are_made_once_it_was_judged_to_have_changed(loop: PoolLoop) -> None:
    made: list[str] = []

    async def create(_pool: VirtualMachinePool, label: str, *, urgent: bool) -> None:
        assert not urgent
        made.append(label)
        loop.record.pool = changed(loop.pool)
        loop._read_template()

    loop._writer.create = create  # type: ignore[method-assign, assignment]
    loop._read_template()
    loop._planned = 7
    await loop._create(7, loop._snapshot())
    assert made == [revision(make_pool())]
    assert loop._planned == 0


class Refusing:
    """An API server that refuses the pool's finalizer again and again, always in the same words."""

    def __init__(self, refusals: int, error: Exception) -> None:
        self.left = refusals
        self.error = error
        self.adopted = asyncio.Event()

    async def adopt(self) -> None:
        if self.left:
            self.left -= 1
            raise self.error
        self.adopted.set()
        await asyncio.Event().wait()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses take no time."""
    sleep = asyncio.sleep
    monkeypatch.setattr("controller.pools.loop.asyncio.sleep", lambda _seconds: sleep(0))


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("error", "reason"),
    [(UnknownOutcome(503, message="not ready"), "ApiRefused"), (ValueError("a mistake"), "InternalError")],
)
async def test_a_pass_that_fails_is_made_again_though_nothing_changes(
    loop: PoolLoop, error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, said = Refusing(3, error), []
    monkeypatch.setattr(loop, "_adopt", api.adopt)
    monkeypatch.setattr(loop._reporter, "soon", lambda: said.append(loop._refusals.trouble))
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(5):
        await api.adopted.wait()
    running.cancel()
    assert [each.reason for each in said if each is not None] == [reason] * 3


@pytest.mark.usefixtures("hasty")
async def test_a_failed_pass_of_a_pool_whose_template_was_bad_once_is_no_trouble_for_ever(
    loop: PoolLoop,
) -> None:
    loop._refusals = Refusals().failed(Trouble(PoolReason.TEMPLATE_INVALID, "no domain"))
    loop._generation = loop.pool.metadata.generation
    loop._reporter.soon = lambda: None  # type: ignore[method-assign]  # nothing is written here
    await loop._falter(PoolReason.API_REFUSED, "not ready", 1)
    loop._read_template()
    assert loop._refusals.trouble is None


@pytest.mark.usefixtures("hasty")
async def test_a_template_that_makes_vms_clash_is_refused_after_a_failed_pass_as_well(loop: PoolLoop) -> None:
    """The API server takes it: nobody but us stands between it and its VMs."""
    fixed = {"name": "default", "macAddress": "02:00:00:00:00:01"}
    loop.record.pool = make_pool(template=make_template(domain={"devices": {"interfaces": [fixed]}}))
    loop._reporter.soon = lambda: None  # type: ignore[method-assign]  # nothing is written here
    loop._read_template()
    await loop._falter(PoolReason.API_REFUSED, "not ready", 1)
    for _ in range(2):
        loop._read_template()
        assert loop._refusals.template
        assert not any(isinstance(each, Check | Create) for each in plan(loop._snapshot()))


def test_a_status_looks_at_no_vms_age_until_data_that_they_may_hold_has_changed(
    loop: PoolLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Snapshot] = []
    monkeypatch.setattr("controller.pools.loop.status", lambda seen, _: told.append(seen))
    loop.record.inventory.observe(make_vm("a", age=30.0), None, None, NOW)
    known = ReferencedObject(kind="Secret", name="init", uid="a", resource_version="1")
    later = known.model_copy(update={"changed_at": datetime.fromtimestamp(NOW, UTC)})
    for each in (known, later):
        loop._data.data = Data((each,), watched=True)
        loop._status({})
    assert [list(seen.unclaimed_since) for seen in told] == [[], [NOW - 30.0]]


async def test_a_refusal_long_after_another_is_no_reason_for_a_longer_pause(loop: PoolLoop) -> None:
    no = Refusal(PoolReason.API_REFUSED, "no")
    answers = iter([no, no, None, no])
    loop._writer.create = lambda *_, **__: _answered(next(answers))  # type: ignore[method-assign]
    loop._planned = 4
    pauses = []
    for _ in range(4):
        loop._refusals = loop._refusals.again()
        await loop._create_one(loop._snapshot())
        pauses.append(loop._refusals.retry_at - NOW)
    first, grown, _, again = pauses
    assert grown > 1.5 * first
    assert again < 1.2 * first


async def _answered(refusal: Refusal | None) -> Refusal | None:
    return refusal


@pytest.mark.parametrize(
    ("guest", "node", "failures"),
    [(make_vmi("a"), make_node(ready="Unknown"), 0), (make_vmi("a", ready=False), make_node(), 1)],
    ids=["its node died", "its guest failed"],
)
def test_a_vm_that_went_with_its_node_is_not_held_against_the_template(
    loop: PoolLoop, guest: VirtualMachineInstance, node: Node, failures: int
) -> None:
    vm = make_vm("a", labels={names.LABEL_REVISION: None})
    inventory, grace = loop.record.inventory, ReadinessRule().unready_grace
    inventory.observe(vm, make_vmi("a"), make_node(), NOW)
    inventory.observe(vm, guest, node, NOW)
    inventory.tick(NOW + grace)
    assert inventory.count(State.FAILED) == 1
    loop._boots.count(loop._freshness.standard, NOW)
    assert loop._boots.brake.failures == failures
