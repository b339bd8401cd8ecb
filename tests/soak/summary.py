"""What came of a soak, as a table for people and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from tests.trials.fairness import Life

KILLS = ("SIGKILL", "SIGTERM", "SIGSTOP")
ROLL_OUTS = ("roll-outs", "roll-outs that never boot")
GUESTS = ("guests crashed", "nodes lost", "guests paused")
PEOPLE = (
    "warm VMs deleted",
    "VMs in use deleted",
    "relabelled",
    "stripped",
    "kept by people",
    "pools replaced",
    "scaled",
    "suspended",
    "ages bounded",
)


@dataclass
class Summary:
    """`acts`, `ends` and `claims` count by name; `vitals` has first → last of the calm part by controller."""

    seed: int
    minutes: float = 0.0
    claims: dict[str, int] = field(default_factory=dict)
    acts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    outages: int = 0
    rests: list[float] = field(default_factory=list)
    vitals: dict[str, dict[str, str]] = field(default_factory=dict)
    judged: int = 0
    remembered: dict[str, int] = field(default_factory=dict)
    gaps: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed}


def tally(lives: Iterable[Life]) -> dict[str, int]:
    """How claims fared: made, bound, and how they ended."""
    found = {"made": 0, "bound": 0}
    for life in lives:
        found["made"] += 1
        found["bound"] += life.served
        how = life.reason or ("deleted while it waited" if not life.served else "given back")
        if life.ended or life.reason:
            found[how] = found.get(how, 0) + 1
    return found


def table(found: Summary) -> Table:
    """As a person reads it."""
    shown = Table("soak", f"seed {found.seed}", show_lines=True)
    for name, value in _rows(found):
        shown.add_row(name, value)
    for each in found.findings or ["none"]:
        shown.add_row("finding", each)
    return shown


def _rows(found: Summary) -> Iterator[tuple[str, str]]:
    yield "minutes", f"{found.minutes:.1f}"
    yield "claims", _counts(found.claims, found.claims)
    yield "controllers ended", _counts(found.ends, [*KILLS, *(found.ends.keys() - set(KILLS))])
    yield "API server restarted", str(found.outages)
    yield "roll-outs", _counts(found.acts, ROLL_OUTS)
    yield "guests that failed", _counts(found.acts, GUESTS)
    yield "people", _counts(found.acts, PEOPLE)
    yield "to rest, s", f"{len(found.rests)} times, at worst {max(found.rests, default=0.0):.1f}"
    for name, figures in found.vitals.items():
        yield name, ", ".join(f"{figure} {course}" for figure, course in figures.items())
    remembered = sum(found.remembered.values())
    yield (
        "auditor",
        f"{found.judged} events judged, {found.gaps} gaps in outages, {remembered} objects remembered",
    )


def _counts(counts: dict[str, int], names: Iterable[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in names if counts.get(name)) or "none"
