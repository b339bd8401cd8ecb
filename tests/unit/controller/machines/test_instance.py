"""The state of one VM, derived from what is seen: each row of the instance machine's table."""

from __future__ import annotations

from typing import Any

import pytest

from controller.kube.timeline import Timeline
from controller.machines.instance import Derived, Observation, created_at, derive
from controller.machines.objects import VirtualMachine
from controller.machines.readiness import ReadinessRule
from crds import names
from crds.pool import ReadinessWhen
from statemachines.instance import State
from tests.support.builders import NOW, make_condition, make_node, make_vm, make_vmi

RULE = ReadinessRule(deadline=900.0, unready_grace=120.0)
BOOTING = make_vmi(ready=None, phase="Scheduling")


def _derived(vm: VirtualMachine | None = None, **seen: Any) -> Derived:
    settings: dict[str, Any] = {
        "vm": vm or make_vm(),
        "vmi": make_vmi(),
        "node": make_node(),
        "rule": RULE,
        "warm_before": False,
        "unready_since": None,
        "ready_since": None,
        "now": NOW,
    }
    return derive(Observation(**{**settings, **seen}))


# ---- what was decided comes before what is observed


@pytest.mark.parametrize("mark", [*names.Mark, None])
def test_a_vm_under_deletion_is_terminating_whatever_its_label_says(mark: names.Mark | None) -> None:
    assert _derived(make_vm(state=mark, deleting=True)).state is State.TERMINATING


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        (names.Mark.CLAIMED, State.CLAIMED),
        (names.Mark.DRAINING, State.DRAINING),
        (names.Mark.RECYCLING, State.RECYCLING),
        (names.Mark.RETAINED, State.RETAINED),
    ],
)
@pytest.mark.parametrize("guest", [make_vmi(), make_vmi(phase="Failed"), None])
def test_a_decision_stands_whatever_the_guest_does(mark: names.Mark, state: State, guest: Any) -> None:
    assert _derived(make_vm(state=mark), vmi=guest).state is state


def test_pooled_with_a_claims_uid_is_claimed_and_never_offered() -> None:
    assert _derived(make_vm(state=names.Mark.POOLED, claim_uid="claim-uid")).state is State.CLAIMED


@pytest.mark.parametrize("label", [None, "", "Free", "pooled"])
def test_a_label_that_says_nothing_is_read_as_pooled(label: str | None) -> None:
    assert _derived(make_vm(state=label)).state is State.WARM


def test_a_label_that_says_nothing_beside_a_claims_uid_is_claimed() -> None:
    assert _derived(make_vm(state=None, claim_uid="claim-uid")).state is State.CLAIMED


# ---- Provisioning and Warm


def test_a_vm_that_boots_is_provisioning_until_its_deadline() -> None:
    found = _derived(make_vm(age=10), vmi=BOOTING)
    assert found.state is State.PROVISIONING
    assert found.recheck_at == NOW - 10 + RULE.deadline
    assert "Scheduling" in found.reason


def test_a_vm_is_warm_as_soon_as_its_rule_holds() -> None:
    assert _derived(vmi=make_vmi(since=-60)) == Derived(State.WARM, ready_since=NOW - 60)


def test_min_ready_seconds_are_counted_from_when_kubevirt_says_it_was_ready() -> None:
    rule = ReadinessRule(min_ready_seconds=30.0)
    waits = _derived(rule=rule, vmi=make_vmi(since=-29))
    assert (waits.state, waits.ready_since, waits.recheck_at) == (State.PROVISIONING, NOW - 29, NOW + 1)
    assert _derived(rule=rule, vmi=make_vmi(since=-30)).state is State.WARM


def test_min_ready_seconds_are_counted_from_the_first_look_when_kubevirt_does_not_say() -> None:
    rule = ReadinessRule(ReadinessWhen.RUNNING, min_ready_seconds=30.0)
    first = _derived(rule=rule)
    assert (first.state, first.ready_since, first.recheck_at) == (State.PROVISIONING, NOW, NOW + 30)
    again = _derived(rule=rule, ready_since=first.ready_since, now=NOW + 29)
    assert (again.state, again.recheck_at) == (State.PROVISIONING, NOW + 30)
    assert _derived(rule=rule, ready_since=first.ready_since, now=NOW + 30).state is State.WARM


def test_a_vm_that_was_ready_in_between_begins_to_count_again() -> None:
    rule = ReadinessRule(min_ready_seconds=30.0)
    lost = _derived(rule=rule, ready_since=NOW - 20, vmi=make_vmi(ready=False))
    assert lost.ready_since is None


# ---- Unready


def test_a_warm_vm_that_stops_being_ready_is_unready_at_once() -> None:
    found = _derived(warm_before=True, vmi=make_vmi(ready=False))
    assert (found.state, found.unready_since) == (State.UNREADY, NOW)
    assert found.recheck_at == NOW + RULE.unready_grace
    assert "Ready is False" in found.reason


@pytest.mark.parametrize(
    ("away", "state"),
    [(0.0, State.UNREADY), (119.9, State.UNREADY), (120.0, State.FAILED), (500.0, State.FAILED)],
)
def test_an_unready_vm_is_given_up_when_its_grace_is_over(away: float, state: State) -> None:
    found = _derived(warm_before=True, vmi=None, unready_since=NOW - away)
    assert found.state is state
    assert "no running instance" in found.reason


def test_the_grace_does_not_begin_anew_with_each_look() -> None:
    found = _derived(warm_before=True, vmi=None, unready_since=NOW - 100)
    assert (found.unready_since, found.recheck_at) == (NOW - 100, NOW + 20)


def test_an_unready_vm_comes_back_without_waiting_for_min_ready_seconds_again() -> None:
    rule = ReadinessRule(min_ready_seconds=300.0)
    found = _derived(rule=rule, warm_before=True, unready_since=NOW - 50, vmi=make_vmi(since=-1))
    assert (found.state, found.unready_since) == (State.WARM, None)


def test_a_node_that_is_cordoned_makes_its_warm_vm_unready() -> None:
    found = _derived(warm_before=True, node=make_node(cordoned=True))
    assert found.state is State.UNREADY
    assert "node-1 is cordoned" in found.reason


def test_a_vm_that_was_warm_is_judged_by_its_grace_and_not_by_the_deadline_of_its_boot() -> None:
    old = make_vm(age=10 * RULE.deadline, printable="CrashLoopBackOff")
    assert _derived(old, warm_before=True, vmi=None).state is State.UNREADY


# ---- Failed


def test_a_vm_that_is_not_warm_by_its_deadline_has_failed_and_says_what_it_lacked() -> None:
    found = _derived(make_vm(age=900, printable="Starting"), vmi=BOOTING)
    assert found.state is State.FAILED
    assert "deadline of 900 s" in found.reason
    assert "Scheduling" in found.reason
    assert "Starting" in found.reason


def test_a_moment_before_its_deadline_it_has_not() -> None:
    assert _derived(make_vm(age=899), vmi=BOOTING).state is State.PROVISIONING


def test_a_crash_loop_is_a_failure_at_once() -> None:
    found = _derived(make_vm(age=5, printable="CrashLoopBackOff"), vmi=None)
    assert found.state is State.FAILED
    assert "CrashLoopBackOff" in found.reason


def test_a_guest_that_kubevirt_could_not_create_is_a_failure_with_kubevirts_words() -> None:
    refusal = make_condition("Failure", reason="FailedCreate", message="no such instancetype")
    found = _derived(make_vm(age=5, conditions=[refusal]), vmi=None)
    assert found.state is State.FAILED
    assert "FailedCreate" in found.reason
    assert "no such instancetype" in found.reason


def test_a_failure_that_is_over_is_none() -> None:
    over = make_condition("Failure", "False", reason="FailedCreate")
    assert _derived(make_vm(age=5, conditions=[over]), vmi=None).state is State.PROVISIONING


def test_a_guest_that_is_ready_after_all_is_warm_though_the_vm_says_crash_loop() -> None:
    """The VM's own status is a late copy; the guest speaks first hand."""
    assert _derived(make_vm(printable="CrashLoopBackOff")).state is State.WARM


# ---- no room is nobody's failure


@pytest.mark.parametrize(
    ("vm", "guest"),
    [
        pytest.param(make_vm(age=10, printable="ErrorUnschedulable"), None, id="the VM says so"),
        pytest.param(
            make_vm(age=10),
            make_vmi(ready=None, phase="Scheduling", conditions=[make_condition("PodScheduled", "False")]),
            id="the guest's pod has no node",
        ),
        pytest.param(
            make_vm(age=10_000, printable="ErrorUnschedulable"), None, id="even when the deadline has passed"
        ),
    ],
)
def test_a_vm_without_a_node_goes_on_waiting(vm: VirtualMachine, guest: Any) -> None:
    found = _derived(vm, vmi=guest)
    assert (found.state, found.unschedulable) == (State.PROVISIONING, True)
    assert found.recheck_at is None


def test_a_pod_that_has_its_node_is_not_unschedulable() -> None:
    guest = make_vmi(ready=None, phase="Scheduled", conditions=[make_condition("PodScheduled", "True")])
    assert not _derived(make_vm(age=10), vmi=guest).unschedulable


def test_creation_is_read_in_seconds_and_an_object_without_one_is_as_old_as_time() -> None:
    assert created_at(make_vm(age=42)) == NOW - 42
    nameless = VirtualMachine(type(make_vm().metadata)())
    assert created_at(nameless) == 0.0


# ---- a clock that is set


SET_FORWARD = Timeline().heard(NOW, 0.0).heard(NOW + 3600.0, 10.0)  # by an hour, at NOW + 10


@pytest.mark.parametrize(
    ("seen", "over"),
    [
        pytest.param({"vm": make_vm(age=890.0), "vmi": BOOTING}, 10.0, id="a boot's deadline"),
        pytest.param(
            {"vmi": make_vmi(ready=False), "warm_before": True, "unready_since": NOW - 10.0},
            110.0,
            id="the grace of one that was warm",
        ),
        pytest.param(
            {"vm": make_vm(age=2000.0), "vmi": BOOTING, "room_since": NOW - 100.0},
            800.0,
            id="since there was room",
        ),
    ],
)
def test_no_vm_fails_because_the_servers_clock_was_set(seen: dict[str, Any], over: float) -> None:
    due = NOW + 3600.0 + over
    early = _derived(**seen, now=due - 0.1, timeline=SET_FORWARD)
    assert early.state is not State.FAILED
    assert early.recheck_at == due
    assert _derived(**seen, now=due, timeline=SET_FORWARD).state is State.FAILED


def test_no_vm_is_warm_before_it_was_ready_for_long_enough_because_the_servers_clock_was_set() -> None:
    rule = ReadinessRule(min_ready_seconds=60.0)
    seen: dict[str, Any] = {"rule": rule, "ready_since": NOW, "timeline": SET_FORWARD}
    assert _derived(**seen, now=NOW + 3659.0).state is State.PROVISIONING
    assert _derived(**seen, now=NOW + 3660.0).state is State.WARM


# ---- a node that is lost


@pytest.mark.parametrize(
    ("seen", "lost"),
    [
        ({"node": make_node(ready="Unknown")}, True),
        ({"node": make_node(cordoned=True)}, True),
        (
            {
                "vmi": make_vmi(
                    ready=None, conditions=[make_condition("Ready", "False", reason="NodeUnresponsive")]
                )
            },
            True,
        ),
        ({"vmi": make_vmi(ready=False)}, False),
        ({"vmi": make_vmi(phase="Failed")}, False),
        ({"vmi": None}, False),
    ],
    ids=["node not ready", "cordoned", "unresponsive", "guest not ready", "guest failed", "no guest"],
)
def test_a_vm_that_failed_by_its_node_is_told_from_one_that_failed_by_itself(
    seen: dict[str, Any], lost: object
) -> None:
    derived = _derived(**seen, warm_before=True, unready_since=NOW - 120.0)
    assert derived.state is State.FAILED
    assert derived.node_lost is lost
