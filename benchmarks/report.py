"""What a person reads and what a machine reads: tables and JSON of the same rows and verdicts."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.rows import FLOOR, Row
from benchmarks.thresholds import Verdict


@dataclass(frozen=True, slots=True)
class Column:
    """A figure's key, the head of its column, and the digits behind its point."""

    key: str
    head: str
    digits: int = 1


RATES = (
    Column("claims", "claims", 0),
    Column("failed", "failed", 0),
    Column("claims_per_second", "claims/s", 1),
    Column("p50_ms", "p50 ms"),
    Column("p90_ms", "p90 ms"),
    Column("p99_ms", "p99 ms"),
    Column("last_ms", "last ms", 0),
    Column("lag_p99_ms", "own lag p99"),
    Column("lag_max_ms", "max"),
)
COSTS = (
    Column("cpu_apiserver_ms", "API server"),
    Column("cpu_etcd_ms", "etcd"),
    Column("cpu_controller-manager_ms", "GC"),
    Column("cpu_simulator_ms", "stand-in"),
    Column("cpu_generator_ms", "generator"),
    Column("cpu_controller_ms", "controller", 2),
    Column("hot_writes", "hot writes", 2),
    Column("writes", "all writes", 2),
    Column("status_writes", "of them status", 2),
    Column("server_writes", "API server's count", 2),
    Column("refilled", "refilled", 2),
    Column("rss_mib", "RSS MiB", 0),
)
OVERLOAD = (
    Column("offered_per_second", "offered/s"),
    Column("served_per_second", "served/s"),
    Column("unserved", "unserved", 0),
    Column("overtaken", "overtaken > 1 s", 0),
    Column("overtaken_worst_s", "worst s", 2),
    Column("cold", "not warm", 0),
    Column("drained_s", "drained after s"),
)
SCALE = (
    Column("vms", "VMs", 0),
    Column("first_s", "start → first s", 2),
    Column("list_s", "bare list s", 2),
    Column("p50_ms", "p50 ms"),
    Column("p99_ms", "p99 ms"),
    Column("lag_p99_ms", "own lag p99"),
    Column("cpu_controller_ms", "CPU ms a claim", 2),
    Column("idle_cores", "idle cores", 3),
    Column("rss_start_mib", "RSS MiB after start", 0),
    Column("held", "claims held", 0),
    Column("rss_mib", "RSS MiB then", 0),
)
TABLES = {
    "handover": (
        ("Rates and latencies", RATES),
        ("Cost of a claim: CPU ms, writes", COSTS),
        ("Overload", OVERLOAD),
    ),
    "scale": (("Scale", SCALE),),
}


@dataclass(slots=True)
class Report:
    """All of one run. `setting` says under which conditions the figures hold."""

    benchmark: str
    setting: dict[str, Any]
    rows: list[Row]
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """No threshold was missed and no claim failed."""
        return all(each.met for each in self.verdicts) and not self.failed

    @property
    def failed(self) -> int:
        return int(sum(row.figures.get("failed", 0) for row in self.rows))

    def as_json(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "setting": self.setting,
            "passed": self.passed,
            "rows": [asdict(row) for row in self.rows],
            "thresholds": [
                {
                    **asdict(each.threshold),
                    "value": None if math.isnan(each.value) else each.value,
                    "met": each.met,
                }
                for each in self.verdicts
            ],
        }

    def show(self, console: Console) -> None:
        for key, value in self.setting.items():
            console.print(f"{key}: {value}", highlight=False)
        for title, columns in TABLES[self.benchmark]:
            _show_rows(console, title, columns, self.rows)
        for row in self.rows:
            for note in row.notes:
                console.print(f"{row.name}, {row.side}: {note}", style="red", markup=False)
        if self.verdicts:
            console.print(_verdict_table(self.verdicts))


def machine() -> dict[str, Any]:
    """What the figures depend on besides us."""
    return {
        "machine": f"{os.cpu_count()} CPUs, {platform.machine()}, Python {platform.python_version()}",
        "load average before": ", ".join(f"{each:.1f}" for each in os.getloadavg()),
    }


def _show_rows(console: Console, title: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Those rows and columns that have anything to show."""
    shown = [each for each in columns if any(each.key in row.figures for row in rows)]
    own = [each for each in shown if each.key not in {"claims", "failed"}]
    rows = [row for row in rows if any(each.key in row.figures for each in own)]
    if not rows:
        return
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    for column in shown:
        table.add_column(column.head, justify="right")
    for row in rows:
        cells = [_number(row.figures.get(each.key), each.digits) for each in shown]
        table.add_row(row.name, row.side, *cells, style="dim" if row.side == FLOOR else None)
    console.print(table)


def _verdict_table(verdicts: Sequence[Verdict]) -> Table:
    table = Table("", title="Thresholds", title_justify="left")
    for head in ("measured", "limit", "aim", ""):
        table.add_column(head, justify="right")
    for each in verdicts:
        aim = each.threshold.aim
        reached = aim is not None and each.threshold.aim_met_by(each.value)
        word = ("[green]aim met[/]" if reached else "[green]met[/]") if each.met else "[bold red]missed[/]"
        table.add_row(
            each.threshold.name,
            _number(each.value, 2),
            each.threshold.limit,
            "" if aim is None else f"{aim:g}",
            word,
        )
    return table


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return ""
    return "–" if math.isnan(value) else f"{value:,.{digits}f}"
