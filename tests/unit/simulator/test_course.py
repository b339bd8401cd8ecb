"""The decision tells every situation from what is observed alone."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.kubevirt.behaviour import Profile
from simulator.kubevirt.course import LEADS_TO, Course, decide
from simulator.kubevirt.objects import ORPHAN, VM, VM_FINALIZER, VMI
from tests.unit.simulator.making import condition, make_vm, make_vmi, opened_vm

C = Course
NONE: Any = None


def stop_request(uid: str) -> dict[str, Any]:
    return {"stateChangeRequests": [{"action": "Stop", "uid": uid}, {"action": "Start"}]}


CASES: list[tuple[str, VM | None, VMI | None, Course]] = [
    ("a new VM is booted", make_vm(), None, C.BOOT),
    ("a halted VM is parked", make_vm(strategy="Halted"), None, C.PARK),
    ("a manual VM waits to be started", make_vm(strategy="Manual"), None, C.PARK),
    ("a VM that runs once is booted", make_vm(strategy="Once"), None, C.BOOT),
    ("a VMI on its way is brought to Ready", make_vm(), make_vmi("Scheduling", ready=False), C.RESUME),
    ("a running VMI that is not Ready yet is brought to Ready", make_vm(), make_vmi(ready=False), C.RESUME),
    ("a Ready VMI lives", make_vm(), make_vmi(), C.LIVE),
    (
        "a paused VMI is left so",
        make_vm(),
        make_vmi(ready=False, conditions=[condition("Paused")]),
        C.LIVE,
    ),
    (
        "a VMI on a lost node is left so",
        make_vm(),
        make_vmi(ready=False, reason="NodeUnresponsive"),
        C.LIVE,
    ),
    ("a guest that failed is replaced", make_vm(), make_vmi("Failed", ready=False), C.REPLACE),
    ("a guest that shut down is replaced", make_vm(), make_vmi("Succeeded", ready=False), C.REPLACE),
    (
        "a guest that shut down rests under RerunOnFailure",
        make_vm(strategy="RerunOnFailure"),
        make_vmi("Succeeded", ready=False),
        C.REST,
    ),
    (
        "a guest that failed is replaced under RerunOnFailure",
        make_vm(strategy="RerunOnFailure"),
        make_vmi("Failed", ready=False),
        C.REPLACE,
    ),
    ("a guest that ran once rests", make_vm(strategy="Once"), make_vmi("Failed", ready=False), C.REST),
    ("a VM halted while it runs is stopped", make_vm(strategy="Halted"), make_vmi(), C.STOP),
    ("a restart stops the VMI it names", make_vm(status=stop_request("vmi-uid")), make_vmi(), C.STOP),
    ("a restart of a VMI that is gone is over", make_vm(status=stop_request("old")), make_vmi(), C.LIVE),
    ("a VMI without an owner is adopted", make_vm(), make_vmi(owner=None), C.ADOPT),
    ("a namesake's VMI is waited for", make_vm(), make_vmi(owner="another"), C.IDLE),
    ("an ended VMI without an owner is not adopted", make_vm(), make_vmi("Failed", owner=None), C.IDLE),
    ("a VMI that is being deleted is cleaned", make_vm(), make_vmi(deleting=True), C.CLEAN),
    (
        "a VMI that others hold is not ours to clean",
        make_vm(),
        make_vmi(deleting=True, finalizers=["x"]),
        C.IDLE,
    ),
    ("a deleted VM takes its VMI first", opened_vm(deleting=True), make_vmi(), C.TEAR_DOWN),
    ("a deleted VM without a VMI is let go", opened_vm(deleting=True), None, C.RELEASE),
    (
        "a deleted VM that others hold is not ours",
        make_vm(deleting=True, finalizers=["x"]),
        None,
        C.IDLE,
    ),
    (
        "an orphan delete leaves the VMI",
        make_vm(deleting=True, finalizers=[VM_FINALIZER, ORPHAN]),
        make_vmi(),
        C.RELEASE,
    ),
    ("nothing is nothing to do", None, None, C.IDLE),
    ("a VMI whose VM is gone is the garbage collector's", None, make_vmi(), C.IDLE),
]


@pytest.mark.parametrize(
    ("vm", "vmi", "course"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_situation_has_its_course(vm: VM | None, vmi: VMI | None, course: Course) -> None:
    assert decide(vm, vmi, Profile.OBSERVED) is course


def test_in_the_minimal_profile_a_vmi_whose_vm_is_gone_is_ours_to_delete() -> None:
    assert decide(None, make_vmi(finalizers=[]), Profile.MINIMAL) is C.ORPHANED


def test_in_the_minimal_profile_an_orphaned_vmi_is_left_alone() -> None:
    assert decide(None, make_vmi(owner=None), Profile.MINIMAL) is C.IDLE


def test_running_true_means_always_and_false_means_halted() -> None:
    more = {"runStrategy": None}
    assert decide(make_vm(more={**more, "running": True}), NONE, Profile.OBSERVED) is C.BOOT
    assert decide(make_vm(more={**more, "running": False}), NONE, Profile.OBSERVED) is C.PARK


def test_no_script_survives_the_deletion_of_its_vm_but_one_that_cleans_up() -> None:
    for course, led_to in LEADS_TO.items():
        assert not {C.TEAR_DOWN, C.RELEASE, C.STOP} & led_to, course
