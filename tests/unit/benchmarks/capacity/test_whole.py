"""The command: what it prints, what it writes, how it ends."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from rich.console import Console

from benchmarks.capacity import __main__ as command
from benchmarks.capacity import cost, page, plots, storms, traces, work
from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.outcomes import ENGINE, ORACLE, STATIC
from benchmarks.rows import Row

BOOK = traces.read()


def test_everything_is_planned_in_full_size() -> None:
    planned = work.plan()
    assert planned.book == BOOK
    assert len(planned.weather.storms) == 4
    assert planned.cost


def test_one_trace_or_storm_is_planned_alone() -> None:
    planned = work.plan(only=["sine", "outage"])
    assert [each.name for each in planned.book.traces] == ["sine"]
    assert [each.name for each in planned.weather.storms] == ["outage"]
    assert not planned.loads
    assert not planned.cost


def test_an_unknown_name_ends_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "cosine"]) == 2
    error = capsys.readouterr().err
    assert "cosine" in error
    assert "office-hours" in error


@pytest.mark.thorough
def test_the_quick_run_shows_every_table_and_writes_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--quick", "--json", str(tmp_path / "found.json")]) == 0
    shown = capsys.readouterr().out
    for title in ("Levels:", "Idle:", "Storms:", "Theory:", "Tiers:"):
        assert title in shown
    written = orjson.loads((tmp_path / "found.json").read_bytes())
    rows = {(row["name"], row["side"]): row["figures"] for row in written["rows"]}
    assert rows["office-hours 90 %", ENGINE]["hit"] > 0.88
    assert rows["office-hours 90 %", ENGINE]["saved"] > 0.6
    assert rows["poisson-5 99 %", ENGINE]["of_static"] == pytest.approx(1.0, abs=0.11)


def test_a_table_is_written_between_its_marks_and_nothing_else_is_touched() -> None:
    text = "one\n<!-- levels -->\nold\n<!-- end -->\ntwo\n<!-- idle -->\nkept\n<!-- end -->\n"
    found = page.filled(text, {"levels": "| new |", "cost": "| nowhere |"})
    assert found == text.replace("old", "| new |")
    assert page.filled(found, {"levels": "| new |"}) == found


def test_the_page_has_a_mark_for_every_table_and_shows_every_picture() -> None:
    text = page.PAGE.read_text()
    for name in ("levels", "idle", "storms", "theory", "tiers", "cost"):
        assert f"<!-- {name} -->\n" in text
    for picture in page.IMAGES.glob("capacity-*.svg"):
        assert picture.name in text


def _row(side: str, hit: float, idle: float) -> Row:
    figures = {
        "level": 0.99,
        "hit": hit,
        "idle": idle,
        "interval": 0.001,
        "units": 9.0,
        "seeds": 2,
        "claims": 9,
    }
    return Row("sine 99 %", side, figures)


def test_pictures_of_the_same_figures_are_the_same_bytes(tmp_path: Path) -> None:
    rows = [_row(ENGINE, 0.991, 50.0), _row(ORACLE, 0.992, 45.0), _row(STATIC, 0.99, 100.0)]
    for name in ("one.svg", "two.svg"):
        plots.misses(rows, tmp_path / f"misses-{name}")
        plots.idle(rows, 0.99, tmp_path / f"idle-{name}")
    for kind in ("misses", "idle"):
        one, two = ((tmp_path / f"{kind}-{name}.svg").read_text() for name in ("one", "two"))
        assert one == two
        assert one.startswith("<?xml")


def test_days_and_storms_are_drawn(tmp_path: Path) -> None:
    demand = BOOK.draw(BOOK.shortened(BOOK.only("sine"), (7, 4)), 0)
    flat = Levels.constant(demand.judged_from, 9)
    plots.days(demand, np.ones(demand.rate.size), {ENGINE: flat}, tmp_path / "days.svg")
    tale = storms.draw(replace(storms.read().storms[0], days=1, hours=1.0), BOOK.lead, BOOK.start, 1)
    best = storms.foreseen(tale, 0.99)
    plots.storms([(tale, storms.fly(tale, best, 60.0), best.plan)], tmp_path / "storms.svg")
    assert (tmp_path / "days.svg").stat().st_size > 5_000
    assert (tmp_path / "storms.svg").stat().st_size > 5_000


@pytest.mark.thorough
def test_the_cost_is_measured_with_a_hundred_thousand_claims() -> None:
    row = cost.measure(BOOK)
    assert row.figures["claims"] == pytest.approx(100_000, rel=0.1)
    assert 0 < row.figures["decide_p99_ms"] < 20
    assert 0 < row.figures["curve_s"] < 4
    assert 10 < row.figures["history_kb"] < 256
    Console(quiet=True).print(cost.table(row).drawn())
