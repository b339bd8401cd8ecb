"""Which VMs are outdated, told without a walk over all of them while none is."""

from __future__ import annotations

from typing import Any

import pytest

from controller.kube.timeline import Timeline
from controller.machines.inventory import Inventory
from controller.machines.objects import VirtualMachine, VirtualMachineInstance
from controller.machines.readiness import ReadinessRule
from controller.machines.revision import revision
from controller.pools.freshness import JITTER, Freshness, Revisions, Standard
from crds import names
from crds.pool import ClaimOrder, VirtualMachinePool
from statemachines.instance import State
from tests.support.builders import NOW, make_condition, make_instance, make_pool, make_vm, make_vmi

Json = dict[str, Any]
ROLLING: Json = {"type": "RollingUpdate"}
CURRENT: dict[str, str | None] = {names.LABEL_REVISION: revision(make_pool())}


def standing(**vms: Json) -> Inventory:
    """An inventory of warm VMs, whose fields are given by name."""
    inventory = Inventory("pool-uid")
    inventory.configure(ReadinessRule(), ClaimOrder.OLDEST, NOW)
    for name, fields in vms.items():
        inventory.observe(make_vm(name, **fields), make_vmi(name), None, NOW)
    return inventory


def fresh(pool: VirtualMachinePool | None = None) -> Freshness:
    found = Freshness()
    found.configure(pool or make_pool(update=ROLLING))
    return found


def outdated(freshness: Freshness, inventory: Inventory, now: float = NOW) -> set[str]:
    found = freshness.outdated(inventory, freshness.count(inventory), now)
    return {each.name for each in found}


def test_vms_are_counted_by_their_revision() -> None:
    inventory = standing(
        a={"labels": CURRENT}, b={}, c={}, d={"labels": {names.LABEL_REVISION: None}}, e={"state": "Claimed"}
    )
    inventory.observe(make_vm("f", labels=CURRENT), None, None, NOW)
    assert fresh().count(inventory) == Revisions(updated=2, updated_warm=1, stale=2)


@pytest.mark.parametrize(
    ("kind", "stale"), [("RollingUpdate", {"b"}), ("Recreate", {"b"}), ("Replenish", set())]
)
def test_vms_of_another_template_are_outdated_unless_they_may_stay(kind: str, stale: set[str]) -> None:
    inventory = standing(a={"labels": CURRENT}, b={})
    assert outdated(fresh(make_pool(update={"type": kind})), inventory) == stale


def test_a_vm_whose_label_was_stripped_is_known_by_its_guest_and_is_current_if_that_is_silent_too() -> None:
    inventory = standing(a={"labels": {names.LABEL_REVISION: None}})
    assert outdated(fresh(), inventory) == set()
    guest = make_vmi("a")
    guest.metadata.labels[names.LABEL_REVISION] = "fedcba9876"
    inventory.observe(make_vm("a", labels={names.LABEL_REVISION: None}), guest, None, NOW)
    assert outdated(fresh(), inventory) == {"a"}


@pytest.mark.parametrize("state", ["Claimed", "Draining", "Retained", "Recycling"])
def test_a_vm_that_is_nobodys_to_replace_is_not_outdated(state: str) -> None:
    inventory = standing(a={"state": state, "age": 9000.0})
    assert outdated(fresh(make_pool(update=ROLLING, max_warm_age="1h")), inventory) == set()


def test_one_on_which_something_is_under_way_is_left_out() -> None:
    inventory = standing(a={}, b={})
    inventory.reserve(inventory.instances["a-uid"], "hand-over")
    assert outdated(fresh(), inventory) == {"b"}


def test_a_vm_expires_up_to_a_tenth_early_and_always_at_the_same_time() -> None:
    standard = Standard.of(make_pool(max_warm_age="1000s"))
    ages = [standard.expires(make_instance(f"vm-{n}", age=0.0)) - NOW for n in range(300)]
    assert all(1000 * (1 - JITTER) <= age <= 1000 for age in ages)
    assert max(ages) - min(ages) > 0.9 * 1000 * JITTER, "they go all at once"
    assert ages == [standard.expires(make_instance(f"vm-{n}", age=0.0)) - NOW for n in range(300)]


def test_a_vm_that_boots_has_a_deadline_and_no_age() -> None:
    inventory = standing()
    inventory.observe(make_vm("a", labels=CURRENT, age=60.0), None, None, NOW)
    assert inventory.count(State.PROVISIONING) == 1
    assert outdated(fresh(make_pool(max_warm_age="1s")), inventory) == set()


def test_a_vm_that_boots_is_looked_at_when_it_is_too_old_itself_and_no_boot_later() -> None:
    inventory, freshness = standing(), fresh(make_pool(max_warm_age="1000s"))
    inventory.observe(make_vm("a", labels=CURRENT, age=300.0), None, None, NOW)
    outdated(freshness, inventory)
    assert freshness.look_at == freshness.standard.expires(inventory.instances["a-uid"]) <= NOW + 700


def test_too_old_ones_are_outdated_whatever_the_strategy_is() -> None:
    inventory = standing(old={"labels": CURRENT, "age": 3600.0}, young={"labels": CURRENT, "age": 3000.0})
    assert outdated(fresh(make_pool(max_warm_age="1h")), inventory) == {"old"}


def test_one_that_is_too_old_is_told_again_until_it_is_gone() -> None:
    freshness, inventory = fresh(make_pool(max_warm_age="1h")), standing(old={"age": 3600.0})
    instance = inventory.instances["old-uid"]
    inventory.reserve(instance, "drain")
    assert outdated(freshness, inventory) == set()
    inventory.release(instance)
    assert outdated(freshness, inventory) == {"old"}
    inventory.forget("old-uid")
    assert outdated(freshness, inventory) == set()


class Unwalkable(dict[State, Any]):
    def __init__(self, booting: Json | None = None) -> None:
        self._booting = booting

    def __getitem__(self, state: State) -> Any:
        if state is State.PROVISIONING and self._booting is not None:
            return self._booting
        raise AssertionError("walked over the VMs")


def test_while_none_is_outdated_no_vm_is_looked_at() -> None:
    inventory = standing(a={"labels": CURRENT, "age": 0.0}, b={"labels": CURRENT, "age": 10.0})
    freshness = fresh(make_pool(update=ROLLING, max_warm_age="1h"))
    assert outdated(freshness, inventory) == set()
    assert NOW + 3200 < freshness.look_at <= NOW + 3600
    inventory.by_state = Unwalkable()
    assert outdated(freshness, inventory, NOW + 3000) == set()
    with pytest.raises(AssertionError, match="walked"):
        outdated(freshness, inventory, NOW + 3600)


def test_an_empty_pool_is_looked_at_before_the_first_of_its_vms_can_be_too_old() -> None:
    freshness = fresh(make_pool(max_warm_age="1000s"))
    outdated(freshness, standing())
    assert freshness.look_at == NOW + 1000 * (1 - JITTER)


def test_without_an_age_there_is_nothing_to_look_for() -> None:
    freshness = fresh()
    outdated(freshness, standing(a={"labels": CURRENT}))
    assert freshness.look_at == float("inf")


def test_without_an_age_no_time_is_compared_though_old_ones_are_there() -> None:
    inventory, freshness = standing(a={}), fresh()
    inventory.timeline = lambda: pytest.fail("compared times")
    assert outdated(freshness, inventory) == {"a"}


def test_replenishing_pools_walk_over_none_but_those_that_boot_though_old_ones_are_there() -> None:
    inventory, freshness = standing(a={}), fresh(make_pool())
    outdated(freshness, inventory)
    inventory.by_state = Unwalkable(booting={})
    assert outdated(freshness, inventory) == set()


def stranded(name: str, **labels: str | None) -> tuple[VirtualMachine, VirtualMachineInstance]:
    """A VM that no node has room for."""
    scheduled = make_condition("PodScheduled", status="False", reason="Unschedulable", message="no room")
    return make_vm(name, labels=labels), make_vmi(name, phase="Pending", conditions=[scheduled])


@pytest.mark.parametrize("kind", ["RollingUpdate", "Recreate", "Replenish"])
@pytest.mark.parametrize("age", [None, "1h"])
def test_one_of_another_template_that_no_node_has_room_for_is_outdated_whatever_the_strategy_is(
    kind: str, age: str | None
) -> None:
    """They counted as booting: the template that was put right was never made, and claims waited for ever."""
    inventory = standing()
    for vm, vmi in (stranded("theirs"), stranded("ours", **CURRENT)):
        inventory.observe(vm, vmi, None, NOW)
    pool = make_pool(update={"type": kind}, max_warm_age=age)
    assert inventory.count(State.PROVISIONING) == 2
    assert outdated(fresh(pool), inventory) == {"theirs"}
    inventory.reserve(inventory.instances[make_vm("theirs").metadata.uid], "drain")
    assert outdated(fresh(pool), inventory) == set()


def test_no_vm_is_too_old_because_the_servers_clock_was_set() -> None:
    inventory = standing(a={"labels": CURRENT, "age": 100.0})
    inventory.timeline = lambda: Timeline().heard(NOW, 0.0).heard(NOW + 7200.0, 10.0)
    pool = make_pool(max_warm_age="1h")
    assert outdated(fresh(pool), inventory, NOW + 7200.0 + 3100.0) == set()
    assert outdated(fresh(pool), inventory, NOW + 7200.0 + 3600.0) == {"a"}
