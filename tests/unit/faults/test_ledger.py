"""A fault meets the n-th of its step, once."""

from __future__ import annotations

from tests.faults.addresses import Nature
from tests.faults.kinds import Fault, Kind
from tests.faults.ledger import Ledger

VM, CLAIM = "hand-over/vm", "hand-over/claim"


def _come(ledger: Ledger, *addresses: str) -> list[Fault | None]:
    return [ledger.arrive(address, Nature.PATCH) for address in addresses]


def test_the_nth_of_a_step_meets_the_fault_whatever_comes_between() -> None:
    fault = Fault(VM, 2, Kind.CONFLICT)
    assert _come(Ledger([fault]), VM, CLAIM, CLAIM, VM, VM) == [None, None, None, fault, None]


def test_what_fired_is_remembered_and_what_did_not_is_not() -> None:
    first, third = Fault(VM, 1, Kind.CUT_AFTER), Fault(VM, 3, Kind.CONFLICT)
    ledger = Ledger([first, third])
    _come(ledger, VM, VM)
    assert ledger.fired == [first]
    assert ledger.came == {VM: 2}


def test_without_faults_all_is_undisturbed() -> None:
    ledger = Ledger()
    _come(ledger, VM, CLAIM, VM)
    assert ledger.undisturbed == {VM: 2, CLAIM: 1}


def test_what_comes_after_the_last_fault_is_no_measure_of_the_scenario() -> None:
    ledger = Ledger([Fault(VM, 1, Kind.CUT_AFTER), Fault(VM, 2, Kind.CUT_AFTER)])
    _come(ledger, CLAIM, VM, CLAIM, VM, VM, CLAIM, CLAIM)
    assert ledger.undisturbed == {VM: 2, CLAIM: 2}


def test_a_fault_that_never_comes_leaves_all_of_it_to_be_counted() -> None:
    ledger = Ledger([Fault(VM, 1, Kind.CUT_AFTER), Fault(CLAIM, 9, Kind.CONFLICT)])
    _come(ledger, VM, VM, CLAIM)
    assert ledger.undisturbed == {VM: 2, CLAIM: 1}


def test_it_knows_what_kind_of_request_each_step_is() -> None:
    ledger = Ledger()
    ledger.arrive("release/delete", Nature.DELETE)
    assert ledger.natures == {"release/delete": Nature.DELETE}


def test_what_a_scenario_provokes_fires_and_ends_no_counting() -> None:
    provoked, tried = Fault(VM, 1, Kind.CUT_AFTER), Fault(VM, 2, Kind.CONFLICT)
    alone, both = Ledger(provoked=[provoked]), Ledger([tried], [provoked])
    _come(alone, VM, VM, CLAIM)
    _come(both, VM, VM, CLAIM)
    assert (alone.fired, alone.undisturbed) == ([provoked], {VM: 2, CLAIM: 1})
    assert (both.fired, both.undisturbed) == ([provoked, tried], {VM: 2})
