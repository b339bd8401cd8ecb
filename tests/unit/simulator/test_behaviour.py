"""Whom a VM obeys, and what a spec gets wrong that KubeVirt accepts."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from simulator.kubevirt.behaviour import Behaviour, Defaults, Failure, behaviour
from simulator.kubevirt.distributions import Fixed
from simulator.kubevirt.objects import VM
from tests.unit.simulator.making import PREFIX, make_vm


def told(vm: VM, defaults: Defaults | None = None) -> Behaviour:
    return behaviour(vm, vm.template(), defaults or Defaults(), Random(1))


def guest(**spec: Any) -> dict[str, Any]:
    return {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}, **spec}


def test_a_vm_that_says_nothing_obeys_the_flags() -> None:
    how = told(make_vm(), Defaults(boot=Fixed(3.0), agent=Fixed(0.2)))
    assert (how.boot, how.agent, how.failure, how.crash_after) == (3.0, 0.2, None, None)


def test_the_template_wins_over_the_flags_and_the_vm_over_the_template() -> None:
    on_template = {f"{PREFIX}boot": "2s", f"{PREFIX}fail": "hang"}
    assert told(make_vm(template_annotations=on_template)).boot == 2.0
    how = told(make_vm(template_annotations=on_template, annotations={f"{PREFIX}boot": "3s"}))
    assert how.boot == 3.0
    assert how.failure is Failure.HANG


@pytest.mark.parametrize("failure", list(Failure))
def test_each_failure_can_be_commanded_by_its_name(failure: Failure) -> None:
    assert told(make_vm(annotations={f"{PREFIX}fail": failure.value})).failure is failure


@pytest.mark.parametrize("value", ["often", ""])
def test_a_failure_that_does_not_exist_is_none(value: str) -> None:
    assert told(make_vm(annotations={f"{PREFIX}fail": value})).failure is None


def test_a_time_that_cannot_be_read_counts_as_absent() -> None:
    assert told(make_vm(annotations={f"{PREFIX}boot": "soon"}), Defaults(boot=Fixed(4.0))).boot == 4.0


@pytest.mark.parametrize(
    ("spec", "failure"),
    [
        ({"domain": {"devices": {}}}, Failure.FAILED_CREATE),
        ({"domain": {"devices": {}, "resources": {"requests": {"cpu": "1"}}}}, Failure.FAILED_CREATE),
        ({"domain": {"devices": {}, "resources": {"requests": {"memory": "1Gi"}}}}, None),
        ({"domain": {"devices": {}, "resources": {"limits": {"memory": "1Gi"}}}}, None),
        ({"domain": {"devices": {}, "memory": {"hugepages": {"pageSize": "2Mi"}}}}, None),
        (guest(volumes=[{"name": "d", "containerDisk": {"image": ""}}]), Failure.NO_IMAGE),
        (guest(volumes=[{"name": "d", "containerDisk": {}}]), Failure.NO_IMAGE),
        (guest(volumes=[{"name": "d", "containerDisk": {"image": "x"}}]), None),
        (
            guest(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "missing-disk"}}]),
            Failure.PVC_MISSING,
        ),
        (guest(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]), None),
        (guest(volumes=[{"name": "d", "secret": {"secretName": "missing-s"}}]), Failure.SECRET_MISSING),
        (
            guest(volumes=[{"name": "d", "cloudInitNoCloud": {"secretRef": {"name": "missing-s"}}}]),
            Failure.SECRET_MISSING,
        ),
        (guest(volumes=[{"name": "d", "cloudInitNoCloud": {"userData": "x"}}]), None),
    ],
)
def test_a_spec_that_never_runs_is_found_out(spec: dict[str, Any], failure: Failure | None) -> None:
    assert told(make_vm(spec=spec)).failure is failure


@pytest.mark.parametrize(
    ("name", "failure"), [("u1.small", None), ("u9.none", Failure.FAILED_FIND_INSTANCETYPE)]
)
def test_an_instancetype_brings_memory_if_it_is_known(name: str, failure: Failure | None) -> None:
    vm = make_vm(spec={"domain": {"devices": {}}}, more={"instancetype": {"name": name}})
    assert told(vm).failure is failure


def test_shares_are_kept_over_many_vms() -> None:
    defaults = Defaults(failures={Failure.CRASH_LOOP: 0.1, Failure.HANG: 0.3})
    counts = Counter(told(make_vm(uid=f"uid-{number}"), defaults).failure for number in range(3000))
    assert counts[Failure.CRASH_LOOP] == pytest.approx(300, rel=0.2)
    assert counts[Failure.HANG] == pytest.approx(900, rel=0.15)


def test_the_same_vm_fails_the_same_way_again() -> None:
    defaults = Defaults(failures={Failure.CRASH_LOOP: 0.5})
    for number in range(50):
        vm = make_vm(uid=f"uid-{number}")
        assert told(vm, defaults).failure is told(vm, defaults).failure


def test_a_vm_that_is_commanded_not_to_fail_is_not_of_the_share() -> None:
    defaults = Defaults(failures={Failure.CRASH_LOOP: 1.0})
    assert told(make_vm(annotations={f"{PREFIX}fail": "none"}), defaults).failure is None
