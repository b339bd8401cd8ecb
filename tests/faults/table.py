"""The table: steps × faults, how often each fired. A step that never fired fails the whole. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from controller.claims.protocol import StepName
from tests.faults.kinds import Kind
from tests.faults.runs import Report

# Steps that need not have met a fault, each with the reason.
UNTOUCHED: dict[str, str] = {}


def fired(reports: Iterable[Report]) -> dict[str, Counter[Kind]]:
    """How often each fault fired at each address."""
    found: dict[str, Counter[Kind]] = {}
    for report in reports:
        for fault in report.fired:
            found.setdefault(fault.address, Counter())[fault.kind] += 1
    return dict(sorted(found.items()))


def never(reports: Iterable[Report]) -> list[str]:
    """The protocol's steps that met no fault at all."""
    met = fired(reports)
    return [step.value for step in StepName if step.value not in met and step.value not in UNTOUCHED]


def unnamed(reports: Iterable[Report]) -> list[str]:
    """Requests that came without a step's name: nobody could disturb or count them."""
    return sorted({address for each in reports for address in each.came if address.startswith("unnamed ")})


def markdown(counts: Mapping[str, Counter[Kind]]) -> str:
    """The table as people read it."""
    kinds = [kind for kind in Kind if any(kind in row for row in counts.values())]
    return "\n".join(_rows(counts, kinds)) + "\n"


def _rows(counts: Mapping[str, Counter[Kind]], kinds: Sequence[Kind]) -> Iterator[str]:
    yield "| step | " + " | ".join(kinds) + " |"
    yield "|---|" + "--:|" * len(kinds)
    for address, row in counts.items():
        cells = (str(row[kind]) if row[kind] else "" for kind in kinds)
        yield f"| `{address}` | " + " | ".join(cells) + " |"


def document(reports: Sequence[Report], *, seconds: float) -> dict[str, Any]:
    """The same and more, for programs."""
    return {
        "seconds": round(seconds),
        "runs": len(reports),
        "fired": {address: dict(row) for address, row in fired(reports).items()},
        "never": never(reports),
        "unnamed": unnamed(reports),
        "longest_rest_seconds": round(max((each.rested for each in reports), default=0.0), 1),
        "failures": [{"run": str(each.run), "why": each.failure} for each in reports if each.failure],
    }
