"""The auditor at work: watches everything, judges it in order, and says when all has come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from auditor import cluster
from auditor.connection import Connection
from auditor.events import Event, Kind, Recording, Rule, Violation
from auditor.feed import Source, Stream
from auditor.judge import Judge
from auditor.order import Order

QUIET = 0.5
"""Seconds without an event that count as rest."""
_PACE = 0.3  # seconds between two questions to a silent stream
_PATIENCE = 10.0  # seconds that a watch may lag behind a list before it counts as broken


class Auditor:
    """Holds I1 to I5 over every state that the API server shows while it is open."""

    def __init__(self, connection: Connection, namespace: str | None, recording: Recording | None) -> None:
        self._judge = Judge()
        self._order = Order(Kind)
        self._recording = recording
        self._arrived = asyncio.Event()
        self._last_event = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._streams = [
            Stream(Source(kind, namespace), connection, self._deliver, self._order.reached) for kind in Kind
        ]

    @classmethod
    @asynccontextmanager
    async def watching(
        cls, kubeconfig: Path | None, namespace: str | None = None, *, record: Path | None = None
    ) -> AsyncIterator[Auditor]:
        """Judge everything that happens from here to the end of the block.

        Args:
            kubeconfig: None finds it as kubectl does, or within the cluster.
            namespace: None watches all of them.
            record: a file for the events, one JSON line each.

        Raises:
            auditor.cluster.NoClusterError: there is nothing to watch.
            auditor.connection.Refused: a kind is not served (are the CRDs installed?), or not to us.
        """
        async with (
            Connection.to(cluster.find(kubeconfig)) as connection,
            cls.over(connection, namespace, record=record) as auditor,
        ):
            yield auditor

    @classmethod
    @asynccontextmanager
    async def over(
        cls, connection: Connection, namespace: str | None = None, *, record: Path | None = None
    ) -> AsyncIterator[Auditor]:
        """The same over a connection that somebody else opens and closes."""
        auditor = cls(connection, namespace, Recording(record) if record else None)
        try:
            await auditor._start()
            yield auditor
            auditor.check()
        finally:
            await auditor._stop()

    @property
    def violations(self) -> list[Violation]:
        """All that was found so far; gaps in the watch among them."""
        return list(self._judge.violations)

    @property
    def gaps(self) -> list[Violation]:
        """Where the auditor saw nothing."""
        return [found for found in self._judge.violations if found.rule is Rule.GAP]

    @property
    def seen(self) -> dict[str, int]:
        """How many VMs, claims and pools were ever seen."""
        return self._judge.world.seen

    @property
    def remembered(self) -> dict[str, int]:
        """How many of those are in mind: what is gone for good is forgotten after a while."""
        return self._judge.world.remembered

    @property
    def judged(self) -> int:
        """How many events were judged."""
        return self._judge.seen

    def excuse(self, vm_uid: str, why: str) -> None:
        """Say, before it is done, that a person deletes, labels or adopts this VM."""
        self._judge.excuse(vm_uid, why)

    def check(self) -> None:
        """An auditor that broke must not look like one that found nothing.

        Raises:
            Exception: whatever it broke by; OSError where it can't record.
        """
        for task in self._tasks:
            if task.done():
                task.result()

    async def settled(self, timeout: float = 30.0) -> list[Violation]:  # noqa: ASYNC109 - a bound on rest, not on a call
        """Wait for rest, then also judge what must hold at rest; all violations so far.

        Rest is 0.5 s without an event, everything seen that a list shows, and nothing left to repair. What is
        still wrong after `timeout` seconds is a violation; so is never coming to rest.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            quiet = await self._quiet(deadline)
            complete = await asyncio.gather(*(stream.verify(_PATIENCE) for stream in self._streams))
            self._judge_ready()
            self.check()
            found = self._judge.at_rest()
            if quiet and all(complete) and not self._order.lagging and not found:
                break
            if loop.time() >= deadline:
                self._judge.violations += found or [self._restless(timeout)]
                break
            await asyncio.sleep(_PACE)
        return self.violations

    async def _start(self) -> None:
        for stream in self._streams:
            await stream.start()
        self._tasks += [asyncio.create_task(stream.run()) for stream in self._streams]
        self._tasks.append(asyncio.create_task(self._run()))

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.stop()

    async def _quiet(self, deadline: float) -> bool:
        loop = asyncio.get_running_loop()
        while (rest := self._last_event + QUIET - loop.time()) > 0:
            if loop.time() + rest > deadline:
                await asyncio.sleep(max(0.0, deadline - loop.time()))
                return False
            await asyncio.sleep(rest)
        return True

    def _restless(self, timeout: float) -> Violation:
        down = [
            f"the watch of {stream.source.kind} is down: {stream.trouble}"
            for stream in self._streams
            if stream.trouble
        ]
        message = f"did not come to rest within {timeout:g} s: {'; '.join(down) or 'events went on and on'}"
        return Violation(Rule.REST, self._judge.rv, "cluster", message)

    def _deliver(self, event: Event) -> None:
        self._order.push(event)
        self._last_event = asyncio.get_running_loop().time()
        self._arrived.set()

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            self._judge_ready()
            while lagging := self._order.lagging:
                await asyncio.sleep(_PACE)
                self._judge_ready()
                behind = [stream for stream in self._streams if stream.source.kind in lagging]
                await asyncio.gather(*(stream.confirm() for stream in behind))
                self._judge_ready()

    def _judge_ready(self) -> None:
        ready = self._order.take()
        for event in ready:
            self._judge.see(event)
        if self._recording is not None and ready:
            self._recording.add(ready)
