"""A back-test in the terminal, and as a document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from cli.backtest import words
from cli.backtest.study import Point, Setting, Study
from crds.schema import written_time

_ROWS = 18
"""So many fixed numbers are shown at most, beside those that are marked."""
_STYLE = {"today": "bold dark_orange3", "engine": "bold dodger_blue2", "least": "bold green4"}


def told(study: Study) -> Iterable[Table | Text]:
    """What a person reads: what was replayed, the table, and what came of it in words."""
    yield Text(f"{study.of}: {words.span(study)}", "bold")
    yield Text(words.facts(study))
    yield Text()
    yield _table(study)
    yield Text()
    for each in words.summary(study):
        yield _wrapped(each, "→")
    for each in study.notes:
        yield _wrapped(each, "·")


def _wrapped(sentence: str, sign: str) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_row(sign, Text(sentence))
    return table


def _table(study: Study) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("VMS", "HIT RATIO", "IDLE VM-HOURS/DAY", "MISSES/DAY"):
        table.add_column(name, justify="right")
    table.add_column("")
    days = max(study.days, 1e-9)
    names = marked(study)
    for point in shown(study):
        kind, name = names.get(point.units, ("", ""))
        _row(table, str(point.units), point, days, kind, name)
    if study.engine:
        table.add_section()
        said = f"the engine, for {words.percent(study.level)}"
        _row(table, study.engine.units, study.engine, days, "engine", said)
    return table


def _row(table: Table, units: str, of: Point | Setting, days: float, kind: str, name: str) -> None:
    values = (units, words.percent(of.hit_ratio), words.hours(of.idle_hours), _daily(of.misses / days))
    style = _STYLE.get(kind, "")
    table.add_row(*(Text(each, style) for each in values), Text(f"← {name}" if name else "", style))


def _daily(misses: float) -> str:
    return f"{misses:.1f}" if 0 < misses < 10 else f"{misses:,.0f}"  # noqa: PLR2004 - two digits or so


def marked(study: Study) -> dict[int, tuple[str, str]]:
    """What is said beside a fixed number of units: the kind of the mark, and the words."""
    found = {study.least.most: ("least", f"the smallest that meets {words.percent(study.level)}")}
    if study.today and study.today.fewest == study.today.most:
        also = found.get(study.today.most)
        found[study.today.most] = ("today", f"today, and {also[1]}" if also else "today")
    return found


def shown(study: Study) -> list[Point]:
    """The fixed numbers worth a line: the marked ones, and some more up to the first that misses nothing."""
    names = marked(study)
    last = max(names)
    worth: list[Point] = []
    for point in study.curve:
        if worth and worth[-1].misses == 0 and point.units > last:
            break
        worth.append(point)
    step = -(-len(worth) // _ROWS)
    return [point for number, point in enumerate(worth) if number % step == 0 or point.units in names]


def document(study: Study) -> dict[str, Any]:
    """All of it for programs: every fixed number, and each setting by hour of the week."""
    settings = {"today": study.today, "engine": study.engine, "smallest": study.least}
    return {
        "of": study.of,
        "since": _time(study.since),
        "until": _time(study.until),
        "timeZone": study.zone,
        "level": round(study.level, 6),
        "maxWaitSeconds": study.wait,
        "claims": study.claims,
        "leadTimeSeconds": {"p50": study.lead.p50, "p95": study.lead.p95},
        "says": words.summary(study),
        "notes": list(study.notes),
        "settings": {name: _setting(each) for name, each in settings.items() if each is not None},
        "curve": [_camel(asdict(point)) for point in study.curve],
        "claimsByHourOfWeek": list(study.arrivals),
    }


def _setting(setting: Setting) -> dict[str, Any]:
    return {"units": setting.units} | _camel(asdict(setting))


_NAMES = {
    "hit_ratio": "hitRatio",
    "idle_hours": "idleHoursPerDay",
    "units_by_hour": "unitsByHourOfWeek",
    "misses_by_hour": "missesByHourOfWeek",
}


def _camel(values: dict[str, Any]) -> dict[str, Any]:
    return {
        _NAMES.get(name, name): list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _time(moment: float) -> str:
    return written_time(words.at(moment))
