"""The table of worlds, and a violation's story."""

from __future__ import annotations

from collections.abc import Iterable

from tests.protocol.explore import Report

_HEAD = ("world", "states", "transitions", "depth", "rests", "seconds", "verdict")


def trace(report: Report, found: str) -> str:
    """The shortest way to a violation, a sentence a line."""
    steps = [f"  {number:2}. {sentence}" for number, sentence in enumerate(report.ways[found], 1)]
    return "\n".join([f"{report.world.name}: {found}", *steps])


def verdict(report: Report) -> str:
    if report.broken:
        return f"BROKEN: {len(report.broken)}"
    if not report.complete:
        return "CUT SHORT"
    if report.unmet:
        return f"A LIMIT IS NOT MET: {', '.join(report.unmet)}"
    return f"holds, but for {len(report.world.allowed)} known limit" if report.allowed else "holds"


def row(report: Report) -> tuple[str, ...]:
    return (
        report.world.name,
        f"{report.states:,}",
        f"{report.transitions:,}",
        str(report.depth),
        str(report.rests),
        f"{report.seconds:.1f}",
        verdict(report),
    )


def table(reports: Iterable[Report]) -> str:
    """Markdown, as the docs have it."""
    rows = [row(report) for report in reports]
    lines = ["| " + " | ".join(_HEAD) + " |", "|---|" + "---:|" * (len(_HEAD) - 2) + "---|"]
    return "\n".join([*lines, *("| " + " | ".join(each) + " |" for each in rows)])
