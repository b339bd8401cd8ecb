"""Lanes at work side by side: each takes runs where most are waiting, until none is left.

A lane in which something went wrong is given up with all that stands in it: the next run begins clean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Self

from tests.faults.lane import FaultError, Lane
from tests.faults.plan import Exploration
from tests.faults.runs import Report, Run, perform, prepare
from tests.faults.scenarios import SCENARIOS
from tests.trials.stage import Stage

_IDLE = 0.2


@dataclass
class Company:
    """`lanes` at once on this stage; `say` is told of each report."""

    stage: Stage
    lanes: int
    say: Callable[[Report], None] = lambda _: None
    reports: list[Report] = field(default_factory=list)
    _number: int = 0

    async def perform(self, runs: Iterable[Run]) -> list[Report]:
        """These runs and no others."""
        by_scenario: dict[str, list[Run]] = {}
        for run in runs:
            by_scenario.setdefault(run.scenario, []).append(run)
        waiting = sorted(by_scenario.values(), key=len)

        async def work() -> None:
            async with _Place(self.stage) as place:
                while waiting:
                    # Another lane joins a long one only when nothing else is left.
                    mine = waiting[0] if len(waiting) < self.lanes else waiting.pop()
                    while mine:
                        self._done(await self._one(place, mine.pop(0)))
                    if mine in waiting:
                        waiting.remove(mine)

        await asyncio.gather(*(work() for _ in range(min(self.lanes, sum(map(len, waiting))))))
        return self.reports

    async def explore(self, explorations: Iterable[Exploration]) -> list[Report]:
        """Everything that these find to do."""
        left = list(explorations)

        async def work() -> None:
            async with _Place(self.stage) as place:
                mine = None
                while not all(each.idle for each in left):
                    mine = _choose(left, mine)
                    run = mine.take() if mine else None
                    if mine is None or run is None:
                        await asyncio.sleep(_IDLE)
                        continue
                    report = await self._one(place, run)
                    mine.learn(report)
                    self._done(report)

        await asyncio.gather(*(work() for _ in range(self.lanes)))
        return self.reports

    async def _one(self, place: _Place, run: Run) -> Report:
        self._number += 1
        return await place.perform(run, self._number)

    def _done(self, report: Report) -> None:
        self.reports.append(report)
        self.say(report)


def _choose(left: list[Exploration], mine: Exploration | None) -> Exploration | None:
    """The one it is at, as long as it has something; else where most waits for few."""
    if mine is not None and mine.pending:
        return mine
    return max(
        (each for each in left if each.pending),
        key=lambda each: each.pending / (1 + each.under_way),
        default=None,
    )


class _Place:
    """A lane that is opened anew when something went wrong in it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._stack = AsyncExitStack()
        self._lane: Lane | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def perform(self, run: Run, number: int) -> Report:
        scenario = SCENARIOS[run.scenario]
        try:
            lane = await self._ready(scenario.name)
        except AssertionError as error:
            await self._give_up()
            return Report(run, (), {}, {}, {}, 0.0, 0.0, failure=f"before the run: {error}")
        report = await perform(lane, scenario, run, number)
        if report.failure:
            await self._give_up()
        return report

    async def _ready(self, scenario: str) -> Lane:
        if self._lane is None:
            self._lane = await self._stack.enter_async_context(Lane.open(self._stage))
        try:
            await prepare(self._lane, SCENARIOS[scenario])
        except AssertionError:
            await self._give_up()
            raise
        return self._lane

    async def _give_up(self) -> None:
        self._lane = None
        with suppress(FaultError):
            await self._stack.aclose()
        self._stack = AsyncExitStack()
