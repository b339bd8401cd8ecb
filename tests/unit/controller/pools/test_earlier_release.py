"""Pools and VMs as an earlier release made them, under this one: no VM is replaced.

The objects are recorded, with the revisions that the release's own algorithm gave; they are never made anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from controller.claims.desk import Desk
from controller.claims.loop import Namespace
from controller.claims.queue import Queue
from controller.claims.records import PoolRecord
from controller.machines.inventory import Inventory
from controller.machines.objects import VirtualMachine
from controller.machines.readiness import ReadinessRule
from controller.pools.loop import PoolLoop
from controller.pools.plan import plan
from crds.pool import parse_pool
from tests.support.builders import NOW, make_vmi

Json = dict[str, Any]
RECORDED: list[Json] = json.loads(Path(__file__).with_name("earlier_objects.json").read_text())
recorded = pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["what"]))


def new_controller(pool: Json, vms: list[Json]) -> PoolLoop:
    """This release's loop, which has read these objects and whose first pass begins."""
    space = SimpleNamespace(
        client=None,
        name="ns",
        vms=None,
        executor=None,
        now=lambda: NOW,
        router=SimpleNamespace(claims={}),
        desk=Desk(1),
    )
    parsed = parse_pool(pool)
    inventory = Inventory(parsed.metadata.uid)
    inventory.configure(ReadinessRule.of(parsed.spec.readiness), parsed.spec.claims.order, NOW)
    for each in vms:
        vm = msgspec.convert(each, VirtualMachine)
        name = vm.metadata.name
        inventory.observe(vm, make_vmi(name, vm_uid=vm.metadata.uid), None, NOW)
    loop = PoolLoop(cast("Namespace", space), PoolRecord(parsed, inventory, Queue()), 10.0, 300.0)
    loop._read_template()
    loop._sizing.look(loop._judged, loop._revision, loop._boots.brake)
    loop._checked = True
    return loop


def with_spec(pool: Json, **spec: Any) -> Json:
    return {**pool, "spec": {**pool["spec"], **spec}}


@recorded
@pytest.mark.parametrize("kind", [None, "Replenish", "RollingUpdate", "Recreate"])
def test_no_vm_of_an_earlier_release_is_replaced(case: Json, kind: str | None) -> None:
    pool = case["pool"] if kind is None else with_spec(case["pool"], updateStrategy={"type": kind})
    loop = new_controller(pool, case["vms"])
    seen = loop._snapshot()
    assert plan(seen) == []
    assert (seen.ready, seen.revisions.updated, seen.revisions.stale) == (3, 3, 0)
    said = {each["type"]: each for each in loop._status(case["pool"]["status"])["conditions"]}
    assert (said["RolledOut"]["status"], said["Ready"]["status"]) == ("True", "True")


@recorded
def test_a_change_after_the_upgrade_does_replace_them(case: Json) -> None:
    template = case["pool"]["spec"]["template"]
    changed = {**template, "metadata": {"labels": {"team": "b"}}}
    pool = with_spec(case["pool"], template=changed, updateStrategy={"type": "RollingUpdate"})
    seen = new_controller(pool, case["vms"])._snapshot()
    assert seen.revisions.stale == 3
    assert [type(each).__name__ for each in plan(seen)] == ["Create"]


@recorded
def test_an_open_brake_stays_open_over_an_upgrade(case: Json) -> None:
    brake = {"failures": 3, "openSince": "2026-01-01T11:30:00Z", "nextProbeTime": "2026-01-01T12:01:00Z"}
    pool = {**case["pool"], "status": {**case["pool"]["status"], "brake": brake}}
    assert new_controller(pool, case["vms"])._boots.brake.open


def test_the_recorded_revisions_are_not_all_this_releases_own() -> None:
    """Else the test above would prove nothing about an algorithm that has changed since."""
    own = [new_controller(case["pool"], [])._revision for case in RECORDED]
    theirs = [case["pool"]["status"]["currentRevision"] for case in RECORDED]
    assert sum(mine != their for mine, their in zip(own, theirs, strict=True)) >= 2
