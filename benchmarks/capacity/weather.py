"""What a storm came to: how long until the target was met again, misses beside the oracle, swings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.capacity import storms
from benchmarks.capacity.outcomes import ENGINE, ORACLE, row_name
from benchmarks.capacity.report import Table, per_cent
from benchmarks.capacity.storms import MINUTE, Chart, Pilot, Storm, Tale, Weather
from benchmarks.capacity.traces import Lead
from benchmarks.rows import Row

PROMPT = "oracle without foresight"
# Takes the controls of one storm for these levels: a pilot for each, over one history.
Board = Callable[[Tale, float, float], Pilot]


@dataclass(frozen=True, slots=True)
class Report:
    """One seed of one storm at one level."""

    row: str
    side: str
    again: float
    missed: int
    swings: int
    before: float
    peak: int
    after: float
    hit: float


def weather_a_storm(
    storm: Storm, weather: Weather, lead: Lead, start: float, seed: int, board: Board
) -> tuple[list[Report], list[tuple[Tale, float, Chart]]]:
    """All levels of one storm and seed, beside both oracles; and the engine's charts."""
    tale = storms.draw(storm, lead, start, seed)
    found, charts = [], []
    for level in weather.levels:
        best = storms.fly(tale, storms.foreseen(tale, level), weather.every)
        prompt = storms.fly(tale, storms.prompt(tale, level), weather.every)
        mine = storms.fly(tale, board(tale, level, weather.refresh), weather.every)
        row = row_name(storm.name, level)
        for side, chart in ((ENGINE, mine), (ORACLE, best), (PROMPT, prompt)):
            found.append(_report(row, side, tale, chart, level, best))
        charts.append((tale, level, mine))
    return found, charts


def _report(row: str, side: str, tale: Tale, chart: Chart, level: float, best: Chart) -> Report:
    before = chart.levels[chart.at < tale.begin]
    again = storms.met_again(tale, chart, level, best)
    settled = chart.levels[chart.at >= tale.settles_from + (again if np.isfinite(again) else 0.0)]
    return Report(
        row,
        side,
        again,
        storms.misses(tale, chart),
        storms.swings(settled),
        float(before.mean()),
        int(chart.levels.max()),
        float(chart.levels[chart.at >= tale.end - 30 * MINUTE].mean()),
        chart.run.share(),
    )


def summed(found: list[Report]) -> list[Row]:
    """A row for each storm, level and side: the worst time and swings, the mean of the rest."""
    groups: dict[tuple[str, str], list[Report]] = {}
    for each in found:
        groups.setdefault((each.row, each.side), []).append(each)
    rows = []
    for (row, side), mine in groups.items():
        prompt = groups[row, PROMPT]
        missed, least = (sum(each.missed for each in side_) / len(side_) for side_ in (mine, prompt))
        figures = {
            "seeds": len(mine),
            "again_minutes": max(each.again for each in mine) / MINUTE,
            "missed": missed,
            "missed_beside": missed / least if least else missed + 1.0,
            "swings": max(each.swings for each in mine),
            "before": float(np.mean([each.before for each in mine])),
            "peak": float(np.mean([each.peak for each in mine])),
            "after": float(np.mean([each.after for each in mine])),
            "hit": float(np.mean([each.hit for each in mine])),
        }
        rows.append(Row(row, side, figures))
    return rows


def table(rows: list[Row]) -> Table:
    found = Table(
        "Storms: the worst of the seeds",
        (
            "storm",
            "",
            "met again after",
            "claims that waited",
            "of the prompt oracle's",
            "swings",
            "target before",
            "peak",
            "at the end",
            "hit ratio, 6 h",
        ),
    )
    for row in rows:
        figures = row.figures
        if "again_minutes" not in figures:
            continue
        again = figures["again_minutes"]
        found.lines.append(
            (
                row.name,
                row.side,
                f"{again:.1f} min" if np.isfinite(again) else "not in the time watched",
                f"{figures['missed']:.0f}",
                f"{figures['missed_beside']:.2f}",
                f"{figures['swings']:.0f}",
                f"{figures['before']:.1f}",
                f"{figures['peak']:.0f}",
                f"{figures['after']:.1f}",
                per_cent(figures["hit"]),
            )
        )
    return found
