"""The sentences and the table of a back-test."""

from __future__ import annotations

import io
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from cli.backtest import table, words
from cli.backtest.study import Point, Study
from tests.unit.cli.studies import CURVE, MONDAY, fixed, study


def shown(of: Study, width: int = 110) -> str:
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    for part in table.told(of):
        console.print(part, soft_wrap=isinstance(part, Text))
    return text.getvalue()


def said(**changes: Any) -> str:
    return " ".join(words.summary(study(**changes)))


# ---- numbers


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (0, "0%"), (0.5, "50%"), (0.9, "90%"), (0.99, "99%"), (0.999, "99.9%"), (0.9999, "99.99%"),
        (0.994321, "99.43%"), (0.999999, "99.99%"), (1.0, "100%"), (0.29, "29%"), (0.57, "57%"),
    ],
)  # fmt: skip
def test_shares_are_cut_and_only_what_missed_nothing_is_all(share: float, written: str) -> None:
    assert words.percent(share) == written


@given(st.integers(1, 10**7), st.data())
def test_no_share_is_told_as_more_than_it_is(claims: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, claims))
    told = float(words.percent(hits / claims).removesuffix("%"))
    assert told <= hits / claims * 100 + 1e-4
    assert (told == 100) == (hits / claims > 1 - 1e-10)


@pytest.mark.parametrize(
    ("units", "written"), [("1", "1 VM"), ("6", "6 VMs"), ("0", "0 VMs"), ("2 to 9", "2 to 9 VMs")]
)
def test_one_vm_is_no_vms(units: str, written: str) -> None:
    assert words.vms(units) == written


def test_a_time_is_told_in_the_zone_that_was_asked_for() -> None:
    assert words.when(MONDAY, "UTC") == "Mon 02 Mar 2026, 00:00"
    assert words.when(MONDAY, "America/New_York") == "Sun 01 Mar 2026, 19:00"


def test_a_short_history_is_told_in_hours() -> None:
    assert "(3.0 hours)" in words.span(study(until=MONDAY + 3 * 3600))
    assert "(7.0 days)" in words.span(study())


def test_hours_of_the_week_begin_on_monday() -> None:
    assert (words.slot(0), words.slot(33), words.slot(167)) == ("Mon 00:00", "Tue 09:00", "Sun 23:00")


# ---- sentences


def test_it_says_what_is_what_would_do_and_what_the_engine_would() -> None:
    today, least, engine = words.summary(study())
    assert today.startswith("With today's 4 VMs, 93% of 10,000 claims found a warm VM, short of 99%; ")
    assert today.endswith("; 84.5 VM-hours a day stood idle.")
    assert least == "The smallest fixed number that meets 99% is 6 VMs, at 132 idle VM-hours a day."
    assert engine.startswith("The engine, which would keep 2 to 7 VMs, reaches 99.3% at 70.2 idle")
    assert engine.endswith(" at 70.2 idle VM-hours a day: 47% less than that fixed number.")


def test_what_is_enough_is_not_called_short() -> None:
    assert "which meets 99%" in said(today=fixed(7))


def test_when_today_is_the_smallest_that_is_what_is_said() -> None:
    assert "That is also the smallest fixed number that meets 99%." in said(today=fixed(6))


def test_an_engine_that_costs_more_says_so() -> None:
    assert "more than that fixed number" in said(least=fixed(2))


def test_an_engine_that_falls_short_says_so_too() -> None:
    assert "reaches 99.3%, short of 99.9%, at 70.2 idle VM-hours a day" in said(level=0.999)


def test_without_today_there_is_no_word_of_today() -> None:
    assert "today" not in said(today=None)


def test_patience_is_told_where_there_is_some() -> None:
    assert "93% of 10,000 claims had a VM within 5s" in said(wait=5.0)


# ---- the table


def rows(of: Study) -> list[list[str]]:
    lines = shown(of).splitlines()
    [first] = [number for number, line in enumerate(lines) if line.split()[:1] == ["VMS"]]
    return [line.split() for line in lines[first + 1 : lines.index("", first + 1)] if line.strip()]


def test_each_fixed_number_is_a_line_up_to_the_first_that_misses_nothing() -> None:
    numbers = [row[0] for row in rows(study(engine=None))]
    assert numbers == ["0", "1", "2", "3", "4", "5", "6", "7", "8"]


def test_a_line_has_hit_ratio_idle_hours_and_misses_a_day() -> None:
    assert rows(study())[4][:4] == ["4", "93%", "84.5", "100"]
    assert rows(study())[6][:4] == ["6", "99.4%", "132", "8.6"]


def test_what_is_set_and_what_would_do_are_marked() -> None:
    lines = [" ".join(row) for row in rows(study())]
    assert lines[4].endswith("← today")
    assert lines[6].endswith("← the smallest that meets 99%")
    assert lines[-1].startswith("2 to 7 99.3%")
    assert lines[-1].endswith("← the engine, for 99%")


def test_one_line_may_be_both() -> None:
    assert " ".join(rows(study(today=fixed(6)))[6]).endswith("← today, and the smallest that meets 99%")


def test_today_is_shown_also_beyond_the_first_that_misses_nothing() -> None:
    assert [row[0] for row in rows(study(today=fixed(9), engine=None))][-1] == "9"


def test_a_long_curve_is_thinned_and_what_is_marked_stays() -> None:
    long = tuple(Point(units, units / 400, float(units), 400 - units) for units in range(400))
    shown_units = [point.units for point in table.shown(study(curve=long))]
    assert len(shown_units) < 25
    assert 4 in shown_units


def test_a_narrow_screen_breaks_no_number() -> None:
    text = shown(study(), width=80)
    assert "99.4%" in text
    assert "← the smallest that meets 99%" in text


# ---- the document


def test_the_document_has_every_size_and_each_setting_by_the_hour() -> None:
    document = table.document(study())
    assert document["since"] == "2026-03-02T00:00:00Z"
    assert document["curve"][4] == {"units": 4, "hitRatio": 0.93, "idleHoursPerDay": 84.5, "misses": 700}
    assert len(document["curve"]) == len(CURVE)
    assert set(document["settings"]) == {"today", "engine", "smallest"}
    assert document["settings"]["engine"]["units"] == "2 to 7"
    assert len(document["settings"]["engine"]["missesByHourOfWeek"]) == 168
    assert orjson.loads(orjson.dumps(document)) == document
    assert yaml.safe_load(yaml.safe_dump(document)) == document


def test_what_there_is_not_is_absent() -> None:
    assert set(table.document(study(today=None, engine=None))["settings"]) == {"smallest"}
