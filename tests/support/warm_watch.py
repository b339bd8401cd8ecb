"""How many VMs of a pool could be handed over at each instant, replayed in etcd's order from two watches.

It shares no code with the controller: a VM counts while it is Pooled and stays, and its guest runs, is Ready
and stays. The events of both kinds are put into one order by their resourceVersions, so an instant between
two writes is seen however late it is told.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crds.names import LABEL_CLAIM_UID, LABEL_POOL, LABEL_STATE
from tests.support.vm_watching import VMS, Seen, VMWatch, watching

Json = dict[str, Any]


@dataclass(frozen=True)
class Instant:
    """From this write on (a resourceVersion) so many were ready; so many had been taken or drained before."""

    version: int
    ready: int
    claimed: int
    removed: int


@dataclass
class _World:
    """Pooled VMs and ready guests by name."""

    pool: str
    pooled: set[str] = field(default_factory=set)
    guests: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)

    def see(self, event: Seen) -> None:
        meta = event.object["metadata"]
        name, there = meta["name"], event.type != "DELETED" and "deletionTimestamp" not in meta
        if event.kind != VMS:
            _put(self.guests, name, there=there and event.shown == "Running" and event.ready)
            return
        labels = meta.get("labels", {})
        if labels.get(LABEL_POOL) != self.pool:
            return
        _put(self.pooled, name, there=there and labels.get(LABEL_STATE) == "Pooled")
        if labels.get(LABEL_CLAIM_UID):
            self.claimed.add(name)
        if labels.get(LABEL_STATE) == "Draining":
            self.drained.add(name)


def _put(names: set[str], name: str, *, there: bool) -> None:
    if there:
        names.add(name)
    else:
        names.discard(name)


def replayed(events: Iterable[Seen], pool: str = "pool") -> list[Instant]:
    """What was so after each write, in the order of the writes."""
    world, found = _World(pool), []
    for event in sorted(events, key=lambda each: each.version):
        world.see(event)
        found.append(
            Instant(event.version, len(world.pooled & world.guests), len(world.claimed), len(world.drained))
        )
    return found


@dataclass
class WarmWatch:
    """What the watches have shown so far. `begin` and `lowest` frame the time that is judged."""

    _watch: VMWatch
    _since: int = 0

    def instants(self) -> list[Instant]:
        return replayed(list(self._watch.events))

    def begin(self, version: str) -> None:
        """From this write on: the resourceVersion of what was changed."""
        self._since = int(version)

    def judged(self) -> list[Instant]:
        """The instants since `begin`, the one before it included."""
        every = self.instants()
        before = [each for each in every if each.version <= self._since][-1:]
        return before + [each for each in every if each.version > self._since]

    def lowest(self) -> int:
        """The fewest that were ready at any instant since `begin`."""
        return min(each.ready for each in self.judged())

    def removed(self) -> int:
        """VMs that were drained since `begin`."""
        judged = self.judged()
        return judged[-1].removed - judged[0].removed


@contextmanager
def watching_warm(kubeconfig: Path, namespace: str) -> Iterator[WarmWatch]:
    """Watches the namespace from a thread of its own for as long as the block runs."""
    begun: Future[VMWatch] = Future()
    ended = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def watch() -> None:
        try:
            async with watching(kubeconfig, namespace) as found:
                loops.append(asyncio.get_running_loop())
                begun.set_result(found)
                await ended.wait()
        except BaseException as error:
            if begun.done():
                raise
            begun.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(watch()), name="warm watch")
    thread.start()
    try:
        yield WarmWatch(begun.result(60))
    finally:
        if loops:
            loops[0].call_soon_threadsafe(ended.set)
        thread.join(60)


@pytest.fixture
def warm_watch(kubeconfig: Path, namespace: str) -> Iterator[WarmWatch]:
    """Begins before the test's first VM: what a watch lists at its beginning is not told by events."""
    with watching_warm(kubeconfig, namespace) as watch:
        yield watch
