"""The pictures of the page in the docs: SVG, the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.capacity import outcomes
from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.report import by_row
from benchmarks.capacity.storms import MINUTE, Chart, Tale
from benchmarks.capacity.traces import CELL, DAY, HOUR, Demand, Floats
from benchmarks.rows import Row

_COLOURS = {
    outcomes.ENGINE: "#0b6e4f",
    outcomes.ORACLE: "#7a9e9f",
    outcomes.STATIC: "#b0b0b0",
    outcomes.AUTOSCALER: "#d98e04",
    outcomes.PERCENT: "#8e5ea2",
    outcomes.RATE: "#c0392b",
}
_CAP = 2.5  # times the static pool; what is beyond is cut off and says so
_MOST_SHOWN = 100
_BEFORE, _AFTER = 20, 120  # minutes
_FINE = 30  # cells for each point of a picture


def _save(figure: Figure, path: Path) -> None:
    with mpl.rc_context({"svg.hashsalt": "bullpen", "svg.fonttype": "path"}):
        figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    # Matplotlib leaves spaces at the ends of lines.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)


def misses(rows: Sequence[Row], path: Path) -> None:
    """Claims that wait: asked for (lines) and measured (points with their interval), for each trace."""
    figure = Figure(figsize=(9, 3.6))
    axes = figure.subplots()
    engines = {name: sides.get(outcomes.ENGINE, {}) for name, sides in by_row(rows).items()}
    found = {name: figures for name, figures in engines.items() if "interval" in figures}
    names = list(dict.fromkeys(_trace(name) for name in found))
    for target in sorted({figures["level"] for figures in found.values()}):
        asked = 100 * (1 - target)
        axes.axhline(asked, color="#888", linewidth=0.8, linestyle="--")
        axes.text(
            len(names) - 0.35, asked, f"{target * 100:g} % asked", va="center", fontsize=8, color="#555"
        )
    for name, figures in found.items():
        at = names.index(_trace(name)) + 0.12 * (_rank(figures["level"]) - 1.5)
        missed = 100 * (1 - figures["hit"])
        axes.errorbar(
            at,
            max(missed, 1e-3),
            yerr=min(100 * figures["interval"], 0.9 * max(missed, 1e-3)),
            fmt="o",
            markersize=4,
            color=_COLOURS[outcomes.ENGINE],
            elinewidth=1,
        )
    axes.set_yscale("log")
    axes.set_ylabel("claims that wait, %")
    axes.set_xticks(range(len(names)), names, rotation=25, ha="right")
    axes.set_xlim(-0.5, len(names) - 0.45)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _plain(axes)
    _save(figure, path)


def _rank(level: float) -> int:
    return [0.9, 0.95, 0.99, 0.999].index(level) if level in {0.9, 0.95, 0.99, 0.999} else 1


def _trace(row: str) -> str:
    return row.rsplit(" ", 2)[0]


def idle(rows: Sequence[Row], level: float, path: Path) -> None:
    """Idle unit-hours at one level, as a share of the smallest static pool's; below each the hit ratio."""
    sides = (outcomes.ENGINE, outcomes.ORACLE, outcomes.AUTOSCALER, outcomes.PERCENT, outcomes.RATE)
    found = {name: each for name, each in by_row(rows).items() if _has(each, level)}
    figure = Figure(figsize=(9, 3.8))
    axes = figure.subplots()
    axes.axhline(1.0, color="#555", linewidth=0.8)
    for index, side in enumerate(sides):
        for place, beside in enumerate(found.values()):
            if side not in beside:
                continue
            share = beside[side]["idle"] / beside[outcomes.STATIC]["idle"]
            short = beside[side]["hit"] < level - 0.01
            axes.bar(
                place + 0.16 * (index - 2),
                min(share, _CAP),
                0.15,
                color=_COLOURS[side],
                alpha=0.35 if short else 1.0,
                label=side if not place else None,
            )
            if share > _CAP:
                axes.text(
                    place + 0.16 * (index - 2), _CAP, f"{share:.0f}x", ha="center", va="bottom", fontsize=7
                )
    axes.set_ylabel(f"idle at {level * 100:g} %, static pool = 1")
    axes.set_xticks(range(len(found)), [_trace(name) for name in found], rotation=25, ha="right")
    axes.legend(frameon=False, ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    _plain(axes)
    _save(figure, path)


def _has(sides: Mapping[str, Mapping[str, float]], level: float) -> bool:
    engine = sides.get(outcomes.ENGINE)
    return engine is not None and outcomes.STATIC in sides and engine["level"] == level


def days(
    demand: Demand, mean: Floats, lines: Mapping[str, Levels], path: Path, *, count: float = 3.0
) -> None:
    """The target over the first judged days, beside what is outstanding on the average."""
    figure = Figure(figsize=(9, 3.2))
    axes = figure.subplots()
    begin, end = demand.judged_from, demand.judged_from + count * DAY
    at = demand.start + np.arange(mean.size) * CELL
    inside = (at >= begin) & (at < end)
    hours, made = (at[inside] - begin)[::_FINE] / HOUR, mean[inside][::_FINE]
    axes.fill_between(hours, made, color="#cfe3dc", label="being made (mean)")
    for name, levels in lines.items():
        keep = levels.at < end
        axes.step(
            (np.append(levels.at[keep], end) - begin) / HOUR,
            np.append(levels.units[keep], levels.units[keep][-1]),
            where="post",
            color=_COLOURS[name],
            linewidth=1.2,
            label=f"target: {name}",
        )
    axes.set_xlabel("hours since Monday, 00:00")
    axes.set_ylabel("units")
    axes.set_xticks(np.arange(0, count * 24 + 1, 6))
    axes.legend(frameon=False, ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.16))
    _plain(axes)
    _save(figure, path)


def storms(tales: Sequence[tuple[Tale, Chart, Levels]], path: Path) -> None:
    """Target, ready and waiting around each storm; the oracle's target beside them."""
    figure = Figure(figsize=(9, 2.3 * len(tales)))
    for place, (tale, chart, best) in enumerate(tales):
        axes = figure.add_subplot(len(tales), 1, place + 1)
        minutes = (chart.at - tale.begin) / MINUTE
        shown = np.flatnonzero((minutes >= -_BEFORE) & (minutes <= _AFTER))[::3]
        at = minutes[shown]
        axes.axvspan(0, min((tale.over - tale.begin) / MINUTE, at[-1]), color="#f6e7d8", zorder=0)
        axes.fill_between(at, chart.ready[shown], step="post", color="#cfe3dc", label="ready")
        waiting = np.minimum(chart.backlog[shown], _MOST_SHOWN)
        axes.plot(at, waiting, color=_COLOURS[outcomes.RATE], label=f"waiting (up to {_MOST_SHOWN})")
        index = np.maximum(0, np.searchsorted(best.at, chart.at[shown], side="right") - 1)
        for side, units in ((outcomes.ORACLE, best.units[index]), (outcomes.ENGINE, chart.levels[shown])):
            axes.step(at, units, where="post", color=_COLOURS[side], label=f"target: {side}")
        axes.set_title(f"{tale.storm.name}: {tale.storm.about}", fontsize=9, loc="left")
        axes.set_xlim(-_BEFORE, min(_AFTER, at[-1]))
        _plain(axes)
    figure.axes[-1].set_xlabel("minutes since it began")
    figure.subplots_adjust(hspace=0.45)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=4, fontsize=8, loc="upper center")
    _save(figure, path)
