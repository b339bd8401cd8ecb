"""Writes what a run found into the page in the docs: tables between their marks, and the pictures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.capacity import oracle, outcomes, pilot, plots, storms
from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.report import Report
from benchmarks.capacity.work import Found, Plan
from capacity.counts import outstanding, smallest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design" / "warm-capacity-proof.md"
IMAGES = ROOT / "docs" / "images"
_LEVEL = 0.99
_SHOWN = "office-hours"


def write(planned: Plan, found: Found, report: Report) -> None:
    """Tables and pictures of what was run; what was not run stays as it is."""
    PAGE.write_text(
        filled(PAGE.read_text(), {name: each.markdown() for name, each in report.tables().items()})
    )
    IMAGES.mkdir(exist_ok=True)
    if found.outcomes:
        plots.misses(report.rows, IMAGES / "capacity-levels.svg")
        plots.idle(report.rows, _LEVEL, IMAGES / "capacity-idle.svg")
        _days(planned)
    if found.charts:
        told = [
            (tale, chart, storms.foreseen(tale, level).plan)
            for tale, level, chart in found.charts
            if level == _LEVEL
        ]
        plots.storms(told, IMAGES / "capacity-storms.svg")


def filled(text: str, tables: dict[str, str]) -> str:
    """The text with each table between `<!-- NAME -->` and `<!-- end -->`. Marks of other tables stay."""
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        if begin in text:
            before, _, after = text.partition(begin)
            text = f"{before}{begin}{table}\n{end}{after.partition(end)[2]}"
    return text


def _days(planned: Plan) -> None:
    trace = next((each for each in planned.book.traces if each.name == _SHOWN), None)
    if trace is None:
        return
    demand = planned.book.draw(trace, 0)
    units = smallest(outstanding(demand.judged, demand.judged_leads), _LEVEL)
    lines = {
        outcomes.STATIC: Levels.constant(demand.judged_from, units),
        outcomes.ORACLE: oracle.levels(demand, planned.book.lead, _LEVEL),
        outcomes.ENGINE: pilot.levels(demand, [_LEVEL])[0],
    }
    mean = oracle.mean_outstanding(demand.rate, planned.book.lead)
    plots.days(demand, mean, lines, IMAGES / "capacity-office-hours.svg")
