"""What fired, how often, and what never did."""

from __future__ import annotations

from controller.claims.protocol import StepName
from tests.faults import table
from tests.faults.kinds import Fault, Kind
from tests.faults.runs import Report, Run


def _report(*faults: Fault, fired: bool = True, failure: str = "", came: tuple[str, ...] = ()) -> Report:
    counts = dict.fromkeys(came, 1)
    return Report(Run("bind", faults), faults if fired else (), counts, counts, {}, 2.0, 1.5, failure=failure)


def test_it_counts_how_often_each_fault_fired_at_each_step() -> None:
    cut, kill = Fault("hand-over/vm", 1, Kind.CUT_AFTER), Fault("hand-over/vm", 2, Kind.KILL_AFTER)
    found = table.fired([_report(cut), _report(cut, kill), _report(kill, fired=False)])
    assert found == {"hand-over/vm": {Kind.CUT_AFTER: 2, Kind.KILL_AFTER: 1}}


def test_a_step_that_met_no_fault_is_named() -> None:
    all_but_one = [_report(Fault(step, 1, Kind.CONFLICT)) for step in StepName if step != "claim/ttl"]
    assert table.never(all_but_one) == ["claim/ttl"]


def test_a_request_without_a_name_is_found() -> None:
    assert table.unnamed([_report(came=("hand-over/vm", "unnamed GET /x"))]) == ["unnamed GET /x"]


def test_the_table_has_a_row_for_each_step_and_a_column_for_each_kind_that_fired() -> None:
    reports = [_report(Fault("b", 1, Kind.CUT_AFTER)), _report(Fault("a", 1, Kind.CONFLICT))]
    assert table.markdown(table.fired(reports)).splitlines() == [
        "| step | 409 | cut-after |",
        "|---|--:|--:|",
        "| `a` | 1 |  |",
        "| `b` |  | 1 |",
    ]


def test_the_document_names_each_failure_with_its_run() -> None:
    fault = Fault("hand-over/vm", 1, Kind.CUT_AFTER)
    found = table.document([_report(fault, failure="a leak"), _report()], seconds=12.4)
    assert found["failures"] == [{"run": "bind: cut-after at hand-over/vm#1", "why": "a leak"}]
    assert (found["runs"], found["seconds"], found["longest_rest_seconds"]) == (2, 12, 1.5)
