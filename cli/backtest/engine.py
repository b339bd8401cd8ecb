"""What a spec would have aimed at: the controller's own rules, at the times at which it decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from capacity.curve import FEWEST, Curve, build
from capacity.decide import decide
from capacity.decision import Limits, Stock
from capacity.stabilize import Stabilizer
from cli.backtest.ask import Question
from cli.backtest.buffer import Targets
from crds import durations
from crds.warm import LevelMode, ScaleDown, ServiceLevel, WarmCapacity

_STEP = 300.0
"""Seconds between two decisions, at whole multiples; longer where that makes more than _MOST."""
_MOST = 4_000
_UNKNOWN = ("percent", "webhook", "budget")
"""Policies that hang on what nobody records: VMs in use, answers, what stood idle."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would have been aimed at when, by the spec of today and by the service level alone."""

    today: Targets | None
    engine: Targets | None
    notes: tuple[str, ...]


def planned(question: Question) -> Plan:
    """The targets of today's spec, and of the engine; sentences about what is left out of them."""
    curve = build(
        question.past,
        servers=question.limits.max_concurrent_creations,
        wait=question.wanted.wait,
        deadline=question.deadline,
    )
    notes = []
    today = question.today
    if today is not None:
        left = [name for name in _UNKNOWN if getattr(today, name) is not None]
        if left:
            notes.append(
                f"Today's setting is replayed without {' and '.join(left)}: what they go by is not recorded."
            )
            today = today.model_copy(update=dict.fromkeys(left))
    planned_today = _targets(question, today, curve) if today is not None else None
    if curve.claims < FEWEST:
        notes.append(f"The engine says nothing with fewer than {FEWEST} claims.")
        return Plan(planned_today, None, tuple(notes))
    engine = _targets(question, _of_engine(question), curve)
    if engine == planned_today:
        return Plan(planned_today, None, (*notes, "Today's setting is what the engine would do."))
    learned = (
        "The engine is judged on the claims that it learned from: expect a little less of it on new ones."
    )
    return Plan(planned_today, engine, (*notes, learned))


def _of_engine(question: Question) -> WarmCapacity:
    """The service level alone, with nothing else to hold it."""
    wanted = question.wanted
    level = ServiceLevel(
        target=f"{round(wanted.level * 100, 2):g}%",
        max_wait=durations.exact(wanted.wait),
        mode=LevelMode.APPLY,
    )
    slowly = question.today.scale_down if question.today else ScaleDown()
    return WarmCapacity(replicas=0, service_level=level, scale_down=slowly)


def _changes(curve: Curve, since: float, until: float) -> Iterator[float]:
    """When the controller decides without being asked to: in time for another quarter of the week."""
    at = curve.next_change(since)
    while at is not None and at < until:
        yield at
        at = curve.next_change(at)


def _targets(question: Question, spec: WarmCapacity, curve: Curve) -> Targets:
    if not spec.sizes_itself:
        return Targets((question.since,), (spec.replicas,))
    step = max(_STEP, (question.until - question.since) / _MOST)
    first, last = math.floor(question.since / step) + 1, math.ceil(question.until / step)
    times = [question.since, *(number * step for number in range(first, last))]
    if spec.service_level is not None:
        times = sorted({*times, *_changes(curve, question.since, question.until)})
    stabilizer, stock = Stabilizer(), Stock(0, 0, 0)
    limits = Limits(question.limits.max_concurrent_creations, question.limits.max_replicas)
    units = [
        decide(
            spec,
            stock,
            now=now,
            stabilizer=stabilizer,
            limits=limits,
            curve=curve,
            recent=question.history.recent(now),
        ).target
        for now in times
    ]
    return Targets.changes(times, units)
