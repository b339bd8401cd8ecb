"""Whether a figure that should stay flat did. Pure: series in, sentences out; the bounds are data.

A single sample says nothing: work comes and goes, and memory moves in steps. So the medians of the first and
the last third are compared, after a warm-up in which caches fill.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

THRESHOLDS = Path(__file__).with_name("thresholds.toml")
SHORTEST = 90.0  # seconds of a life that can be judged
FEWEST = 12  # samples likewise

Series = Sequence[tuple[float, float]]
"""Times in seconds and values, in order."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a figure may grow; see thresholds.toml."""

    figure: str
    warm_up: float
    growth: float
    slack: float


@dataclass(frozen=True, slots=True)
class Course:
    """How a figure went: the medians of the first and of the last third after the warm-up."""

    first: float
    last: float

    def __str__(self) -> str:
        return f"{self.first:.4g} → {self.last:.4g}"


def bounds(path: Path = THRESHOLDS) -> list[Bound]:
    """As the file says."""
    return [Bound(**each) for each in tomllib.loads(path.read_text())["flat"]]


def course(series: Series, warm_up: float) -> Course | None:
    """None when it is too short to say anything."""
    if len(series) < FEWEST or series[-1][0] - series[0][0] < SHORTEST:
        return None
    begin, end = series[0][0], series[-1][0]
    begin += warm_up * (end - begin)
    third = (end - begin) / 3
    first = [value for at, value in series if begin <= at <= begin + third]
    last = [value for at, value in series if at >= end - third]
    return Course(median(first), median(last)) if first and last else None


def unjudged(leaders: Iterable[Mapping[str, Series]], allowed: Iterable[Bound]) -> str:
    """A sentence when no leader lived long enough for every figure to be judged: then nothing was shown."""
    wanted = list(allowed)
    for figures in leaders:
        if all(course(figures.get(bound.figure, ()), bound.warm_up) for bound in wanted):
            return ""
    return "no leader lived long enough in the calm for its figures to be judged"


def creeping(lives: Mapping[str, Mapping[str, Series]], allowed: Iterable[Bound]) -> list[str]:
    """A sentence for each figure of each life that grew by more than it may."""
    return [
        f"{bound.figure} of {name} grew: {found}"
        for bound in allowed
        for name, figures in lives.items()
        if (found := course(figures.get(bound.figure, ()), bound.warm_up)) is not None
        and found.last > bound.growth * found.first + bound.slack
    ]
