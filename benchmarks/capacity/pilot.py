"""The real engine at the controls: it is told what a controller would tell it, and says the level.

It is told of no rate and no law of lead times. All levels share one history and one curve, since orders are
placed at arrival, whatever the buffer holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.capacity.buffer import Levels
from benchmarks.capacity.storms import Pilot, Tale
from benchmarks.capacity.traces import Demand, Floats
from capacity.curve import Curve, build
from capacity.decide import decide
from capacity.decision import Decision, Limits, Stock
from capacity.history import History
from capacity.stabilize import Stabilizer
from crds.ratios import fraction
from crds.warm import LevelMode, ServiceLevel, WarmCapacity

UNBOUNDED = 100_000  # servers, where creations are not what is looked at
_EVERY = 10
_LEADS_TOLD = 4_000  # of those that are told at once
_NO_STOCK = Stock(ready=0, in_flight=0, in_use=0)  # a service level does not look at what there is


@dataclass(slots=True)
class Memory:
    """A history, fed as a controller feeds it, and the curve that was built of it last."""

    start: float
    servers: int = UNBOUNDED
    history: History = field(init=False)
    curve: Curve | None = None

    def __post_init__(self) -> None:
        self.history = History(self.start)

    def arrive(self, arrivals: Floats) -> None:
        """Claims in the order of their coming."""
        seconds, units = np.unique(arrivals.astype(np.int64), return_counts=True)
        for at, count in zip(seconds.tolist(), units.tolist(), strict=True):
            self.history.arrive(at, count)

    def booted(self, leads: Floats) -> None:
        """Of a law that stays the same a part of the lead times is told: the sketch believes the newest."""
        for lead in leads[-_LEADS_TOLD:].tolist():
            self.history.lead(lead)

    def edge(self, now: float) -> float:
        """When the profile changes next."""
        assert self.curve is not None
        edge = self.curve.estimate(0.5, now).changes_at
        return math.inf if edge is None else edge

    def refresh(self, now: float) -> Curve:
        self.history.roll(now)
        self.curve = build(self.history.snapshot(now), servers=self.servers)
        return self.curve


@dataclass(slots=True)
class Controls:
    """One service level: its spec and what is remembered of it between decisions."""

    spec: WarmCapacity
    limits: Limits
    stabilizer: Stabilizer = field(default_factory=Stabilizer)

    @classmethod
    def of(cls, level: float, servers: int) -> Controls:
        wanted = ServiceLevel(target=percent(level), mode=LevelMode.APPLY)
        return cls(WarmCapacity(replicas=0, service_level=wanted), Limits(servers=servers))

    def decide(self, now: float, memory: Memory) -> Decision:
        return decide(
            self.spec,
            _NO_STOCK,
            now=now,
            stabilizer=self.stabilizer,
            limits=self.limits,
            curve=memory.curve,
            recent=memory.history.recent(now),
        )


def percent(level: float) -> str:
    """A level as a spec has it: `99.9%`."""
    written = f"{level * 100:.10g}%"
    assert abs(float(fraction(written)) - level) < 1e-12
    return written


def levels(demand: Demand, wanted: Sequence[float]) -> list[Levels]:
    """The engine's order-up-to levels over the judged part, for each service level.

    It decides every `trace.every` seconds, and where the profile changes. (A controller looks every half
    minute; two traces are decided as often as that, to show that it makes no difference.) It goes on learning
    while it is judged: each decision knows what came before it.
    """
    memory = Memory(demand.start)
    first = demand.first_judged
    memory.arrive(demand.arrivals[:first])
    # In the order in which units become ready: of the newest orders only the quick ones are known.
    ready = demand.arrivals + demand.leads
    order = np.argsort(ready, kind="stable")
    ready, leads = ready[order], demand.leads[order]
    told = int(np.searchsorted(ready, demand.judged_from))
    memory.booted(leads[:told])
    controls = [Controls.of(level, UNBOUNDED) for level in wanted]
    decided: list[list[tuple[float, int]]] = [[] for _ in controls]
    now, tick, fresh = demand.judged_from, demand.judged_from, -math.inf
    while now < demand.end:
        cut = int(np.searchsorted(demand.arrivals, now))
        memory.arrive(demand.arrivals[first:cut])
        made = int(np.searchsorted(ready, now))
        memory.booted(leads[told:made:_EVERY])
        first, told = cut, made
        if now >= fresh + demand.trace.refresh:
            memory.refresh(now)
            fresh = now
        for each, mine in zip(controls, decided, strict=True):
            mine.append((now, each.decide(now, memory).target))
        tick = tick + demand.trace.every if now >= tick else tick
        now = min(tick, memory.edge(now))
    return [_levels(mine) for mine in decided]


def _levels(decided: Sequence[tuple[float, int]]) -> Levels:
    at, units = zip(*decided, strict=True)
    return Levels.sampled(np.array(at), np.array(units, dtype=np.int64))


@dataclass(slots=True)
class Board:
    """The engine in a storm: curves at most every `refresh` seconds, lead times as units become ready."""

    tale: Tale
    level: float
    refresh: float
    memory: Memory = field(init=False)
    controls: Controls = field(init=False)
    fresh: float = -np.inf
    told_of_the_gap: bool = False

    def __post_init__(self) -> None:
        tale = self.tale
        self.memory = Memory(tale.start, tale.storm.servers)
        self.controls = Controls.of(self.level, tale.storm.servers)
        known = tale.arrivals[tale.arrivals < tale.watched_from]
        self.memory.arrive(known)
        random = np.random.default_rng([tale.seed, 8])
        self.memory.booted(tale.lead.draw(random, known.size))

    def steer(self, now: float, arrivals: Floats, made: Sequence[tuple[float, float]]) -> int:
        self.memory.arrive(arrivals)
        for begun, ready in made:
            if not self._troubled(begun, ready):
                self.memory.history.lead(ready - begun)
        if self.tale.storm.outage and now >= self.tale.over and not self.told_of_the_gap:
            self.memory.history.gap(self.tale.begin, self.tale.over)
            self.told_of_the_gap = True
        if now >= self.fresh + self.refresh:
            self.memory.refresh(now)
            self.fresh = now
        return self.controls.decide(now, self.memory).target

    def _troubled(self, begun: float, ready: float) -> bool:
        """Whether the outage is in this lead time: such ones are left out, as the controller does."""
        return bool(self.tale.storm.outage) and begun < self.tale.over and ready > self.tale.begin


def board(tale: Tale, level: float, refresh: float) -> Pilot:
    return Board(tale, level, refresh)
