import io
import math
from typing import Any

import orjson
from rich.console import Console

from benchmarks.report import Report, machine
from benchmarks.rows import FLOOR, PRODUCT, Row
from benchmarks.thresholds import Threshold, Verdict

LIMIT = Threshold("claims/s, 16 at once", "closed-16/product/rate", at_least=0.65, aim=0.8)


def report(*values: float, rows: list[Row] | None = None, setting: dict[str, Any] | None = None) -> Report:
    found = rows or [
        Row("closed-16", FLOOR, {"claims": 1200, "failed": 0, "claims_per_second": 200.0}),
        Row("closed-16", PRODUCT, {"claims": 1100, "failed": 0, "claims_per_second": 180.5, "rss_mib": 75.2}),
    ]
    return Report("handover", setting or {}, found, [Verdict(LIMIT, value) for value in values])


def shown(found: Report) -> str:
    console = Console(file=io.StringIO(), width=160)
    found.show(console)
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


def test_a_run_in_which_all_limits_are_met_has_passed() -> None:
    assert report(0.9, 0.65).passed


def test_one_missed_limit_fails_the_run() -> None:
    assert not report(0.9, 0.64).passed


def test_a_failed_claim_fails_the_run_whatever_the_limits_say() -> None:
    assert not report(0.9, rows=[Row("burst", PRODUCT, {"failed": 1})]).passed


def test_both_sides_stand_in_the_table() -> None:
    text = shown(report())
    assert "200.0" in text
    assert "180.5" in text
    assert "1,200" in text


def test_a_verdict_says_what_was_measured_the_limit_and_the_aim() -> None:
    (line,) = [line for line in shown(report(0.7)).splitlines() if "16 at once" in line]
    assert "0.70" in line
    assert "≥ 0.65" in line
    assert "0.8" in line
    assert "met" in line


def test_a_missed_limit_and_a_reached_aim_are_told() -> None:
    assert "missed" in shown(report(0.1))
    assert "aim met" in shown(report(0.85))


def test_what_was_not_measured_is_shown_as_such() -> None:
    (line,) = [line for line in shown(report(math.nan)).splitlines() if "16 at once" in line]
    assert "–" in line
    assert "missed" in line


def test_the_setting_is_said_before_the_figures() -> None:
    text = shown(report(setting={"VM definition": "reduced", "KubeVirt stand-in": "minimal profile"}))
    assert text.startswith("VM definition: reduced\nKubeVirt stand-in: minimal profile\n")


def test_a_table_without_a_row_is_left_out() -> None:
    assert "Overload" not in shown(report())


def test_why_claims_failed_is_shown_as_it_was_said() -> None:
    row = Row("burst", PRODUCT, {"claims": 1, "failed": 1, "last_ms": 1.0}, ["500: [internal] error"])
    assert "burst, product: 500: [internal] error" in shown(report(rows=[row]))


def test_the_json_holds_all_figures_and_verdicts_and_nothing_that_json_has_not() -> None:
    found = report(0.7, math.nan, setting={"VM definition": "reduced"})
    read = orjson.loads(orjson.dumps(found.as_json()))
    assert read["benchmark"] == "handover"
    assert read["setting"] == {"VM definition": "reduced"}
    assert read["passed"] is False
    assert read["rows"][1]["figures"]["claims_per_second"] == 180.5
    assert [each["value"] for each in read["thresholds"]] == [0.7, None]
    assert [each["met"] for each in read["thresholds"]] == [True, False]


def test_the_machine_is_named() -> None:
    assert "CPUs" in machine()["machine"]
