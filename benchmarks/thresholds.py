"""The thresholds: read from `thresholds.toml`, judged against rows of figures. Pure but for the reading."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

FILE = Path(__file__).with_name("thresholds.toml")


@dataclass(frozen=True, slots=True)
class Threshold:
    """One limit; figures are named row/side/figure. Exactly one of `at_least` and `at_most` is given."""

    name: str
    figure: str
    against: str = ""
    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None

    @property
    def limit(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"

    def met_by(self, value: float) -> bool:
        """A value that was not measured meets nothing."""
        return self._within(value, self.at_least, self.at_most)

    def aim_met_by(self, value: float) -> bool:
        low, high = (self.aim, None) if self.at_least is not None else (None, self.aim)
        return self._within(value, low, high)

    @staticmethod
    def _within(value: float, low: float | None, high: float | None) -> bool:
        if math.isnan(value):
            return False
        return (low is None or value >= low) and (high is None or value <= high)


@dataclass(frozen=True, slots=True)
class Verdict:
    threshold: Threshold
    value: float

    @property
    def met(self) -> bool:
        return self.threshold.met_by(self.value)


def read(benchmark: str, source: Path = FILE) -> list[Threshold]:
    """The thresholds of one benchmark. Raises ValueError for one without exactly one limit."""
    found = [_threshold(entry) for entry in tomllib.loads(source.read_text()).get(benchmark, [])]
    names = [each.name for each in found]
    if len(set(names)) != len(names):
        raise ValueError(f"{source}: two thresholds of {benchmark} have the same name")
    return found


def _threshold(entry: dict[str, Any]) -> Threshold:
    found = Threshold(**entry)
    if (found.at_least is None) == (found.at_most is None):
        raise ValueError(f"threshold {found.name!r}: give at_least or at_most")
    return found


def judge(thresholds: Iterable[Threshold], rows: Sequence[Row]) -> list[Verdict]:
    figures = {f"{row.name}/{row.side}/{key}": value for row in rows for key, value in row.figures.items()}

    def value(threshold: Threshold) -> float:
        measured = figures.get(threshold.figure, math.nan)
        if not threshold.against:
            return measured
        base = figures.get(threshold.against, math.nan)
        return measured / base if base else math.nan

    return [Verdict(each, value(each)) for each in thresholds]
