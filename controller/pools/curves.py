"""Has one pool's curve drawn from its history: beside the event loop, one at a time, now and then.

It must never hold up a pass, nor draw a curve that nobody asks for.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from capacity.curve import Curve, build
from capacity.history import Past
from controller.claims.desk import Desk
from controller.metrics import CURVE_SECONDS
from controller.pools.demand import Demand
from crds.durations import seconds
from crds.pool import VirtualMachinePool
from crds.warm import LONGEST_WINDOW


@dataclass(frozen=True, slots=True)
class Terms:
    """What it is drawn for: patience, window, deadline (seconds), VMs that boot at once, template."""

    wait: float
    window: float
    deadline: float
    servers: int
    revision: str


class Curves:
    """`curve` is the newest, None before the first; `due` when the next is drawn (epoch seconds)."""

    def __init__(
        self, desk: Desk, now: Callable[[], float], interval: float, wake: Callable[[], None]
    ) -> None:
        self.curve: Curve | None = None
        self.due = 0.0
        self._desk = desk
        self._now = now
        self._interval = interval
        self._wake = wake
        self._terms: Terms | None = None
        self._drawing: asyncio.Task[object] | None = None

    def look(self, pool: VirtualMachinePool, demand: Demand, revision: str) -> asyncio.Task[object] | None:
        """Begin to draw it if it is time to, or if other terms are asked for than it was drawn with.

        The task that draws it, if it is being drawn.
        """
        spec, limits = pool.spec.warm, pool.spec.limits
        if not (spec.sizes_itself or spec.budget is not None) or not demand.read:
            return None
        level = spec.service_level
        terms = Terms(
            wait=seconds(level.max_wait) if level else 0.0,
            window=seconds(level.window if level else LONGEST_WINDOW),
            deadline=seconds(pool.spec.readiness.deadline),
            servers=limits.max_concurrent_creations,
            revision=revision,
        )
        now = self._now()
        if self._drawing is None and (now >= self.due or terms != self._terms):
            self._terms, self.due = terms, now + self._interval * random.uniform(0.9, 1.1)
            demand.settle(now)
            past = demand.history.snapshot(now, revision=revision)
            self._drawing = self._desk.start(self._draw(past, terms))
        return self._drawing

    async def _draw(self, past: Past, terms: Terms) -> None:
        try:
            async with self._desk.thinking:
                began = monotonic()
                self.curve = await asyncio.to_thread(_drawn, past, terms)
                CURVE_SECONDS.observe(monotonic() - began)
        finally:
            self._drawing = None
            self._wake()


def _drawn(past: Past, terms: Terms) -> Curve:
    return build(past, servers=terms.servers, wait=terms.wait, window=terms.window, deadline=terms.deadline)
