"""What an audit finds, how bad it is, and which of it counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from auditor.events import About, Rule, Violation


class Severity(StrEnum):
    """How bad it is, the worst first."""

    VIOLATION = "violation"
    """A promise is broken."""
    LEAK = "leak"
    """Something of ours is held, runs and costs, and nobody will ever use or delete it."""
    FOREIGN = "foreign"
    """It looks like ours and is not; it is left alone."""
    WARNING = "warning"
    """It is stuck, or nobody works; nothing is lost yet."""
    NOTE = "note"
    """Somebody did that on purpose, most likely; it is named so that nobody wonders."""


RANK = {severity: rank for rank, severity in enumerate(Severity)}
BROKEN = frozenset({Severity.VIOLATION, Severity.LEAK})
DOUBTFUL = frozenset({Severity.FOREIGN, Severity.WARNING})

REPORT = "keep what `kubectl get vm,vmc -o yaml` shows, and file an issue: Bullpen writes no such thing"
LEADS = "see whether a controller leads (kubectl get lease -A | grep bullpen), and its log"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing: a word for programs, a sentence that says what it is, and one that says what to do."""

    severity: Severity
    what: str
    about: About | None
    """None: the cluster as a whole."""
    message: str
    advice: str


def violation(about: About, what: str, message: str, advice: str) -> Finding:
    """A promise is broken."""
    return Finding(Severity.VIOLATION, what, about, message, advice)


def leak(about: About, what: str, message: str, advice: str) -> Finding:
    """Something is held for nobody."""
    return Finding(Severity.LEAK, what, about, message, advice)


def warning(about: About, what: str, message: str, advice: str) -> Finding:
    """Nothing is lost yet."""
    return Finding(Severity.WARNING, what, about, message, advice)


def lasting(before: Iterable[Finding], after: Iterable[Finding]) -> list[Finding]:
    """What was there and still is, unchanged: what was in the middle of a hand-over is through by then."""
    known = set(before)
    return [each for each in after if each in known]


def ordered(found: Iterable[Finding]) -> list[Finding]:
    """The worst first, then by namespace and name."""
    return sorted(found, key=_place)


def _place(each: Finding) -> tuple[int, str, str, str]:
    about = each.about
    where = (about.namespace, about.kind.value, about.name) if about else ("", "", "")
    return (RANK[each.severity], *where)


def of(violation: Violation) -> Finding:
    """What a watch found, as a finding."""
    rule = violation.rule
    if rule is Rule.GAP:
        message = f"of {violation.subject} {violation.message}"
        return Finding(Severity.WARNING, "gap", None, message, "what happened meanwhile is not judged")
    severity = Severity.LEAK if rule is Rule.LEAK else Severity.VIOLATION
    advice = "a person's doing, or a mistake of Bullpen's: then file an issue with what --record keeps"
    return Finding(
        severity, rule.value.lower(), violation.about, f"{violation.message} [{rule.value}]", advice
    )
