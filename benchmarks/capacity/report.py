"""What a person reads, what a machine reads, and what the page in the docs shows: the same figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table as Drawn

from benchmarks.capacity import outcomes
from benchmarks.capacity.outcomes import PER_CENT
from benchmarks.rows import Row
from benchmarks.thresholds import Verdict

Figures = Mapping[str, float]
Cell = Callable[[Mapping[str, Figures]], str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of words: for the terminal and for Markdown alike."""

    title: str
    heads: tuple[str, ...]
    lines: list[tuple[str, ...]] = field(default_factory=list)

    def drawn(self) -> Drawn:
        table = Drawn(title=self.title, title_justify="left")
        for index, head in enumerate(self.heads):
            table.add_column(head, justify="left" if not index else "right", no_wrap=not index)
        for line in self.lines:
            missed = any(cell == MISSED for cell in line)
            table.add_row(*line, style="bold red" if missed else None)
        return table

    def markdown(self) -> str:
        rows = [self.heads, ("---", *("---:" for _ in self.heads[1:])), *self.lines]
        return "\n".join(f"| {' | '.join(_bold(cell) for cell in row)} |" for row in rows)


MET, MISSED, SHOWN = "met", "missed", "not judged"


def _bold(cell: str) -> str:
    return f"**{cell}**" if cell == MISSED else cell


@dataclass(slots=True)
class Report:
    """All of one run: rows of traces and storms, other tables, and what was judged."""

    setting: dict[str, Any]
    rows: list[Row]
    verdicts: list[Verdict]
    others: list[Table] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(each.met for each in self.verdicts)

    def tables(self) -> dict[str, Table]:
        """By the name under which the page in the docs has them."""
        found = {"levels": levels(self.rows, self.verdicts), "idle": idle(self.rows)}
        return {name: each for name, each in found.items() if each.lines} | {
            each.title.split(":")[0].lower().replace(" ", "-"): each for each in self.others
        }

    def show(self, console: Console) -> None:
        for key, value in self.setting.items():
            console.print(f"{key}: {value}", highlight=False)
        for table in self.tables().values():
            console.print(table.drawn())
        console.print(verdicts(self.verdicts).drawn())

    def as_json(self) -> dict[str, Any]:
        return {
            "benchmark": "capacity",
            "setting": self.setting,
            "passed": self.passed,
            "rows": [_plain(asdict(row)) for row in self.rows],
            "tables": {name: [each.heads, *each.lines] for name, each in self.tables().items()},
            "thresholds": [
                _plain({**asdict(each.threshold), "value": each.value, "met": each.met})
                for each in self.verdicts
            ],
        }


def _plain(found: Any) -> Any:
    """JSON knows no infinity."""
    if isinstance(found, dict):
        return {key: _plain(value) for key, value in found.items()}
    return None if isinstance(found, float) and not math.isfinite(found) else found


def by_row(rows: Iterable[Row]) -> dict[str, dict[str, Figures]]:
    found: dict[str, dict[str, Figures]] = {}
    for row in rows:
        found.setdefault(row.name, {})[row.side] = row.figures
    return found


def levels(rows: Iterable[Row], judged: Sequence[Verdict]) -> Table:
    """Hit ratios against what was asked for."""
    table = Table(
        "Levels: asked for and reached, on claims that the engine was not trained on",
        (
            "trace",
            "seeds x claims",
            "reached",
            "± (95 %)",
            "one unit less",
            "mean target",
            "static",
            "oracle",
            "",
        ),
    )
    for name, sides in by_row(rows).items():
        engine = sides.get(outcomes.ENGINE)
        if engine is None or "interval" not in engine:
            continue
        table.lines.append(
            (
                name,
                f"{engine['seeds']:.0f} x {engine['claims']:,.0f}",
                per_cent(engine["hit"]),
                f"{engine['interval'] * PER_CENT:.2f}",
                per_cent(engine.get("less_hit", math.nan)),
                f"{engine['units']:.2f}",
                _of(sides, outcomes.STATIC, "units", "{:.2f}"),
                f"{_of(sides, outcomes.ORACLE, 'units', '{:.2f}')} ({_reached(sides, outcomes.ORACLE)})",
                _word(name, judged),
            )
        )
    return table


def idle(rows: Iterable[Row]) -> Table:
    """Idle unit-hours a day, each beside the hit ratio that it bought."""
    table = Table(
        "Idle: ready unit-hours a day (and the hit ratio that they bought)",
        (
            "trace",
            "engine",
            "static",
            "oracle",
            "saved",
            "of oracle's",
            "HPA on rate",
            "% of in use",
            "rate x boot",
        ),
    )
    for name, sides in by_row(rows).items():
        engine = sides.get(outcomes.ENGINE)
        if engine is None or "of_static" not in engine:
            continue
        flat = engine.get("of_oracle", math.nan)
        table.lines.append(
            (
                name,
                f"{engine['idle']:.0f}",
                _of(sides, outcomes.STATIC, "idle", "{:.0f}"),
                _of(sides, outcomes.ORACLE, "idle", "{:.0f}"),
                f"{engine['saved'] * PER_CENT:.0f} %",
                "–" if math.isnan(flat) or abs(flat) > 9 else f"{flat:.2f}",
                *(_both(sides, side) for side in (outcomes.AUTOSCALER, outcomes.PERCENT, outcomes.RATE)),
            )
        )
    return table


def verdicts(judged: Sequence[Verdict]) -> Table:
    table = Table("Thresholds", ("", "measured", "limit", ""))
    for each in judged:
        value = "–" if math.isnan(each.value) else f"{each.value:.3g}"
        table.lines.append((each.threshold.name, value, each.threshold.limit, MET if each.met else MISSED))
    return table


def _word(row: str, judged: Sequence[Verdict]) -> str:
    mine = [each.met for each in judged if each.threshold.figure.startswith(f"{row}/")]
    if not mine:
        return SHOWN
    return MET if all(mine) else MISSED


def per_cent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share * PER_CENT:.2f} %"


def _of(sides: Mapping[str, Figures], side: str, key: str, form: str) -> str:
    return form.format(sides[side][key]) if side in sides else "–"


def _reached(sides: Mapping[str, Figures], side: str) -> str:
    return per_cent(sides[side]["hit"]) if side in sides else "–"


def _both(sides: Mapping[str, Figures], side: str) -> str:
    if side not in sides:
        return "none does"
    return f"{sides[side]['idle']:.0f} ({sides[side]['hit'] * PER_CENT:.1f} %)"
