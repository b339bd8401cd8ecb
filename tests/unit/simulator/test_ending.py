"""How guests, VMIs and VMs end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.kubevirt import ending
from simulator.kubevirt.behaviour import Profile
from simulator.kubevirt.boot import boot
from simulator.kubevirt.objects import ORPHAN, VM_FINALIZER
from simulator.kubevirt.script import Verb
from tests.unit.simulator.making import (
    NOW,
    condition,
    conditions_of,
    make_life,
    make_vm,
    make_vmi,
    names,
    opened_vm,
    verbs,
)

V = Verb
ENDED = make_vmi("Failed", ready=False)


@given(seed=st.integers(0, 10_000))
def test_a_crashed_vm_says_stopped_while_ready_for_40_to_85_ms(seed: int) -> None:
    script = ending.replace(make_life(opened_vm(), ENDED, seed=seed), ENDED)
    stale, told = (write for write in script if write.verb is V.VM_STATUS)
    assert stale.name == "Stopped"
    assert "conditions" not in stale.body["status"]
    assert conditions_of(told)["Ready"] == "False"
    assert 0.040 <= told.at - stale.at <= 0.085
    assert verbs(script) == [V.VM_STATUS, V.DELETE, V.UNFINALIZE_VMI, V.UNFINALIZE_VMI, V.VM_STATUS]


def test_a_start_that_failed_counts_and_is_a_crash_loop() -> None:
    vmi = make_vmi("Failed", ready=False, ran=False)
    vm = opened_vm(status={"printableStatus": "Starting", "startFailure": {"consecutiveFailCount": 1}})
    script = ending.replace(make_life(vm, vmi), vmi)
    assert script[0].name == "CrashLoopBackOff"
    assert script[0].body["status"]["startFailure"] == {"consecutiveFailCount": 2}


def test_in_the_minimal_profile_a_crashed_guest_is_just_deleted() -> None:
    script = ending.replace(make_life(opened_vm(), ENDED, profile=Profile.MINIMAL), ENDED)
    assert verbs(script) == [V.DELETE]


def test_a_deleted_vm_changes_twice_and_its_vmi_three_times_before_they_are_let_go() -> None:
    vm = opened_vm(deleting=True)
    taken = ending.tear_down(make_life(vm, make_vmi()))
    cleaned = ending.clean(make_vmi(deleting=True), NOW, 0.1)
    released = ending.release(make_life(vm))
    assert verbs(taken) == [V.VM_STATUS, V.DELETE]
    assert verbs(cleaned) == [V.VMI, V.VMI, V.UNFINALIZE_VMI, V.UNFINALIZE_VMI]
    assert verbs(released) == [V.VM_STATUS, V.UNFINALIZE]
    assert names(taken, V.VM_STATUS) == names(released, V.VM_STATUS) == ["Terminating"]


def test_a_guest_takes_its_time_to_shut_down() -> None:
    cleaned = ending.clean(make_vmi(deleting=True), NOW, 2.0)
    assert next(write.name for write in cleaned if write.at >= 2.0) == "Succeeded"
    assert conditions_of(cleaned[0])["Ready"] == "False"


def test_virt_handlers_finalizer_goes_first() -> None:
    cleaned = ending.clean(make_vmi("Failed", deleting=True), NOW, 2.0)
    assert names(cleaned) == ["foregroundDeleteVirtualMachine", VM_FINALIZER]
    assert cleaned[-1].at < 0.1


def test_an_orphan_delete_says_nothing_about_a_vmi_that_lives_on() -> None:
    vm = make_vm(deleting=True, finalizers=[VM_FINALIZER, ORPHAN])
    assert verbs(ending.release(make_life(vm, make_vmi()))) == [V.UNFINALIZE]


@pytest.mark.parametrize("profile", list(Profile))
def test_stopping_deletes_the_vmi_and_only_the_observed_profile_says_so(profile: Profile) -> None:
    script = ending.stop(make_life(opened_vm(strategy="Halted"), make_vmi(), profile=profile))
    assert verbs(script)[-1] is V.DELETE
    assert names(script, V.VM_STATUS) == (["Stopping"] if profile is Profile.OBSERVED else [])


def test_a_restart_is_asked_for_until_the_vmi_is_gone() -> None:
    asked = opened_vm(
        status={"printableStatus": "Running", "stateChangeRequests": [{"action": "Stop", "uid": "vmi-uid"}]}
    )
    stopping = ending.stop(make_life(asked, make_vmi()))[0]
    assert "stateChangeRequests" not in stopping.body["status"]
    for booting in boot(make_life(asked)):
        if booting.verb is V.VM_STATUS:
            assert booting.body["status"]["stateChangeRequests"] is None


def test_a_halted_vm_is_opened_and_parked_once() -> None:
    script = ending.park(make_life(make_vm(strategy="Halted")))
    assert verbs(script) == [V.FILL_DEFAULTS, V.VM_STATUS, V.ANNOTATE, V.FINALIZE, V.VM_STATUS]
    parked = {"printableStatus": "Stopped", "conditions": [condition("Ready", "False", "VMINotExists")]}
    assert ending.park(make_life(opened_vm(strategy="Halted", status=parked))) == ()


def test_a_guest_that_ended_as_it_should_is_told_once() -> None:
    vmi = make_vmi("Succeeded", ready=False)
    (write,) = ending.rest(make_life(opened_vm(status={"printableStatus": "Running"}), vmi), vmi)
    assert write.name == "Stopped"
    assert ending.rest(make_life(opened_vm(), vmi), vmi) == ()
