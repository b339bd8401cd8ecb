"""Files that people bring: when claims arrived, and how long units took to be ready.

A mistake in one is told with the file's name, the line, and what to write instead.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cli.trouble import CouldNotLookError
from crds import durations

MOST_CLAIMS = 2_000_000
"""More are refused: a replay of them would take minutes and gigabytes."""
LONGEST = 366 * 86_400.0
"""Seconds between the first and the last claim. What is longer holds a broken time."""
MOST_LEAD = 86_400.0
"""Seconds that a unit may take to be ready: what is longer is a mistake, most often milliseconds."""

_NOT_SECONDS = 1e11  # epoch seconds reach it in the year 5138, milliseconds did in 1973
_HOW = "write an ISO time like 2026-03-02T08:15:00Z, or seconds since 1970 like 1772439300"


class TraceError(CouldNotLookError):
    """The file can't be used; the sentence says where, why, and what to write."""


def arrivals(path: Path) -> NDArray[np.float64]:
    """When each claim arrived: epoch seconds, ascending, one for each claim.

    The first line names the columns: `time`, and `count` for several claims at one time. Other columns are
    left alone, and the order of the lines does not matter.

    Raises:
        TraceError: a line is not as described, or there is nothing to replay.
        OSError: the file can't be read.
    """
    times: list[float] = []
    counts: list[int] = []
    total = 0
    for line, row in _rows(path, "time"):
        counts.append(_count(path, line, row.get("count")))
        times.append(_time(path, line, row["time"]))
        total += counts[-1]
        if total > MOST_CLAIMS:
            raise TraceError(
                f"{path}:{line}: there are more than {MOST_CLAIMS:,} claims: take a shorter time"
            )
    every = np.sort(np.repeat(np.array(times, dtype=np.float64), np.array(counts, dtype=np.int64)))
    if not len(every):
        raise TraceError(f"{path} holds no claim below its first line")
    if every[-1] - every[0] > LONGEST:
        first, last = (datetime.fromtimestamp(each, UTC).date() for each in (every[0], every[-1]))
        raise TraceError(
            f"{path} reaches from {first} to {last}: take at most a year, or mend the time that is wrong"
        )
    return every


def lead_times(path: Path) -> NDArray[np.float64]:
    """How long units took from their creation to ready, in seconds, one a line under the name `seconds`.

    Numbers of seconds, or lengths of time like `16s` or `1m30s`.

    Raises:
        TraceError: a line is not as described, or there is none.
        OSError: the file can't be read.
    """
    found = np.array([_lead(path, line, row["seconds"]) for line, row in _rows(path, "seconds")])
    if not len(found):
        raise TraceError(f"{path} holds no lead time below its first line")
    return found


def _rows(path: Path, needed: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each line that is not empty, with its number, by the names of the columns that the first line has."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        try:
            names = _names(path, next(lines, []), needed)
            for cells in lines:
                if any(cell.strip() for cell in cells):
                    yield lines.line_num, _row(f"{path}:{lines.line_num}", names, cells)
        except UnicodeDecodeError as error:
            raise TraceError(f"{path} is no text in UTF-8: save it as CSV") from error
        except csv.Error as error:
            raise TraceError(f"{path}:{lines.line_num}: {error}") from error


def _row(where: str, names: list[str], cells: list[str]) -> dict[str, str]:
    """A line's values by name; empty ones where the line is shorter than the first one."""
    if len(cells) > len(names):
        raise TraceError(
            f"{where}: {len(cells)} values under {len(names)} columns ({','.join(names)[:60]}): "
            "separate values by one comma, without separators of thousands"
        )
    return dict.fromkeys(names, "") | {name: cell.strip() for name, cell in zip(names, cells, strict=False)}


def _names(path: Path, cells: list[str], needed: str) -> list[str]:
    names = [cell.strip().lower() for cell in cells]
    if needed not in names:
        found = f"it is {','.join(cells)[:60]!r}" if cells else "the file is empty"
        raise TraceError(f"{path}:1: the first line must name a column {needed}; {found}")
    twice = sorted({name for name in names if name in {"time", "count", "seconds"} and names.count(name) > 1})
    if twice:
        raise TraceError(f"{path}:1: the column {twice[0]} is there twice")
    return names


def _time(path: Path, line: int, text: str) -> float:
    try:
        moment = float(text)
    except ValueError:
        try:
            moment = _utc(datetime.fromisoformat(text)).timestamp()
        except (ValueError, OverflowError):
            raise TraceError(f"{path}:{line}: {text[:40]!r} is no time: {_HOW}") from None
    if not math.isfinite(moment) or moment < 0:
        raise TraceError(f"{path}:{line}: {text[:40]!r} is no time: {_HOW}")
    if moment >= _NOT_SECONDS:
        raise TraceError(f"{path}:{line}: {text[:40]} looks like milliseconds since 1970: divide by 1000")
    return moment


def _utc(moment: datetime) -> datetime:
    """A time without a zone counts as UTC, as everywhere in the API."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _count(path: Path, line: int, text: str | None) -> int:
    if not text:
        return 1
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(MOST_CLAIMS)):
        raise TraceError(f"{path}:{line}: {text[:40]!r} is no number of claims: write 0, 1, 2 and so on")
    return int(text)


def _lead(path: Path, line: int, text: str) -> float:
    try:
        length = float(text)
    except ValueError:
        try:
            length = durations.seconds(text)
        except ValueError:
            raise TraceError(
                f"{path}:{line}: {text[:40]!r} is no lead time: write seconds like 16.4, or a length like 16s"
            ) from None
    if not 0 <= length <= MOST_LEAD:  # also refuses nan
        raise TraceError(
            f"{path}:{line}: a lead time of {text[:40]} is not between 0 and {MOST_LEAD:.0f} seconds"
        )
    return length
