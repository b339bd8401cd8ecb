"""What a replay of claims says: the numbers, by hour of the week, and what the engine would have done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.backtest import ask, engine, replay
from cli.backtest.ask import Options, Question
from cli.backtest.buffer import Targets
from cli.backtest.replay import Week
from cli.backtest.study import Study
from crds.pool import parse_pool
from crds.ratios import fraction
from e2e.install import ROOT
from tests.support.manifests import pool_manifest

MONDAY = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86_400.0
BOOT = ask.boot("40s,70s")
EXAMPLE = ROOT / "examples/claims.csv"


def trace(tmp_path: Path, *arrivals: float) -> Path:
    path = tmp_path / "claims.csv"
    path.write_text("time\n" + "".join(f"{each}\n" for each in arrivals), encoding="utf-8")
    return path


def question(path: Path, warm: dict[str, Any] | None = None, **options: Any) -> Question:
    pool = None if warm is None else parse_pool(pool_manifest("runners", warm=warm))
    return ask.of_trace(path, Options(**({"boot": BOOT} | options)), pool)


def told(path: Path, warm: dict[str, Any] | None = None, zone: str = "UTC", **options: Any) -> Study:
    return replay.study(question(path, warm, **options), zone)


# ---- the numbers


def test_two_claims_at_once_need_two(tmp_path: Path) -> None:
    of = told(trace(tmp_path, MONDAY, MONDAY, MONDAY + DAY))
    assert [(point.units, point.misses) for point in of.curve] == [(0, 3), (1, 1), (2, 0), (3, 0)]
    assert of.least.units == "2"


def test_the_smallest_number_follows_the_level(tmp_path: Path) -> None:
    path = trace(tmp_path, *(MONDAY + HOUR * hour for hour in range(99)), MONDAY + 98 * HOUR + 1)
    assert told(path, level=0.99).least.units == "1"
    assert told(path, level=0.999).least.units == "2"


def test_patience_counts_who_waits_but_not_for_long(tmp_path: Path) -> None:
    path = trace(tmp_path, MONDAY, MONDAY, MONDAY + DAY)
    assert told(path, wait=600.0).least.units == "0"


def test_an_idle_vm_costs_a_vm_hour_an_hour(tmp_path: Path) -> None:
    of = told(trace(tmp_path, MONDAY, MONDAY + 2 * DAY))
    [one] = [point for point in of.curve if point.units == 1]
    assert one.idle_hours == pytest.approx(24, abs=0.1)


def test_what_is_set_today_is_on_the_curve_however_much_it_is(tmp_path: Path) -> None:
    of = told(trace(tmp_path, MONDAY, MONDAY + HOUR), units=250)
    assert of.today is not None
    assert of.today.units == "250"
    [point] = [point for point in of.curve if point.units == 250]
    assert (point.hit_ratio, point.idle_hours) == (of.today.hit_ratio, of.today.idle_hours)
    assert len(of.curve) < 220


def test_a_batch_of_thousands_makes_no_curve_of_thousands(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(f"time,count\n{MONDAY},5000\n{MONDAY + DAY},1\n", encoding="utf-8")
    of = told(path)
    assert len(of.curve) < 220
    assert of.least.most == 4950
    assert of.curve[-1].misses == 0


def test_two_claims_are_enough_for_a_replay(tmp_path: Path) -> None:
    of = told(trace(tmp_path, MONDAY, MONDAY + HOUR))
    assert (of.claims, of.least.units, of.engine) == (2, "1", None)


# ---- the week


def hourly(arrivals: list[float], zone: str = "UTC", weeks: float = 1) -> list[float]:
    week = Week(MONDAY, MONDAY + weeks * 7 * DAY, zone)
    return list(week.hourly(np.array(arrivals)))


def test_claims_are_counted_in_the_hour_of_the_week_in_which_they_came() -> None:
    found = hourly([MONDAY + 9 * HOUR, MONDAY + 9 * HOUR + 3599, MONDAY + 6 * DAY + 23 * HOUR])
    assert {hour: rate for hour, rate in enumerate(found) if rate} == {9: 2, 167: 1}


def test_the_hour_of_the_week_is_that_of_the_zone() -> None:
    assert hourly([MONDAY + 9 * HOUR], "Asia/Tokyo")[18] == 1
    assert hourly([MONDAY + 6 * DAY + 20 * HOUR], "Asia/Tokyo")[5] == 1


def test_over_several_weeks_it_is_the_mean() -> None:
    assert hourly([MONDAY + 9 * HOUR] * 3 + [MONDAY + 7 * DAY + 9 * HOUR], weeks=2)[9] == 2


def test_summer_time_moves_the_hour_and_loses_no_claim() -> None:
    sunday = datetime(2026, 3, 29, tzinfo=UTC)  # 01:00 UTC: from 02:00 to 03:00 in Berlin
    arrivals = np.array([(sunday + timedelta(hours=hour)).timestamp() for hour in range(6)])
    week = Week(arrivals[0], arrivals[-1] + HOUR, "Europe/Berlin")
    found = week.hourly(arrivals)
    assert sum(found) == 6
    assert found[6 * 24 + 2] == 0


def test_a_part_of_an_hour_counts_as_that_part() -> None:
    week = Week(MONDAY + 0.5 * HOUR, MONDAY + HOUR - 1e-6, "UTC")
    assert week.hourly(np.array([MONDAY + 0.75 * HOUR]))[0] == pytest.approx(2)


def test_targets_are_the_mean_of_each_hour() -> None:
    week = Week(MONDAY, MONDAY + 7 * DAY, "UTC")
    targets = Targets((MONDAY, MONDAY + 1.5 * HOUR, MONDAY + 2 * HOUR), (2, 4, 6))
    found = week.setting(np.array([MONDAY]), np.array([True]), 1.0, targets)
    assert found.units_by_hour[:3] == (2, 3, 6)
    assert (found.fewest, found.most, found.units) == (2, 6, "2 to 6")
    assert found.misses_by_hour[0] == found.misses == 1


def test_hours_that_were_not_seen_have_the_mean_and_no_claims() -> None:
    week = Week(MONDAY, MONDAY + 2 * HOUR, "UTC")
    found = week.setting(np.array([]), np.array([], dtype=bool), 0.0, Targets((MONDAY,), (3,)))
    assert set(found.units_by_hour) == {3}
    assert week.hourly(np.array([MONDAY]))[100] == 0


# ---- today, and the engine


def test_a_pool_that_names_a_number_is_replayed_with_it() -> None:
    of = told(EXAMPLE, {"replicas": 4})
    assert of.today is not None
    assert (of.today.units, of.today.hit_ratio) == ("4", of.curve[4].hit_ratio)


def test_a_number_that_was_given_counts_instead_of_the_pools() -> None:
    of = told(EXAMPLE, {"replicas": 4}, units=6)
    assert of.today is not None
    assert of.today.units == "6"


def test_schedules_are_replayed_hour_by_hour() -> None:
    office = {
        "name": "office", "start": "0 8 * * mon-fri", "timeZone": "UTC", "duration": "10h", "replicas": 9,
    }  # fmt: skip
    of = told(EXAMPLE, {"replicas": 1, "schedules": [office]})
    assert of.today is not None
    assert (of.today.fewest, of.today.most) == (1, 9)
    assert (of.today.units_by_hour[12], of.today.units_by_hour[5 * 24 + 12]) == (9, 1)
    assert of.today.hit_ratio > 0.9


def test_what_nobody_records_is_left_out_and_said() -> None:
    warm = {"replicas": 3, "percent": "20%", "budget": {"maxIdleHoursPerDay": 10}}
    of = told(EXAMPLE, warm)
    assert of.today is not None
    assert of.today.units == "3"
    assert any("without percent and budget" in note for note in of.notes)


@pytest.mark.parametrize("minute", [0, 30])
def test_the_engine_is_in_time_for_a_burst_that_comes_by_the_clock(tmp_path: Path, minute: int) -> None:
    """Thirty claims within a minute, every day: ten boots at a time, so that three follow one another."""
    nine = MONDAY + 9 * HOUR + 60 * minute
    bursts = [nine + day * DAY + 2.0 * number for day in range(28) for number in range(30)]
    of = told(trace(tmp_path, *bursts), boot=ask.boot("60s,60s"))
    assert of.engine is not None
    assert of.engine.hit_ratio >= of.level
    assert of.engine.idle_hours < 0.1 * of.least.idle_hours


def test_the_engine_follows_the_week_and_costs_less_than_a_fixed_number() -> None:
    of = told(EXAMPLE)
    assert of.engine is not None
    assert of.engine.units_by_hour[12] > of.engine.units_by_hour[5 * 24 + 20]
    assert of.engine.idle_hours < of.least.idle_hours
    assert of.engine.hit_ratio > of.level - 0.01
    assert any("learned from" in note for note in of.notes)


def test_a_pool_that_has_the_engine_already_is_told_so_and_not_told_twice() -> None:
    of = told(EXAMPLE, {"replicas": 0, "serviceLevel": {"target": "99%", "mode": "Apply"}})
    assert of.engine is None
    assert of.today is not None
    assert of.today.fewest < of.today.most
    assert any("what the engine would do" in note for note in of.notes)


def test_the_pools_own_level_and_patience_are_the_ones_that_are_asked_about() -> None:
    asked = question(EXAMPLE, {"replicas": 1, "serviceLevel": {"target": "95%", "maxWait": "5s"}})
    assert (asked.wanted.level, asked.wanted.wait) == (fraction("95%"), 5.0)
    asked = question(EXAMPLE, {"replicas": 1, "serviceLevel": {"target": "95%"}}, level=0.9, wait=1.0)
    assert (asked.wanted.level, asked.wanted.wait) == (0.9, 1.0)


def test_the_level_reaches_the_engine_as_it_was_written() -> None:
    for level in ("50%", "90%", "99%", "99.9%", "99.99%", "57%", "98.76%"):
        asked = question(EXAMPLE, level=fraction(level))
        found = engine._of_engine(asked).service_level
        assert found is not None
        assert found.target == level


def test_with_a_few_claims_the_engine_says_nothing(tmp_path: Path) -> None:
    of = told(trace(tmp_path, *(MONDAY + HOUR * hour for hour in range(20))))
    assert of.engine is None
    assert any("fewer than 50 claims" in note for note in of.notes)


def test_a_replay_of_the_same_claims_says_the_same() -> None:
    assert told(EXAMPLE) == told(EXAMPLE)
