"""What a VM goes through whose guest is up."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.kubevirt.behaviour import Failure, Profile
from simulator.kubevirt.filling import CRASHED
from simulator.kubevirt.living import living
from simulator.kubevirt.objects import VM, VMI
from simulator.kubevirt.script import Script, Verb
from tests.unit.simulator.making import (
    PREFIX,
    condition,
    conditions_of,
    make_life,
    make_vmi,
    names,
    opened_vm,
    verbs,
)

GRACE = 1.0
READY = {"printableStatus": "Running", "conditions": [condition("Ready")]}


def running_vm(**annotations: str) -> VM:
    asked = {f"{PREFIX}{name.replace('_', '-')}": value for name, value in annotations.items()}
    return opened_vm(status=READY, annotations=asked)


def lived(vm: VM, vmi: VMI | None = None, **fields: Any) -> Script:
    vmi = vmi or make_vmi()
    return living(make_life(vm, vmi, **fields), vmi, GRACE)


def test_a_vm_that_is_as_it_should_be_costs_no_write() -> None:
    assert lived(running_vm()) == ()


def test_a_vm_whose_status_is_behind_is_brought_up() -> None:
    (write,) = lived(opened_vm())
    assert write.name == "Running"
    assert conditions_of(write)["Ready"] == "True"


def test_a_finalizer_that_somebody_took_off_is_put_back() -> None:
    assert verbs(lived(opened_vm(status=READY, finalizers=[]))) == [Verb.FINALIZE]


def test_in_the_minimal_profile_the_vms_status_is_never_touched() -> None:
    assert lived(opened_vm(), profile=Profile.MINIMAL) == ()


@pytest.mark.parametrize(("asked", "phase"), [("crash_after", "Failed"), ("shutdown_after", "Succeeded")])
def test_a_guest_ends_when_it_was_told_to(asked: str, phase: str) -> None:
    (write,) = lived(running_vm(**{asked: "2s"}))
    assert (write.at, write.name) == (2.0, phase)
    assert conditions_of(write)["Ready"] == "False"


def test_a_guest_that_came_after_the_crash_does_not_crash_again() -> None:
    obeyed = make_vmi(annotations={CRASHED: "2s|"})
    assert lived(running_vm(crash_after="2s"), obeyed) == ()
    assert lived(running_vm(crash_after="2s"), crashed="2s|") == ()


def test_a_changed_command_makes_it_crash_again() -> None:
    obeyed = make_vmi(annotations={CRASHED: "2s|"})
    assert names(lived(running_vm(crash_after="1s"), obeyed)) == ["Failed"]


def test_when_the_agent_connects_the_address_is_away_for_a_moment() -> None:
    script = lived(running_vm(agent="300ms"))
    addresses = [
        write.body["status"]["interfaces"][0].get("ipAddress") for write in script if write.verb is Verb.VMI
    ]
    assert addresses == [None, "10.128.0.9"]
    assert all(conditions_of(write)["AgentConnected"] == "True" for write in script)
    assert script[0].at == pytest.approx(0.3)


def test_an_agent_connects_once() -> None:
    connected = [condition("Ready"), condition("AgentConnected")]
    vm = opened_vm(
        status={"printableStatus": "Running", "conditions": connected},
        annotations={f"{PREFIX}agent": "300ms"},
    )
    assert lived(vm, make_vmi(conditions=[condition("AgentConnected")])) == ()


def test_a_paused_vm_is_ready_for_a_moment_more() -> None:
    script = lived(running_vm(pause="true"))
    shown = [(write.name, conditions_of(write)["Ready"]) for write in script if write.verb is Verb.VM_STATUS]
    assert shown == [("Paused", "True"), ("Paused", "False")]
    assert verbs(script) == [Verb.VMI, Verb.VM_STATUS, Verb.VMI, Verb.VM_STATUS]


def test_an_unpaused_vm_runs_before_it_is_ready() -> None:
    paused = make_vmi(ready=False, conditions=[condition("Paused")])
    script = lived(opened_vm(status={"printableStatus": "Paused"}), paused)
    shown = [(write.name, conditions_of(write)["Ready"]) for write in script if write.verb is Verb.VM_STATUS]
    assert shown == [("Running", "False"), ("Running", "True")]


def test_a_lost_node_takes_readiness_after_the_grace() -> None:
    script = lived(running_vm(), fail=Failure.LOST_NODE)
    assert verbs(script) == [Verb.LOSE_NODE, Verb.VMI, Verb.VM_STATUS]
    assert script[1].at - script[0].at == pytest.approx(GRACE)
    assert conditions_of(script[1])["Ready"] == "False"


def test_the_other_guests_of_a_lost_node_lose_readiness_too() -> None:
    script = lived(running_vm(), node_lost=True)
    assert verbs(script) == [Verb.VMI, Verb.VM_STATUS]


def test_a_guest_of_a_lost_node_is_left_alone_afterwards() -> None:
    lost = make_vmi(ready=False, reason="NodeUnresponsive")
    vm = opened_vm(status={"printableStatus": "Running", "conditions": [condition("Ready", "False")]})
    assert lived(vm, lost, fail=Failure.LOST_NODE) == ()
