"""What a person reads of an audit, and what a program does."""

from __future__ import annotations

import io

import orjson
import pytest
from rich.console import Console

from auditor.events import About, Kind, Rule, Violation
from auditor.findings import Finding, Severity, of
from auditor.looking import Audit
from cli import report
from cli.output import Output

SEEN = {"pools": 1, "claims": 2, "VMs": 0}


def one(severity: Severity = Severity.LEAK, kind: Kind = Kind.VM) -> Finding:
    return Finding(
        severity, "held-by-nobody", About(kind, "ci", "job-1", "u"), "is held for nobody", "delete it"
    )


def shown(*found: Finding, width: int = 100, monkeypatch: pytest.MonkeyPatch) -> str:
    text = io.StringIO()
    monkeypatch.setattr(report, "console", lambda: Console(file=text, width=width, highlight=False))
    report.write(Audit(list(found), SEEN), "namespace ci", Output.TABLE)
    return text.getvalue()


def test_a_clean_cluster_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch=monkeypatch) == (
        "namespace ci, 1 pool, 2 claims, 0 VMs: nothing is lost, nothing is doubled\n"
    )


def test_a_finding_says_how_bad_where_what_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(one(), monkeypatch=monkeypatch)
    for words in ("leak", "vm/job-1", "-n ci", "is held for nobody", "→ delete it"):
        assert words in text
    assert text.endswith("0 VMs: 1 leak\n")


def test_the_last_line_counts_by_severity_the_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [one(severity) for severity in (Severity.NOTE, Severity.VIOLATION, Severity.VIOLATION)]
    assert shown(*found, monkeypatch=monkeypatch).endswith(": 2 violations, 1 note\n")


def test_a_narrow_screen_loses_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(one(), width=50, monkeypatch=monkeypatch)
    assert max(map(len, text.splitlines())) <= 50
    assert "job-1" in text


def test_what_concerns_no_single_object_is_told_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    gap = of(Violation(Rule.GAP, 7, "VirtualMachine", "nothing was seen from 3 to 7: gone"))
    text = shown(gap, monkeypatch=monkeypatch)
    assert gap.severity is Severity.WARNING
    assert "the cluster" in text
    assert "of VirtualMachine nothing was seen from 3 to 7" in text


@pytest.mark.parametrize(
    ("rule", "severity"),
    [(Rule.I1, Severity.VIOLATION), (Rule.FOREIGN, Severity.VIOLATION), (Rule.LEAK, Severity.LEAK)],
)
def test_what_a_watch_finds_is_as_bad_as_what_a_look_finds(rule: Rule, severity: Severity) -> None:
    about = About(Kind.VM, "ci", "vm", "u")
    finding = of(Violation(rule, 7, str(about), "was touched", about))
    assert (finding.severity, finding.about) == (severity, about)
    assert rule.value in finding.message


def test_a_program_gets_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    report.write(Audit([one()], SEEN), "all namespaces", Output.JSON)
    document = orjson.loads(capsys.readouterr().out)
    assert document == {
        "of": "all namespaces",
        "seen": {"pools": 1, "claims": 2, "vms": 0},
        "summary": {"violation": 0, "leak": 1, "foreign": 0, "warning": 0, "note": 0},
        "findings": [
            {
                "severity": "leak",
                "what": "held-by-nobody",
                "kind": "VirtualMachine",
                "namespace": "ci",
                "name": "job-1",
                "uid": "u",
                "message": "is held for nobody",
                "advice": "delete it",
            }
        ],
    }


@pytest.mark.parametrize(
    ("severities", "code", "strict"),
    [
        ([], 0, 0),
        ([Severity.NOTE], 0, 0),
        ([Severity.WARNING], 0, 1),
        ([Severity.FOREIGN], 0, 1),
        ([Severity.LEAK], 1, 1),
        ([Severity.NOTE, Severity.VIOLATION], 1, 1),
    ],
)
def test_the_exit_code_says_whether_anything_is_broken(
    severities: list[Severity], code: int, strict: int
) -> None:
    found = [one(severity) for severity in severities]
    assert (report.exit_code(found, strict=False), report.exit_code(found, strict=True)) == (code, strict)


def test_a_pipe_gets_lines_that_are_not_broken_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert report.console().width == 120
    monkeypatch.setenv("COLUMNS", "90")
    assert report.console().width == 90
