"""When a VM counts as warm: read from its guest, on a node that is fit."""

from __future__ import annotations

from typing import Any

import pytest

from controller.machines.objects import Condition, Node, Taint, VirtualMachineInstance, gone
from controller.machines.readiness import ReadinessRule, epoch, judge, node_trouble
from crds.pool import Readiness, ReadinessWhen
from tests.support.builders import NOW, at, make_condition, make_node, make_vmi

READY, AGENT, RUNNING = ReadinessWhen.READY, ReadinessWhen.AGENT_CONNECTED, ReadinessWhen.RUNNING


@pytest.mark.parametrize(
    ("when", "guest", "holds"),
    [
        pytest.param(READY, {"ready": True}, True, id="Ready needs the condition Ready"),
        pytest.param(READY, {"ready": False}, False, id="Ready False is not Ready"),
        pytest.param(READY, {"ready": None}, False, id="Ready absent is not Ready"),
        pytest.param(READY, {"ready": True, "agent": None}, True, id="Ready does not ask for the agent"),
        pytest.param(AGENT, {"ready": False, "agent": True}, True, id="AgentConnected asks for it alone"),
        pytest.param(AGENT, {"ready": True, "agent": None}, False, id="AgentConnected absent"),
        pytest.param(AGENT, {"ready": True, "agent": False}, False, id="AgentConnected False"),
        pytest.param(RUNNING, {"ready": None}, True, id="Running asks for no condition"),
        pytest.param(RUNNING, {"ready": None, "phase": "Scheduled"}, False, id="Running needs the phase"),
        pytest.param(READY, {"phase": "Succeeded"}, False, id="a guest that shut down"),
        pytest.param(READY, {"phase": "Failed"}, False, id="a guest that died"),
        pytest.param(READY, {"phase": ""}, False, id="a guest without a phase yet"),
        pytest.param(READY, {"deleting": True}, False, id="a guest that is shutting down"),
        pytest.param(RUNNING, {"deleting": True}, False, id="shutting down, even for Running"),
    ],
)
def test_when(when: ReadinessWhen, guest: dict[str, Any], holds: bool) -> None:  # noqa: FBT001 - a table's column
    assert judge(ReadinessRule(when), make_vmi(**guest), None).ready is holds


def test_a_vm_without_a_guest_is_not_ready_and_says_so() -> None:
    verdict = judge(ReadinessRule(), None, make_node())
    assert not verdict.ready
    assert verdict.reason == "it has no running instance"


@pytest.mark.parametrize(
    ("conditions", "holds"),
    [
        pytest.param([make_condition("Extra")], True, id="one that is True"),
        pytest.param([make_condition("Extra", "False")], False, id="one that is False"),
        pytest.param([make_condition("Extra", "Unknown")], False, id="one that is Unknown"),
        pytest.param([], False, id="one that is absent"),
    ],
)
def test_every_further_condition_must_be_true(conditions: list[Condition], holds: bool) -> None:  # noqa: FBT001 - a table's column
    rule = ReadinessRule(READY, conditions=("Extra",))
    assert judge(rule, make_vmi(conditions=conditions), None).ready is holds


def test_further_conditions_do_not_stand_in_for_the_main_one() -> None:
    rule = ReadinessRule(AGENT, conditions=("Extra",))
    assert not judge(rule, make_vmi(conditions=[make_condition("Extra")]), None).ready


def test_it_is_ready_since_the_last_of_its_conditions() -> None:
    rule = ReadinessRule(READY, conditions=("Early", "Late"))
    guest = make_vmi(
        since=-60, conditions=[make_condition("Early", since=-90), make_condition("Late", since=-5)]
    )
    assert judge(rule, guest, None).since == NOW - 5


def test_a_condition_without_a_time_leaves_the_others_theirs() -> None:
    rule = ReadinessRule(READY, conditions=("Timeless",))
    guest = make_vmi(since=-60, conditions=[make_condition("Timeless", since=None)])
    assert judge(rule, guest, None).since == NOW - 60


def test_running_alone_does_not_say_since_when() -> None:
    assert judge(ReadinessRule(RUNNING), make_vmi(), None).since is None


@pytest.mark.parametrize(
    ("node", "trouble"),
    [
        pytest.param(make_node(), "", id="a node that is ready"),
        pytest.param(make_node(ready=None), "", id="a node that does not say"),
        pytest.param(make_node(ready="False"), "is not ready", id="a node that is not ready"),
        pytest.param(make_node(ready="Unknown"), "is not ready", id="a node nobody hears from"),
        pytest.param(make_node(cordoned=True), "is cordoned", id="a cordoned node"),
        pytest.param(gone(make_node()), "was deleted", id="a node whose object is gone"),
        pytest.param(
            make_node(taints=[Taint("maintenance", "NoExecute")]),
            "is tainted NoExecute",
            id="tainted NoExecute",
        ),
        pytest.param(make_node(taints=[Taint("gpu", "NoSchedule")]), "", id="tainted NoSchedule"),
        pytest.param(make_node(taints=[Taint("gpu", "PreferNoSchedule")]), "", id="tainted PreferNoSchedule"),
    ],
)
def test_a_node_is_fit_or_says_why_not(node: Node, trouble: str) -> None:
    assert node_trouble(node) == trouble
    verdict = judge(ReadinessRule(), make_vmi(), node)
    assert verdict.ready == (trouble == "")
    assert verdict.reason == (f"its node node-1 {trouble}" if trouble else "")


def test_a_vm_on_a_node_that_nobody_has_seen_is_judged_by_its_guest() -> None:
    assert judge(ReadinessRule(), make_vmi(node="unheard-of"), None).ready


@pytest.mark.parametrize(
    ("guest", "says"),
    [
        pytest.param(make_vmi(phase="Scheduling"), "Scheduling", id="the phase"),
        pytest.param(make_vmi(phase=""), "Pending", id="no phase yet"),
        pytest.param(make_vmi(ready=None), "Ready is absent", id="the absent condition"),
        pytest.param(
            make_vmi(ready=None, conditions=[make_condition("Ready", "False", reason="GuestNotRunning")]),
            "GuestNotRunning",
            id="the condition's reason",
        ),
        pytest.param(make_vmi(deleting=True), "shutting down", id="the end"),
    ],
)
def test_a_refusal_names(guest: VirtualMachineInstance, says: str) -> None:
    assert says in judge(ReadinessRule(), guest, None).reason


def test_a_pools_rule_is_its_spec_in_seconds() -> None:
    spec = Readiness(
        when=AGENT, conditions=("Extra",), min_ready_seconds=5, deadline="1m30s", unready_grace="500ms"
    )
    assert ReadinessRule.of(spec) == ReadinessRule(AGENT, ("Extra",), 5.0, 90.0, 0.5)


def test_the_defaults_of_the_rule_are_those_of_the_spec() -> None:
    assert ReadinessRule.of(Readiness()) == ReadinessRule()


def test_times_are_read_as_kubernetes_writes_them() -> None:
    assert epoch(at(90)) == NOW + 90
    assert epoch("2026-01-01T12:00:00.250000Z") == NOW + 0.25
    assert epoch(None) is None
    assert epoch("") is None
