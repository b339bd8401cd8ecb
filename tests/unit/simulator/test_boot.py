"""A boot as a list of writes: the order that KubeVirt was observed to make, and where failures stop."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.kubevirt.behaviour import Failure, Profile
from simulator.kubevirt.boot import READY_GAP, REFUSALS, RESTING, WARNINGS, adopt, boot
from simulator.kubevirt.objects import VM_FINALIZER
from simulator.kubevirt.script import ON_VM, Verb
from tests.unit.simulator.making import (
    condition,
    conditions_of,
    make_life,
    make_vm,
    make_vmi,
    names,
    opened_vm,
    says_ready,
    verbs,
)

V = Verb


def test_a_first_boot_writes_in_the_observed_order() -> None:
    script = boot(make_life(boot=1.0))
    assert [(write.verb, write.name) for write in script] == [
        (V.FILL_DEFAULTS, "defaults"),
        (V.VM_STATUS, "Stopped"),
        (V.ANNOTATE, "annotations"),
        (V.FINALIZE, "finalizer"),
        (V.CREATE, "Pending"),
        (V.VM_STATUS, "Starting"),
        (V.VMI, "Pending"),
        (V.VM_STATUS, "Starting"),
        (V.VMI, "Scheduling"),
        (V.VM_STATUS, "Starting"),
        (V.VMI, "Scheduling"),
        (V.VMI, "Scheduled"),
        (V.VMI, "Scheduled"),
        (V.VMI, "Running"),
        (V.VM_STATUS, "Running"),
        (V.VMI, "Running"),
        (V.VM_STATUS, "Ready"),
    ]


def test_a_boot_changes_the_vm_nine_times_and_its_vmi_seven_times_after_its_creation() -> None:
    script = boot(make_life())
    assert sum(write.verb in ON_VM for write in script) == 9
    assert verbs(script).count(V.VMI) == 7
    assert verbs(script).count(V.CREATE) == 1


def test_the_opening_keeps_the_observed_distances_when_there_is_time() -> None:
    script = boot(make_life(boot=5.0))
    assert [round(write.at * 1000) for write in script[:11]] == [0, 10, 26, 38, 52, 62, 66, 73, 105, 115, 120]


def test_the_vm_says_running_while_not_ready_before_the_vmi_is_ready() -> None:
    script = boot(make_life())
    running = next(write for write in script if write.verb is V.VM_STATUS and write.name == "Running")
    vmi_ready = next(write for write in script if write.verb is V.VMI and says_ready(write))
    assert conditions_of(running)["Ready"] == "False"
    assert running.at < vmi_ready.at


@given(seconds=st.floats(0, 300), seed=st.integers(0, 1000))
def test_whatever_the_boot_time_ready_comes_through_the_vmi_first_and_in_time(
    seconds: float, seed: int
) -> None:
    script = boot(make_life(boot=seconds, seed=seed))
    assert all(first.at <= second.at for first, second in pairwise(script))
    running = next(write for write in script if write.verb is V.VMI and write.name == "Running")
    vmi_ready = next(write for write in script if write.verb is V.VMI and says_ready(write))
    vm_ready = next(write for write in script if write.verb is V.VM_STATUS and says_ready(write))
    assert running.at == pytest.approx(seconds)
    assert READY_GAP[0] - 1e-9 <= vmi_ready.at - running.at <= READY_GAP[1] + 1e-9
    assert vm_ready.at > vmi_ready.at
    assert verbs(script).index(V.FINALIZE) < verbs(script).index(V.CREATE)


def test_the_vmi_is_made_with_the_templates_labels_an_owner_and_two_finalizers() -> None:
    vm = make_vm(template_annotations={"note": "x"})
    created = next(write for write in boot(make_life(vm)) if write.verb is V.CREATE).body
    metadata = created["metadata"]
    assert metadata["name"] == "vm"
    assert metadata["labels"] == {"app": "a"}
    assert metadata["annotations"]["note"] == "x"
    assert metadata["ownerReferences"][0]["uid"] == "vm-uid"
    assert metadata["ownerReferences"][0]["controller"] is True
    assert len(metadata["finalizers"]) == 2
    assert created["status"]["phase"] == "Pending"
    assert created["spec"]["domain"]["memory"] == {"guest": "64Mi"}


def test_the_address_comes_with_running_and_the_node_with_scheduled() -> None:
    by_phase = {write.name: write.body["status"] for write in boot(make_life()) if write.verb is V.VMI}
    assert by_phase["Running"]["interfaces"][0]["ipAddress"] == "10.128.0.1"
    assert "interfaces" not in by_phase["Scheduled"]
    assert by_phase["Scheduled"]["nodeName"] == "node-1"
    assert "nodeName" not in by_phase["Scheduling"]


def test_a_vm_that_was_opened_before_is_not_opened_again() -> None:
    script = boot(make_life(opened_vm()))
    assert script[0].verb is V.CREATE


def test_other_finalizers_do_not_stand_for_ours() -> None:
    script = boot(make_life(opened_vm(finalizers=["somebody/else"])))
    assert verbs(script)[:2] == [V.FINALIZE, V.CREATE]


def test_data_volumes_are_provisioned_before_the_vm_starts() -> None:
    vm = make_vm(more={"dataVolumeTemplates": [{"metadata": {"name": "dv"}, "spec": {}}]})
    script = boot(make_life(vm, boot=3.0))
    shown = [write.name for write in script if write.verb is V.VM_STATUS]
    assert shown == ["Stopped", "Provisioning", "Provisioning", "Starting", "Running", "Ready"]
    starting = next(write for write in script if write.name == "Starting")
    assert starting.at >= 1.0


@pytest.mark.parametrize("failure", list(RESTING))
def test_a_failed_start_rests_where_it_says_and_is_left_alone_there(failure: Failure) -> None:
    phase, shown = RESTING[failure]
    script = boot(make_life(fail=failure))
    statuses = [write for write in script if write.verb is V.VM_STATUS]
    on_vmi = [write for write in script if write.verb in {V.CREATE, V.VMI}]
    assert statuses[-1].name == shown
    assert on_vmi[-1].body["status"]["phase"] == phase
    assert not any(says_ready(write) for write in (*statuses, *on_vmi))
    resting = opened_vm(status={"printableStatus": shown})
    assert boot(make_life(resting, make_vmi(phase, ready=False, ran=False), fail=failure)) == ()


@pytest.mark.parametrize("failure", list(RESTING))
def test_a_failed_start_goes_on_when_what_failed_it_is_gone(failure: Failure) -> None:
    phase, shown = RESTING[failure]
    resting = opened_vm(status={"printableStatus": shown})
    script = boot(make_life(resting, make_vmi(phase, ready=False, ran=False)))
    assert any(says_ready(write) for write in script if write.verb is V.VMI)


def test_unschedulable_says_so_on_the_vmi() -> None:
    script = boot(make_life(fail=Failure.UNSCHEDULABLE))
    vmi = [write for write in script if write.verb is V.VMI][-1]
    assert conditions_of(vmi)["PodScheduled"] == "False"


def test_an_image_that_cannot_be_pulled_says_so_in_two_steps() -> None:
    shown = names(boot(make_life(fail=Failure.IMAGE)), V.VM_STATUS)
    assert shown[-2:] == ["ErrImagePull", "ImagePullBackOff"]


@pytest.mark.parametrize("failure", list(WARNINGS))
def test_what_only_a_warning_tells_leaves_the_vm_starting(failure: Failure) -> None:
    script = boot(make_life(fail=failure))
    assert script[-1].verb is V.WARN
    assert names(script, V.VM_STATUS)[-1] == "Starting"


def test_a_crash_loops_guest_fails_without_ever_running() -> None:
    script = boot(make_life(fail=Failure.CRASH_LOOP, boot=2.0))
    assert script[-1].name == "Failed"
    assert script[-1].at == 2.0
    assert "Running" not in names(script)


@pytest.mark.parametrize("failure", list(REFUSALS))
def test_a_vm_that_cannot_have_a_vmi_is_stopped_and_says_why_once(failure: Failure) -> None:
    why, _ = REFUSALS[failure]
    script = boot(make_life(fail=failure))
    assert V.CREATE not in verbs(script)
    assert script[-1].body["status"]["printableStatus"] == "Stopped"
    assert conditions_of(script[-1])["Failure"] == "True"
    told = opened_vm(status={"printableStatus": "Stopped", "conditions": [condition("Failure", "True", why)]})
    assert boot(make_life(told, fail=failure)) == ()


@pytest.mark.parametrize("phase", ["Pending", "Scheduling", "Scheduled", "Running"])
def test_a_boot_is_resumed_from_the_phase_its_vmi_is_in(phase: str) -> None:
    vmi = make_vmi(phase, ready=False, ran=phase == "Running")
    script = boot(make_life(opened_vm(), vmi))
    assert V.CREATE not in verbs(script)
    phases = [write.body["status"]["phase"] for write in script if write.verb is V.VMI]
    assert phases[0] == phase
    assert phases[-1] == "Running"
    assert any(says_ready(write) for write in script if write.verb is V.VMI)


def test_an_adopted_vmi_gets_its_owner_after_the_finalizer() -> None:
    script = adopt(make_life(make_vm(), make_vmi(owner=None)))
    assert verbs(script)[-2:] == [V.FINALIZE, V.ADOPT]
    assert V.CREATE not in verbs(script)


def test_in_the_minimal_profile_a_boot_is_one_post_of_a_vmi_that_is_ready() -> None:
    (write,) = boot(make_life(profile=Profile.MINIMAL, boot=0.7))
    assert write.verb is V.CREATE
    assert write.at == 0.7
    assert says_ready(write)
    assert write.body["status"]["phase"] == "Running"
    assert write.body["status"]["interfaces"][0]["ipAddress"] == "10.128.0.1"
    assert write.body["metadata"]["finalizers"] == []


@pytest.mark.parametrize("failure", [each for each in Failure if each is not Failure.LOST_NODE])
def test_in_the_minimal_profile_what_fails_has_no_vmi_ever(failure: Failure) -> None:
    assert boot(make_life(profile=Profile.MINIMAL, fail=failure)) == ()


def test_failed_starts_are_counted_on_through_the_next_one() -> None:
    vm = opened_vm(
        status={"printableStatus": "CrashLoopBackOff", "startFailure": {"consecutiveFailCount": 2}}
    )
    statuses = [write.body["status"] for write in boot(make_life(vm)) if write.verb is V.VM_STATUS]
    assert statuses[0]["startFailure"] == {"consecutiveFailCount": 2}
    assert statuses[-1]["startFailure"] is None


def test_the_finalizer_is_kubevirts_own() -> None:
    assert VM_FINALIZER == "kubevirt.io/virtualMachineControllerFinalize"
