"""From a sight to a plan: what is dropped, what waits, what is remembered."""

from __future__ import annotations

from random import Random
from typing import Any

from simulator.kubevirt.behaviour import Defaults, Profile
from simulator.kubevirt.course import Course
from simulator.kubevirt.filling import CRASHED
from simulator.kubevirt.objects import ORPHAN, VM_FINALIZER
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.planner import Plan, Planner
from simulator.kubevirt.script import Verb
from simulator.kubevirt.sight import Sight
from tests.unit.simulator.making import PREFIX, condition, make_vm, make_vmi, opened_vm, verbs

READY = {"printableStatus": "Running", "conditions": [condition("Ready")]}


def planner(*seen: Any, profile: Profile = Profile.OBSERVED) -> tuple[Planner, Sight]:
    sight = Sight("ns", "vm")
    for each in seen:
        sight.see(each)
    defaults = Defaults(profile=profile, back_off=10.0)
    return Planner(sight, Placement(0, Random(1)), defaults, Random(1)), sight


def planned(of: Planner, now: float = 0.0) -> Plan:
    plan = of.plan(now)
    assert plan is not None
    return plan


def test_an_idle_vm_has_no_plan() -> None:
    of, _ = planner(opened_vm(status=READY), make_vmi())
    assert of.plan(0.0) is None


def test_a_boot_holds_while_it_goes_as_planned() -> None:
    of, sight = planner(make_vm())
    plan = planned(of)
    sight.see(make_vmi("Pending", ready=False, ran=False))
    assert of.holds(plan)
    sight.see(make_vmi("Running", version=21))
    assert of.holds(plan)


def test_a_label_patch_of_somebody_else_does_not_drop_a_boot() -> None:
    of, sight = planner(make_vm())
    plan = planned(of)
    sight.see(make_vm(version=11, annotations={"theirs": "x"}))
    assert of.holds(plan)


def test_a_boot_is_dropped_when_its_vm_is_deleted() -> None:
    of, sight = planner(opened_vm())
    plan = planned(of)
    sight.see(opened_vm(version=11, deleting=True))
    assert not of.holds(plan)


def test_a_boot_is_dropped_when_its_vm_is_another_one() -> None:
    of, sight = planner(make_vm())
    plan = planned(of)
    sight.see(make_vm(uid="another", version=11))
    assert not of.holds(plan)


def test_a_boot_is_dropped_when_its_vmi_is_deleted_by_somebody() -> None:
    of, sight = planner(make_vm())
    plan = planned(of)
    sight.see(make_vmi("Scheduling", ready=False, deleting=True))
    assert not of.holds(plan)
    assert planned(of).course is Course.CLEAN


def test_a_new_command_drops_the_script() -> None:
    of, sight = planner(opened_vm(status=READY, annotations={f"{PREFIX}crash-after": "1m"}), make_vmi())
    plan = planned(of)
    sight.see(opened_vm(version=11, status=READY, annotations={f"{PREFIX}crash-after": "1s"}))
    assert not of.holds(plan)


def test_a_refused_vmi_is_told_and_tried_again_later_and_later() -> None:
    of, _ = planner(opened_vm())
    plan = planned(of)
    told = of.refused(plan, "quota", now=100.0)
    assert told is not None
    assert "quota" in str(told.script[-1].body)
    assert planned(of, now=100.0).script[0].at >= 10.0
    of.played(told, now=100.0)
    of.refused(plan, "quota", now=110.0)
    assert planned(of, now=110.0).script[0].at >= 40.0


def test_a_refusal_is_told_once() -> None:
    of, _ = planner(
        opened_vm(
            status={
                "printableStatus": "Stopped",
                "conditions": [condition("Failure", "True", "FailedCreate")],
            }
        )
    )
    told = of.refused(planned(of), "quota", now=0.0)
    assert told is not None
    assert told.script == ()


def test_another_template_is_tried_at_once() -> None:
    of, sight = planner(opened_vm())
    plan = planned(of)
    of.refused(plan, "bad label", now=100.0)
    waiting = planned(of, now=100.0)
    sight.see(opened_vm(version=11, template_annotations={"changed": "yes"}))
    assert not of.holds(waiting)
    assert planned(of, now=100.0).script[0].at < 1.0


def test_failed_starts_wait_longer_each_time() -> None:
    failed = make_vmi("Failed", ready=False, ran=False)
    status = {"printableStatus": "CrashLoopBackOff", "startFailure": {"consecutiveFailCount": 3}}
    of, sight = planner(opened_vm(status=status), failed)
    plan = planned(of)
    assert plan.course is Course.REPLACE
    sight.lose(failed)
    of.played(plan, now=50.0)
    assert planned(of, now=50.0).script[0].at >= 90.0


def test_the_guest_after_a_commanded_crash_carries_the_command() -> None:
    ended = make_vmi("Failed", ready=False)
    of, sight = planner(opened_vm(annotations={f"{PREFIX}crash-after": "2s"}), ended)
    planned(of)
    sight.lose(ended)
    created = next(write for write in planned(of).script if write.verb is Verb.CREATE)
    assert created.body["metadata"]["annotations"][CRASHED] == "2s|"


def test_a_running_guest_heeds_the_template_it_was_made_from() -> None:
    changed = opened_vm(status=READY, template_annotations={f"{PREFIX}crash-after": "1s"})
    of, _ = planner(changed, make_vmi())
    assert of.plan(0.0) is None
    of, _ = planner(changed, make_vmi(annotations={f"{PREFIX}crash-after": "1s"}))
    assert planned(of).script[0].name == "Failed"


def test_in_the_minimal_profile_a_vmi_goes_after_its_vm() -> None:
    of, _ = planner(make_vmi(finalizers=[]), profile=Profile.MINIMAL)
    assert verbs(planned(of).script) == [Verb.DELETE]


def test_in_the_minimal_profile_an_orphaned_vmi_stays_though_it_still_names_its_owner() -> None:
    vm = make_vm(deleting=True, finalizers=[ORPHAN])
    of, sight = planner(vm, make_vmi(finalizers=[]), profile=Profile.MINIMAL)
    assert of.plan(0.0) is None
    sight.lose(vm)
    assert of.plan(0.0) is None


def test_a_vmi_without_its_vm_is_still_cleaned_when_it_is_deleted() -> None:
    of, _ = planner(make_vmi(owner=None, deleting=True))
    assert verbs(planned(of).script)[-1] is Verb.UNFINALIZE_VMI


def test_an_orphan_delete_takes_off_the_finalizer_and_nothing_else() -> None:
    of, _ = planner(make_vm(deleting=True, finalizers=[VM_FINALIZER, ORPHAN]), make_vmi())
    assert verbs(planned(of).script) == [Verb.UNFINALIZE]
