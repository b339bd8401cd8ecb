"""Late copies and merged writes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simulator.kubevirt.boot import boot
from simulator.kubevirt.script import Script, Verb, Write, due, lagging, ordered
from tests.unit.simulator.making import make_life, names, says_ready, verbs


def status(at: float, name: str = "s") -> Write:
    return Write(at, Verb.VM_STATUS, name)


def vmi(at: float) -> Write:
    return Write(at, Verb.VMI, "v")


def test_without_a_lag_a_script_is_as_it_was() -> None:
    script = boot(make_life())
    assert lagging(script, 0.0) is script


def test_under_a_lag_the_vm_shows_stopped_and_then_at_once_the_end() -> None:
    script = lagging(boot(make_life(boot=1.0)), 5.0)
    assert names(script, Verb.VM_STATUS) == ["Stopped", "Ready"]
    assert script[-1].at > 6.0


def test_a_lag_moves_no_write_but_the_vms_status() -> None:
    whole = boot(make_life(boot=1.0))
    late = lagging(whole, 3.0)
    assert [w for w in whole if w.verb is not Verb.VM_STATUS] == [
        w for w in late if w.verb is not Verb.VM_STATUS
    ]


def test_a_boot_longer_than_the_lag_shows_what_lies_between() -> None:
    script = lagging(boot(make_life(boot=30.0)), 2.0)
    assert names(script, Verb.VM_STATUS) == ["Stopped", "Starting", "Ready"]


@given(boot_time=st.floats(0, 60), lag=st.floats(0.001, 60))
def test_a_vm_never_says_ready_before_its_vmi_does(boot_time: float, lag: float) -> None:
    script = lagging(boot(make_life(boot=boot_time)), lag)
    ready = [write.verb for write in script if says_ready(write)]
    assert ready == [Verb.VMI, Verb.VM_STATUS]
    assert all(first.at <= second.at for first, second in pairwise(script))


def test_a_status_whose_successor_is_due_too_is_skipped() -> None:
    script: Script = (status(0.0), status(0.1), status(0.2))
    assert due(script, 0, elapsed=0.05) == 0
    assert due(script, 0, elapsed=0.15) == 1
    assert due(script, 0, elapsed=9.0) == 2


def test_no_write_to_a_vmi_is_ever_skipped() -> None:
    script: Script = (status(0.0), vmi(0.1), status(0.2), vmi(0.3), status(0.4))
    made = []
    index = 0
    while index < len(script):
        index = due(script, index, elapsed=9.0)
        made.append(script[index])
        index += 1
    assert verbs(tuple(made)) == [Verb.VMI, Verb.VMI, Verb.VM_STATUS]


def test_writes_at_the_same_time_keep_the_order_they_were_given_in() -> None:
    script = ordered([status(0.5, "b"), status(0.0, "a"), status(0.5, "c")], delay=1.0)
    assert [(write.name, write.at) for write in script] == [("a", 1.0), ("b", 1.5), ("c", 1.5)]
