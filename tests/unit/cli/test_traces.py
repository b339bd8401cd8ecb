"""Files of claims and of lead times, as people and their exports write them."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import traces
from cli.traces import TraceError

MONDAY = datetime(2026, 3, 2, 8, 15, tzinfo=UTC).timestamp()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "claims.csv"


def arrivals(path: Path, *lines: str, encoding: str = "utf-8") -> list[float]:
    path.write_text("".join(f"{line}\n" for line in lines), encoding=encoding)
    return list(map(float, traces.arrivals(path)))


def refusal(path: Path, *lines: str) -> str:
    with pytest.raises(TraceError) as caught:
        arrivals(path, *lines)
    return str(caught.value)


# ---- times


@pytest.mark.parametrize(
    "written",
    [
        "1772439300",
        "1772439300.0",
        "2026-03-02T08:15:00Z",
        "2026-03-02T08:15:00+00:00",
        "2026-03-02T09:15:00+01:00",
        "2026-03-02 08:15:00",
        "2026-03-02T08:15",
        "20260302T081500Z",
        " 2026-03-02T08:15:00Z ",
        '"2026-03-02T08:15:00Z"',
    ],
)
def test_a_time_may_be_iso_or_epoch_seconds_and_without_zone_it_is_utc(path: Path, written: str) -> None:
    assert arrivals(path, "time", written) == [MONDAY]


def test_parts_of_a_second_are_kept(path: Path) -> None:
    assert arrivals(path, "time", "1772439300.25", "2026-03-02T08:15:00.500Z") == [
        MONDAY + 0.25,
        MONDAY + 0.5,
    ]


def test_the_order_of_the_lines_does_not_matter(path: Path) -> None:
    assert arrivals(path, "time", "30", "10", "20") == [10, 20, 30]


def test_a_count_is_so_many_claims_at_one_time(path: Path) -> None:
    assert arrivals(path, "time,count", "10,3", "20,1") == [10, 10, 10, 20]


def test_no_count_is_one_claim_and_a_count_of_none_is_none(path: Path) -> None:
    assert arrivals(path, "time,count", "10,", "20", "30,0") == [10, 20]


def test_other_columns_are_left_alone_and_names_may_be_written_large(path: Path) -> None:
    assert arrivals(path, "Job, Count, TIME", "build,2,10", '"a, b",1,20') == [10, 10, 20]


def test_empty_lines_and_a_byte_order_mark_do_no_harm(path: Path) -> None:
    assert arrivals(path, "time", "", "10", "  ", "20", "", encoding="utf-8-sig") == [10, 20]


@given(st.lists(st.tuples(st.integers(0, 10_000_000), st.integers(0, 5)), min_size=1, max_size=50))
def test_what_is_written_is_what_is_read(rows: list[tuple[int, int]]) -> None:
    wanted = sorted(time for time, count in rows for _ in range(count))
    lines = ["time,count", *(f"{time},{count}" for time, count in rows)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "claims.csv"
        if wanted:
            assert arrivals(path, *lines) == wanted
        else:
            assert "no claim" in refusal(path, *lines)


# ---- mistakes


def test_a_file_without_the_column_is_told_what_its_first_line_must_be(path: Path) -> None:
    said = refusal(path, "2026-03-02T08:15:00Z", "2026-03-02T08:16:00Z")
    assert said == f"{path}:1: the first line must name a column time; it is '2026-03-02T08:15:00Z'"


def test_an_empty_file_is_told_the_same(path: Path) -> None:
    assert refusal(path) == f"{path}:1: the first line must name a column time; the file is empty"


def test_a_column_that_is_there_twice_is_refused(path: Path) -> None:
    assert refusal(path, "time,time", "1,2") == f"{path}:1: the column time is there twice"


@pytest.mark.parametrize("written", ["yesterday", "2026-13-01T00:00:00Z", "-5", "nan", "inf", "1e999", ""])
def test_what_is_no_time_is_named_with_its_line_and_what_to_write(path: Path, written: str) -> None:
    said = refusal(path, "time,count", "10,1", f"{written},1")
    assert said.startswith(f"{path}:3: {written!r} is no time: write an ISO time like 2026-03-02T08:15:00Z")


def test_a_line_number_counts_empty_lines_and_lines_within_quotes(path: Path) -> None:
    assert f"{path}:5:" in refusal(path, "time,job", "", '10,"one', 'two"', "soon,x")


def test_milliseconds_are_taken_for_what_they_are(path: Path) -> None:
    said = refusal(path, "time", "1772439300000")
    assert said == f"{path}:2: 1772439300000 looks like milliseconds since 1970: divide by 1000"


@pytest.mark.parametrize("written", ["-1", "1.5", "many", "²", "99999999999999999999"])
def test_what_is_no_number_of_claims_is_named(path: Path, written: str) -> None:
    assert f"{path}:2: {written!r} is no number of claims" in refusal(path, "time,count", f"10,{written}")


def test_more_values_than_columns_are_refused_and_not_guessed_at(path: Path) -> None:
    said = refusal(path, "time,count", "10,1,000")
    assert said.startswith(f"{path}:2: 3 values under 2 columns (time,count)")


def test_an_open_quote_is_told_with_its_line(path: Path) -> None:
    assert refusal(path, "time,job", '10,"never closed').startswith(f"{path}:")


def test_a_file_without_claims_has_nothing_to_replay(path: Path) -> None:
    assert refusal(path, "time") == f"{path} holds no claim below its first line"


def test_more_claims_than_can_be_replayed_are_refused_before_they_fill_the_memory(path: Path) -> None:
    said = refusal(path, "time,count", "1,1", "10,2000000")
    assert said == f"{path}:3: there are more than 2,000,000 claims: take a shorter time"


def test_one_time_that_is_years_away_is_a_mistake(path: Path) -> None:
    said = refusal(path, "time", "1772439300", "1872439300")
    assert "reaches from 2026-03-02 to 2029-05-02: take at most a year" in said


def test_what_is_no_text_is_told_to_be_saved_as_csv(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04\xff\xfe\x00")
    with pytest.raises(TraceError, match="is no text in UTF-8: save it as CSV"):
        traces.arrivals(path)


def test_a_file_that_is_not_there_is_an_error_of_the_system(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        traces.arrivals(path)


# ---- lead times


def leads(path: Path, *lines: str) -> list[float]:
    path.write_text("\n".join(lines), encoding="utf-8")
    return list(map(float, traces.lead_times(path)))


def test_lead_times_are_seconds_or_lengths_of_time(path: Path) -> None:
    assert leads(path, "seconds", "16.4", "27", "1m30s", "500ms") == [16.4, 27, 90, 0.5]


@pytest.mark.parametrize("written", ["soon", "", "1 minute"])
def test_what_is_no_lead_time_is_named(path: Path, written: str) -> None:
    with pytest.raises(TraceError, match=f":3: {written!r} is no lead time: write seconds like 16.4"):
        leads(path, "seconds,vm", "16,a", f"{written},b")


@pytest.mark.parametrize("written", ["-1", "nan", "inf", "100000", "16000000"])
def test_a_lead_time_of_days_or_of_less_than_nothing_is_a_mistake(path: Path, written: str) -> None:
    with pytest.raises(TraceError, match=f":2: a lead time of {written} is not between 0 and 86400 seconds"):
        leads(path, "seconds", written)


def test_a_file_without_lead_times_is_refused(path: Path) -> None:
    with pytest.raises(TraceError, match="holds no lead time"):
        leads(path, "seconds")


def test_a_hundred_thousand_lines_are_read_quickly(path: Path) -> None:
    times = np.arange(100_000) + 1_772_439_300
    lines = ["time", *map(str, times.tolist())]
    assert len(arrivals(path, *lines)) == 100_000
