"""Thresholds as data: rules in `thresholds.toml`, written out for each row that they match."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.capacity.outcomes import ENGINE, row_name
from benchmarks.capacity.storms import Storm
from benchmarks.capacity.traces import Trace
from benchmarks.thresholds import Threshold

FILE = Path(__file__).with_name("thresholds.toml")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; what it does not name it does not ask for."""

    name: str
    figure: str
    levels: tuple[float, ...] = ()
    kinds: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    storms: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"rule {self.name!r}: give at_least or at_most")

    def matches(self, trace: Trace) -> bool:
        return trace.name in self.traces or trace.kind in self.kinds

    def at(self, row: str) -> Threshold:
        """This rule for one row of the engine's."""
        figure = f"{row}/{ENGINE}/{self.figure}"
        return Threshold(f"{row}: {self.name}", figure, at_least=self.at_least, at_most=self.at_most)


def read(group: str, source: Path = FILE) -> list[Rule]:
    """Raises ValueError for a rule without exactly one limit, TypeError for a key that no rule has."""
    return [_rule(entry) for entry in tomllib.loads(source.read_text()).get(group, [])]


def _rule(entry: dict[str, Any]) -> Rule:
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return Rule(**given)


def for_traces(rules: Iterable[Rule], traces: Iterable[Trace]) -> list[Threshold]:
    known = list(traces)
    return [
        rule.at(row_name(trace.name, level))
        for rule in rules
        for trace in known
        if rule.matches(trace)
        for level in rule.levels
    ]


def for_storms(rules: Iterable[Rule], storms: Iterable[Storm]) -> list[Threshold]:
    known = list(storms)
    return [
        rule.at(row_name(storm.name, level))
        for rule in rules
        for storm in known
        if storm.name in rule.storms
        for level in rule.levels
    ]


def for_rows(rules: Iterable[Rule], names: Iterable[str]) -> list[Threshold]:
    """Each rule for each of these rows, whatever their level."""
    known = list(names)
    return [rule.at(name) for rule in rules for name in known]
