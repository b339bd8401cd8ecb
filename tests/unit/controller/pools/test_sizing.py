"""How a pool's passes and the engine go together: what it is asked, how often, and what a restart changes."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY

from capacity.decision import WebhookAnswer
from controller.claims.desk import Desk
from controller.claims.loop import Namespace
from controller.claims.queue import Queue
from controller.claims.records import PoolRecord
from controller.claims.tally import Served
from controller.kube.errors import NotFound
from controller.machines.inventory import Inventory
from controller.machines.readiness import ReadinessRule
from controller.pools.brake import BrakeState
from controller.pools.sizing import PACE, TOLD, Sizing
from crds import names
from crds.pool import ClaimOrder, VirtualMachinePool
from tests.support.builders import NOW, POOL_UID, make_claim, make_pool, make_vm, make_vmi

Json = dict[str, Any]
INTERVAL = 300.0
REVISION = "0123456789"


def sized(*, status: Json | None = None, readiness: Json | None = None, **warm: Any) -> VirtualMachinePool:
    """A pool with this `spec.warm`."""
    pool = make_pool(status=status, readiness=readiness)
    spec = type(pool.spec.warm).model_validate({"replicas": 2, **warm})
    return pool.model_copy(update={"spec": pool.spec.model_copy(update={"warm": spec})})


class Nothing:
    """An API server that keeps nothing."""

    async def get(self, _path: str, **_: object) -> bytes:
        raise NotFound(404)


class Bench:
    """One pool's sizing, its VMs, and a clock."""

    def __init__(self, pool: VirtualMachinePool, *claims: float) -> None:
        self.now, self.desk, self.woken = NOW, Desk(1), 0
        there = {str(number): make_claim(str(number), age=age) for number, age in enumerate(claims)}
        space = SimpleNamespace(
            client=Nothing(),
            name="ns",
            now=lambda: self.now,
            desk=self.desk,
            router=SimpleNamespace(claims=there),
        )
        self.inventory = Inventory(POOL_UID)
        self.inventory.configure(ReadinessRule(), ClaimOrder.OLDEST, NOW)
        self.record = PoolRecord(pool, self.inventory, Queue())
        self.brake = BrakeState()
        self.sizing = Sizing(cast("Namespace", space), self.record, INTERVAL, self.wake)
        self.sizing.memory.due = math.inf  # nothing is written here

    def wake(self) -> None:
        self.woken += 1

    def look(self, after: float = 0.0) -> int:
        """One pass later: the target."""
        self.now += after
        self.sizing.look(self.record.pool, REVISION, self.brake)
        return self.sizing.decision.target

    def change(self, **warm: Any) -> None:
        self.record.pool = sized(**warm)

    def vms(self, count: int, state: names.Mark = names.Mark.POOLED) -> None:
        for number in range(count):
            name = f"{state.value.lower()}-{number}"
            self.inventory.observe(make_vm(name, state=state), make_vmi(name), None, self.now)


def test_by_default_the_target_is_the_number_and_follows_it_at_once() -> None:
    bench = Bench(sized())
    assert bench.look() == 2
    bench.change(replicas=7)
    assert bench.look() == 7
    bench.change(replicas=0)
    assert bench.look() == 0


def test_a_share_of_the_vms_in_use_is_kept() -> None:
    bench = Bench(sized(percent="50%"))
    bench.vms(6, names.Mark.CLAIMED)
    assert bench.look() == 3


def test_a_vm_on_its_way_to_a_claim_is_in_use() -> None:
    bench = Bench(sized(percent="100%"))
    bench.vms(4, names.Mark.CLAIMED)
    bench.vms(1)
    assert bench.look() == 4
    bench.inventory.take("hand-over")
    assert bench.look(after=PACE) == 5


def test_a_pool_that_sizes_itself_is_decided_once_a_second_and_a_changed_spec_at_once() -> None:
    bench = Bench(sized(percent="100%"))
    assert bench.look() == 2
    bench.vms(4, names.Mark.CLAIMED)
    assert bench.look(after=0.3 * PACE) == 2
    assert min(at for at in bench.sizing.due if at > bench.now) == pytest.approx(NOW + PACE), "a pass then"
    assert bench.look(after=0.8 * PACE) == 4
    bench.change(percent="100%", replicas=9)
    assert bench.look(after=0.1 * PACE) == 9


def test_the_webhooks_word_counts() -> None:
    bench = Bench(sized(webhook={"url": "https://example.com/warm"}))
    bench.sizing._asker.due = math.inf  # nobody is asked here
    bench.sizing._asker._asked = bench.record.pool.spec.warm.webhook
    assert bench.look() == 2
    bench.sizing._asker.heard = WebhookAnswer(6, NOW)
    assert bench.look(after=PACE) == 6
    bench.sizing._asker.heard = WebhookAnswer(6, NOW, "it answered 503, not 200")
    assert bench.look(after=PACE) == 6
    assert [each.reason for each in bench.sizing.decision.warnings] == ["WebhookFailing"]


def test_a_webhook_is_told_what_the_status_says() -> None:
    bench = Bench(sized())
    bench.vms(3)
    bench.record.queue.push(make_claim(), NOW)
    bench.look()
    assert bench.sizing._question() == {
        "pool": {"namespace": "ns", "name": "pool", "uid": POOL_UID},
        "warm": {"ready": 3, "booting": 0, "target": 2},
        "claimed": 0,
        "pending": 1,
        "demand": {},
    }


# ---- restarts


def status(target: int, by: str) -> Json:
    return {"warm": {"ready": 0, "target": target, "decidedBy": by}}


def test_a_restart_makes_no_jump_down() -> None:
    bench = Bench(sized(percent="0%", status=status(8, "percent")))
    assert bench.sizing.decision.target == 8
    assert bench.look() == 8, "what was asked for holds for scaleDown.stabilization"
    assert bench.look(after=299) == 8
    assert bench.look(after=3) == 2


def test_a_restart_does_not_hold_what_a_person_wrote() -> None:
    bench = Bench(sized(percent="0%", status=status(8, "replicas")))
    assert bench.look() == 2


def test_a_pool_without_a_status_begins_with_its_floor() -> None:
    bench = Bench(sized())
    assert (bench.sizing.decision.target, bench.sizing.decision.decided_by) == (2, "replicas")


async def test_a_pool_whose_size_may_hang_on_its_history_waits_for_it() -> None:
    bench = Bench(sized(serviceLevel={"target": "99%"}), 10.0)
    await bench.sizing.begin()
    assert bench.sizing.memory.demand.read


async def test_any_other_one_does_not() -> None:
    bench = Bench(sized())
    await bench.sizing.begin()
    assert not bench.sizing.memory.demand.read
    await asyncio.gather(*bench.desk.tasks)
    assert bench.sizing.memory.demand.read


# ---- what is remembered


def demand(bench: Bench) -> list[int]:
    return list(bench.sizing.memory.demand.history.arrivals)


def test_claims_are_taken_from_the_tally_once() -> None:
    bench = Bench(sized())
    bench.record.tally.arrived.append(NOW)
    bench.record.tally.served.append(Served(NOW, 0.0))
    for _ in range(3):
        bench.look()
    assert demand(bench) == [int(NOW)]
    assert bench.sizing.memory.demand.history.hit_ratio(NOW + 1) == 1.0


def test_a_claim_that_waited_no_longer_than_max_wait_was_served_in_time() -> None:
    bench = Bench(sized(serviceLevel={"target": "99%", "maxWait": "30s"}))
    bench.record.tally.served.append(Served(NOW, 20.0))
    bench.look()
    assert bench.sizing.memory.demand.history.hit_ratio(NOW + 1) == 1.0


def boots(bench: Bench) -> float | None:
    found = bench.sizing.memory.demand.history.leads.of("", None)
    return found.quantile(0.5) if found.count else None


def booted(bench: Bench, took: float, *, room: bool = True) -> None:
    bench.vms(1)
    [instance] = bench.inventory.instances.values()
    instance.had_no_room = not room
    bench.sizing.booted(instance, took)


def test_a_boot_is_a_lead_time() -> None:
    bench = Bench(sized())
    booted(bench, 20.0)
    assert boots(bench) == pytest.approx(20.0, rel=0.02)


def test_no_lead_time_is_longer_than_the_deadline() -> None:
    bench = Bench(sized(readiness={"deadline": "60s"}))
    booted(bench, 4_000.0)
    assert boots(bench) == pytest.approx(60.0, rel=0.02)


def test_a_vm_for_which_there_was_no_node_says_nothing() -> None:
    bench = Bench(sized())
    booted(bench, 300.0, room=False)
    assert boots(bench) is None


@pytest.mark.parametrize("trouble", ["the brake is open", "KubeVirt is away"])
def test_nor_does_one_in_an_outage_and_its_time_does_not_count(trouble: str) -> None:
    bench = Bench(sized())
    if trouble == "the brake is open":
        bench.brake = BrakeState(3, NOW - 10, NOW + 10, 10.0)
    else:
        bench.desk.missing = trouble
    bench.look()
    booted(bench, 300.0)
    assert boots(bench) is None
    bench.brake, bench.desk.missing = BrakeState(), ""
    bench.look(after=60)
    [(start, end)] = bench.sizing.memory.demand.history.gaps
    assert (start, end) == (NOW - 10 if trouble == "the brake is open" else NOW, NOW + 60)


# ---- what is told


def test_rates_are_told_anew_once_a_minute_and_not_with_every_claim() -> None:
    bench = Bench(sized())
    bench.sizing.memory.demand.begin(NOW)
    told = []
    for number in range(50):
        bench.record.tally.arrived.append(NOW + number)
        bench.look(after=1.0)
        told.append(bench.sizing.told.claims_per_hour)
    assert len(set(told)) == 1
    bench.look(after=TOLD * INTERVAL)
    assert bench.sizing.told.claims_per_hour not in told


def test_a_new_target_is_told_at_once() -> None:
    bench = Bench(sized())
    bench.look()
    bench.change(replicas=5)
    bench.look()
    assert bench.sizing.told.decision.target == 5


def test_a_lost_history_concerns_those_who_build_on_it_and_is_told_before_what_follows_from_it() -> None:
    level = {"target": "99%"}
    for pool, reasons in ((sized(), []), (sized(serviceLevel=level), ["HistoryLost", "TooFewClaims"])):
        bench = Bench(pool)
        bench.sizing.memory.trouble = "no right to"
        bench.look()
        assert [each.reason for each in bench.sizing.decision.warnings] == reasons


# ---- figures for machines


def idle() -> float:
    return (
        REGISTRY.get_sample_value("bullpen_idle_vm_seconds_total", {"namespace": "ns", "pool": "pool"}) or 0
    )


def test_time_that_vms_stand_unclaimed_is_counted() -> None:
    bench = Bench(sized())
    bench.vms(3)
    bench.vms(2, names.Mark.CLAIMED)
    bench.look()
    before = idle()
    bench.look(after=10.0)
    assert idle() - before == pytest.approx(30.0)
