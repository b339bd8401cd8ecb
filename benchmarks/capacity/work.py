"""The whole proof as jobs for a few processes. Each job is a function of what it is given."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.capacity import (
    cost,
    outcomes,
    pilot,
    rules,
    storms,
    study,
    textbook,
    tiers,
    traces,
    weather,
)
from benchmarks.capacity.outcomes import Outcome
from benchmarks.capacity.report import Table
from benchmarks.capacity.storms import Chart, Tale, Weather
from benchmarks.capacity.textbook import Check, Sizes
from benchmarks.capacity.tiers import Case
from benchmarks.capacity.traces import Book
from benchmarks.rows import Row
from benchmarks.thresholds import Verdict, judge

Log = Callable[[str], None]
_QUICK_DAYS = {"flat": (2, 1), "weekly": (14, 7), "random": (14, 7)}
_QUICK_TRACES = ("poisson-5", "office-hours")
_QUICK_STORMS = ("demand-doubles",)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run."""

    book: Book
    weather: Weather
    loads: tuple[float, ...] = textbook.LOADS
    claims: int = 400_000
    cases: tuple[Case, ...] = tiers.CASES
    cost: bool = True
    workers: int = 2


@dataclass(slots=True)
class Found:
    """What came of it."""

    outcomes: list[Outcome] = field(default_factory=list)
    storms: list[weather.Report] = field(default_factory=list)
    charts: list[tuple[Tale, float, Chart]] = field(default_factory=list)
    checks: list[tuple[Sizes, list[Check]]] = field(default_factory=list)
    tiers: list[Row] = field(default_factory=list)
    cost: list[Row] = field(default_factory=list)


def plan(*, quick: bool = False, only: Sequence[str] = (), workers: int = 2) -> Plan:
    """Everything, a smoke test of it, or traces and storms by name. Raises KeyError for an unknown name."""
    book, sky = traces.read(), storms.read()
    if quick:
        short = tuple(
            replace(book.only(name), days=_QUICK_DAYS[book.only(name).kind], every=900.0)
            for name in _QUICK_TRACES
        )
        few = tuple(replace(each, days=1, hours=1.5) for each in sky.storms if each.name in _QUICK_STORMS)
        book = replace(book, seeds=2, levels=(0.9, 0.99), traces=short)
        sky = replace(sky, seeds=1, levels=(0.99,), every=30.0, storms=few)
        cases = tiers.CASES[:1]
        return Plan(book, sky, (1.0, 10.0), claims=50_000, cases=cases, cost=False, workers=workers)
    if not only:
        return Plan(book, sky, workers=workers)
    known = [each.name for each in book.traces]
    known += [each.name for each in sky.storms]
    if unknown := [name for name in only if name not in known]:
        raise KeyError(f"no trace or storm {', '.join(unknown)}; there are {', '.join(known)}")
    book = replace(book, traces=tuple(each for each in book.traces if each.name in only))
    sky = replace(sky, storms=tuple(each for each in sky.storms if each.name in only))
    return Plan(book, sky, loads=(), cases=(), cost=False, workers=workers)


def run(work: Plan, log: Log) -> Found:
    found = Found()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(work.workers, mp_context=context) as pool:
        tuned = {pool.submit(study.numbers, work.book, trace): trace for trace in work.book.traces}
        jobs: dict[Future[Any], str] = {}
        for storm in work.weather.storms:
            for seed in range(work.weather.seeds):
                jobs[pool.submit(_storm, work, storm, seed)] = f"{storm.name}, seed {seed}"
        for load in work.loads:
            jobs[pool.submit(_textbook, work, load)] = f"theory at {load:g}"
        for case in work.cases:
            jobs[pool.submit(tiers.judge, case, work.book)] = f"tiers: {case.name}"
        for done in as_completed(tuned):
            trace, numbers = tuned[done], done.result()
            for seed in range(work.book.seeds):
                jobs[pool.submit(_trace, work.book, trace, seed, numbers)] = f"{trace.name}, seed {seed}"
        for count, each in enumerate(as_completed(jobs), 1):
            _take(found, each.result())
            log(f"{count} of {len(jobs)}: {jobs[each]}")
    if work.cost:  # alone, when nothing else runs
        found.cost.append(cost.measure(work.book))
    found.outcomes.sort(key=lambda each: _order(work.book, each))
    found.storms.sort(key=lambda each: [storm.name for storm in work.weather.storms].index(_storm_of(each)))
    found.charts.sort(key=lambda each: (each[0].storm.name, each[0].seed, each[1]))
    found.tiers.sort(key=lambda each: [case.name for case in work.cases].index(each.name))
    found.checks.sort(key=lambda each: each[0].load)
    return found


def _order(book: Book, each: Outcome) -> tuple[int, float, int, int]:
    trace = [trace.name for trace in book.traces].index(each.trace)
    return trace, each.level, outcomes.SIDES.index(each.side), each.seed


def _storm_of(each: weather.Report) -> str:
    return each.row.rsplit(" ", 2)[0]


def _trace(book: Book, trace: traces.Trace, seed: int, numbers: study.Numbers) -> list[Outcome]:
    return study.judge(book, trace, seed, numbers, pilot.levels)


def _storm(
    work: Plan, storm: storms.Storm, seed: int
) -> tuple[list[weather.Report], list[tuple[Tale, float, Chart]]]:
    book, sky = work.book, work.weather
    found, charts = weather.weather_a_storm(storm, sky, book.lead, book.start, seed, pilot.board)
    return found, charts if not seed else []


def _textbook(work: Plan, load: float) -> tuple[Sizes, list[Check]]:
    return textbook.check(load, work.book.lead, claims=work.claims)


def _take(found: Found, result: Any) -> None:
    match result:
        case Row():
            found.tiers.append(result)
        case [Outcome(), *_]:
            found.outcomes += result
        case (Sizes(), _):
            found.checks.append(result)
        case (reports, charts):
            found.storms += reports
            found.charts += charts


def judged(work: Plan, found: Found) -> tuple[list[Row], list[Verdict], list[Table]]:
    """Rows, verdicts by the thresholds, and the tables that are no rows of traces."""
    stormy, theory = weather.summed(found.storms), textbook.rows(found.checks)
    rows = [*outcomes.summed(found.outcomes), *stormy, *theory, *found.tiers, *found.cost]
    limits = [
        *rules.for_traces(rules.read("trace"), work.book.traces),
        *rules.for_storms(rules.read("storm"), work.weather.storms),
        *rules.for_rows(rules.read("theory"), [row.name for row in theory]),
        *rules.for_rows(rules.read("tiers"), [row.name for row in found.tiers]),
        *rules.for_rows(rules.read("cost"), [row.name for row in found.cost]),
    ]
    tables = [
        *([weather.table(stormy)] if stormy else []),
        *([textbook.table(found.checks)] if found.checks else []),
        *([tiers.table(found.tiers)] if found.tiers else []),
        *(cost.table(row) for row in found.cost),
    ]
    return rows, judge(limits, rows), tables
