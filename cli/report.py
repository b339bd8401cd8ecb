"""What an audit found, for people and for programs. Nothing is asked or decided here."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from auditor.events import Kind
from auditor.findings import BROKEN, DOUBTFUL, Finding, Severity
from auditor.looking import Audit
from cli import output
from cli.output import Output

_STYLE = {
    Severity.VIOLATION: "bold red",
    Severity.LEAK: "red",
    Severity.FOREIGN: "yellow",
    Severity.WARNING: "yellow",
    Severity.NOTE: "dim",
}
_RESOURCE = {Kind.POOL: "wp", Kind.CLAIM: "vmc", Kind.VM: "vm"}
_MANY = {
    "violation": "violations",
    "leak": "leaks",
    "foreign": "foreign",
    "warning": "warnings",
    "note": "notes",
}
_WIDE = 120  # columns where nobody's terminal says how many there are


def console() -> Console:
    """Where people read. A pipe has no width; 80 columns would break every line."""
    plain = Console(highlight=False)
    if plain.is_terminal or "COLUMNS" in os.environ:
        return plain
    return Console(highlight=False, width=_WIDE)


def write(audit: Audit, where: str, form: Output) -> None:
    """All of it, to standard output."""
    if form is not Output.TABLE:
        output.write(_document(audit, where), form)
        return
    for part in _table(audit, where):
        console().print(part, soft_wrap=isinstance(part, Text))


def exit_code(found: Iterable[Finding], *, strict: bool) -> int:
    """1 when a promise is broken or something leaked; when strict, also for what is foreign or a warning."""
    counts = BROKEN | DOUBTFUL if strict else BROKEN
    return int(any(each.severity in counts for each in found))


def _document(audit: Audit, where: str) -> dict[str, Any]:
    """One document: what was looked at, how many of each severity, and each finding."""
    numbers = Counter(each.severity for each in audit.findings)
    return {
        "of": where,
        "seen": {name.lower(): number for name, number in audit.seen.items()},
        "summary": {severity.value: numbers[severity] for severity in Severity},
        "findings": [_plain(each) for each in audit.findings],
    }


def _table(audit: Audit, where: str) -> Iterable[Table | Text]:
    """What was found, if anything, and a line that sums it up."""
    if audit.findings:
        table = Table("SEVERITY", "OBJECT", "WHAT IT IS, AND WHAT TO DO", show_lines=True)
        for each in audit.findings:
            what = Text(each.message)
            what.append(f"\n→ {each.advice}", "dim")
            table.add_row(Text(each.severity.value, _STYLE[each.severity]), _object(each), what)
        yield table
    yield _summary(audit, where)


def counted(seen: Mapping[str, int]) -> str:
    """How many there are of each, as a sentence has it."""
    return ", ".join(f"{number} {name if number != 1 else name[:-1]}" for name, number in seen.items())


def line(each: Finding) -> Text:
    """One finding on one line, as it comes."""
    return Text.assemble(
        (f"{each.severity.value:10}", _STYLE[each.severity]), f"{_object(each, ' ')} ", each.message
    )


def _object(each: Finding, between: str = "\n") -> str:
    about = each.about
    if about is None:
        return "the cluster"
    return f"{_RESOURCE[about.kind]}/{about.name}{between}-n {about.namespace}"


def _summary(audit: Audit, where: str) -> Text:
    numbers = Counter(each.severity for each in audit.findings)
    found = ", ".join(
        f"{numbers[each]} {each.value if numbers[each] == 1 else _MANY[each.value]}"
        for each in Severity
        if numbers[each]
    )
    verdict = Text(found) if found else Text("nothing is lost, nothing is doubled", "green")
    return Text(f"{where}, {counted(audit.seen)}: ") + verdict


def _plain(each: Finding) -> dict[str, str | None]:
    about = each.about
    return {
        "severity": each.severity.value,
        "what": each.what,
        "kind": about.kind.value if about else None,
        "namespace": about.namespace if about else None,
        "name": about.name if about else None,
        "uid": about.uid if about else None,
        "message": each.message,
        "advice": each.advice,
    }
