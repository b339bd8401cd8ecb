"""One seed of one trace: trained on the first part, judged on the second, everyone on the same claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.capacity import baselines, buffer, oracle, outcomes
from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.outcomes import Outcome
from benchmarks.capacity.traces import Book, Demand, Trace
from capacity.counts import outstanding, smallest

RULES: dict[str, tuple[baselines.Rule, float]] = {
    outcomes.PERCENT: (baselines.percent_of_in_use, 0.001),
    outcomes.AUTOSCALER: (baselines.horizontal_autoscaler, 5.0),
}
# (side, level) -> the number that a person would have to find.
Numbers = dict[tuple[str, float], float | None]
# Says the order-up-to levels of the judged part for each service level, knowing only what came before.
Steer = Callable[[Demand, Sequence[float]], list[Levels]]


def numbers(book: Book, trace: Trace) -> Numbers:
    """What the baselines are set to, found on the training part of the first seed."""
    demand = book.draw(trace, 0)
    return {
        (side, level): baselines.tune(rule, demand, level, base).number
        for side, (rule, base) in RULES.items()
        for level in book.levels
    }


def judge(book: Book, trace: Trace, seed: int, tuned: Numbers, steer: Steer) -> list[Outcome]:
    """Every side at every level."""
    demand = book.draw(trace, seed)
    engine = steer(demand, book.levels)
    counts = outstanding(demand.judged, demand.judged_leads)
    found = []
    for level, wanted in zip(book.levels, engine, strict=True):
        mine = _outcome(demand, seed, level, outcomes.ENGINE, wanted)
        # Who missed the level is not compared with a static pool that meets it.
        units = smallest(counts, min(level, mine.hit))
        found += [
            mine,
            _outcome(demand, seed, level, outcomes.LESS, wanted.shifted(-1)),
            _outcome(demand, seed, level, outcomes.STATIC, Levels.constant(demand.judged_from, units)),
            _outcome(demand, seed, level, outcomes.ORACLE, oracle.levels(demand, book.lead, level)),
            _outcome(demand, seed, level, outcomes.RATE, baselines.rate_times_boot(demand, book.lead)),
        ]
        found += _baselines(demand, seed, level, tuned)
    return found


def _baselines(demand: Demand, seed: int, level: float, tuned: Numbers) -> Sequence[Outcome]:
    found = []
    for side, (rule, _) in RULES.items():
        number = tuned[side, level]
        if number is not None:
            wanted = rule(demand, demand.judged_from, demand.end, number)
            found.append(_outcome(demand, seed, level, side, wanted))
    return found


def _outcome(demand: Demand, seed: int, level: float, side: str, wanted: Levels) -> Outcome:
    trace, units = demand.trace, wanted.mean(demand.end)
    found = buffer.run(demand.judged, demand.judged_leads, wanted, demand.end, demand.leads)
    days = trace.days[1]
    return Outcome(
        trace=trace.name,
        kind=trace.kind,
        level=level,
        side=side,
        seed=seed,
        claims=found.waits.size,
        hit=found.share(),
        idle=found.idle_hours / days,
        units=units,
        wasted=max(0, found.created - found.waits.size) / days,
    )
