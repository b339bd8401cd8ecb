"""Breadth-first through every interleaving of a world. Each state once; each violation by its shortest way.

A state is the number of what is stored, of what is left of the budgets, and of each controller's view.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.protocol import judge, people, view
from tests.protocol.parts import Parts
from tests.protocol.view import Mode, View
from tests.protocol.worlds import World

State = tuple[int, ...]
"""What is stored, the budgets, then each controller."""


@dataclass
class Report:
    """What an exploration found. `ways` has each violation's shortest trace, as sentences."""

    world: World
    states: int = 0
    transitions: int = 0
    depth: int = 0
    rests: int = 0
    seconds: float = 0.0
    complete: bool = True
    ways: dict[str, list[str]] = field(default_factory=dict)

    @property
    def allowed(self) -> dict[str, str]:
        """Violations that the design allows in this world, with its reason."""
        return {
            found: why
            for found in self.ways
            for prefix, why in self.world.allowed.items()
            if found.startswith(prefix)
        }

    @property
    def broken(self) -> list[str]:
        return [found for found in self.ways if found not in self.allowed]

    @property
    def unmet(self) -> list[str]:
        """Limits that were allowed and not met: a limit that is not met is none."""
        met = tuple(self.ways)
        return [limit for limit in self.world.allowed if not any(each.startswith(limit) for each in met)]


class Transition(NamedTuple):
    """From a state to `after`. `by_itself`: it happens sooner or later, and spends no budget."""

    label: int
    after: State
    bad: tuple[str, ...]
    by_itself: bool


@dataclass
class Graph:
    """The states met, in the order in which they were, and how each was come to first."""

    order: list[State] = field(default_factory=list)
    numbers: dict[State, int] = field(default_factory=dict)
    parents: array[int] = field(default_factory=lambda: array("l"))
    by: array[int] = field(default_factory=lambda: array("l"))
    depths: array[int] = field(default_factory=lambda: array("l"))
    sources: array[int] = field(default_factory=lambda: array("l"))
    targets: array[int] = field(default_factory=lambda: array("l"))
    rests: array[int] = field(default_factory=lambda: array("l"))

    def meet(self, state: State, at: int, label: int) -> int:
        number = self.numbers.get(state)
        if number is None:
            number = self.numbers[state] = len(self.order)
            self.order.append(state)
            self.parents.append(at)
            self.by.append(label)
            self.depths.append(self.depths[at] + 1 if at >= 0 else 0)
        return number

    def way(self, at: int, last: int) -> list[int]:
        """The labels of the shortest way to a state, and of one more transition."""
        labels = [] if last < 0 else [last]
        while self.parents[at] >= 0:
            labels.append(self.by[at])
            at = self.parents[at]
        return labels[::-1]

    def stuck(self) -> int | None:
        """A state from which no rest can be reached."""
        before: dict[int, list[int]] = {}
        for source, target in zip(self.sources, self.targets, strict=True):
            before.setdefault(target, []).append(source)
        can = bytearray(len(self.order))
        ahead = list(self.rests)
        for each in ahead:
            can[each] = 1
        while ahead:
            for each in before.get(ahead.pop(), ()):
                if not can[each]:
                    can[each] = 1
                    ahead.append(each)
        return next((number for number, fine in enumerate(can) if not fine), None)


class Explorer:
    """One world. `run` goes through it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.parts = Parts(world)
        self._graph = Graph()
        self._found: dict[str, tuple[int, int]] = {}

    def run(self, *, states: int = 5_000_000, seconds: float = 600.0, stop_at: str = "") -> Report:
        """Explore all of it, or until a violation that begins with `stop_at` is found."""
        started, graph, report = time.monotonic(), self._graph, Report(self.world)
        graph.meet(self._first(), -1, -1)
        at = 0
        while at < len(graph.order) and report.complete:
            report.transitions += self._expand(at)
            at += 1
            if stop_at and any(each.startswith(stop_at) for each in self._found):
                report.complete = False
            if not at % 4096 and (len(graph.order) > states or time.monotonic() - started > seconds):
                report.complete = False
        if report.complete and (stuck := graph.stuck()) is not None:
            self._found.setdefault("livelock: no rest can be reached from here", (stuck, -1))
        report.states, report.rests, report.depth = len(graph.order), len(graph.rests), graph.depths[-1]
        report.seconds = time.monotonic() - started
        report.ways = {each: self._way(*how) for each, how in self._found.items()}
        return report

    def _expand(self, at: int) -> int:
        """Look at one state: how many transitions there are from it."""
        graph, found = self._graph, self._found
        state, count, resting = graph.order[at], 0, True
        for label, after, bad, by_itself in self._successors(state):
            count += 1
            number = graph.meet(after, at, label)
            if by_itself and number != at:
                resting = False
                graph.sources.append(at)
                graph.targets.append(number)
            for each in bad:
                found.setdefault(each, (at, label))
        if resting:
            graph.rests.append(at)
            for each in judge.at_rest(self.world, self.parts.servers[state[0]]):
                found.setdefault(each, (at, -1))
        return count

    def _way(self, at: int, last: int) -> list[str]:
        return [self.parts.labels[each] for each in self._graph.way(at, last)]

    def _first(self) -> State:
        parts, server = self.parts, people.beginning(self.world)
        views = [View() for _ in range(self.world.controllers)]
        views[0] = view.listed_claims(view.listed_vms(views[0], server), server)
        if self.world.unseen:
            views[1] = view.yet_to_see(views[0], self.world.vms - 1)
        numbers = (parts.views.number(each) for each in views)
        return parts.servers.number(server), parts.lefts.number(self.world.left()), *numbers

    def _successors(self, state: State) -> Iterator[Transition]:
        server, left, *views = state
        parts = self.parts
        for step in parts.others(server):
            spent = parts.spend(left, step.cost)
            if spent >= 0:
                heard = [parts.hear(each, step.events) for each in views]
                yield Transition(step.label, (step.server, spent, *heard), step.bad, step.cost < 0)
        modes = [parts.views[each].mode for each in views]
        for number, mine in enumerate(views):
            newer = Mode.LEADING in modes[number + 1 :]
            for step in parts.mine(server, mine, number, newer=newer):
                spent = parts.spend(left, step.cost)
                if spent >= 0:
                    heard = [parts.hear(each, step.events) for each in views]
                    heard[number] = step.view
                    yield Transition(step.label, (step.server, spent, *heard), step.bad, step.cost < 0)


def explored(world: World) -> Report:
    """All of it, however long it takes; for a process of its own."""
    return Explorer(world).run(seconds=1800.0, states=20_000_000)
