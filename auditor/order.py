"""One order out of several watches.

All kinds live in one etcd, so their resourceVersions are one sequence; but each watch is delivered on its
own, and only in its own order. An event is let go once every watch is known to have delivered all up to it.
Nothing here waits or reads a clock: who feeds it says how far each watch is.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count

from auditor.events import Event, Kind


class Order:
    """Merges the streams of `kinds` by resourceVersion."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._progress = dict.fromkeys(kinds, 0)
        self._waiting: list[tuple[int, int, Event]] = []
        self._arrival = count()

    def push(self, event: Event) -> None:
        """Take an event; its stream has delivered everything up to it."""
        heapq.heappush(self._waiting, (event.rv, next(self._arrival), event))
        self.reached(event.kind, event.rv)

    def reached(self, kind: Kind, rv: int) -> None:
        """The stream of `kind` has delivered everything up to `rv`: a bookmark, or something as good."""
        self._progress[kind] = max(self._progress[kind], rv)

    @property
    def lagging(self) -> list[Kind]:
        """The streams that the next event waits for."""
        if not self._waiting:
            return []
        return [kind for kind, rv in self._progress.items() if rv < self._waiting[0][0]]

    def take(self) -> list[Event]:
        """The events whose turn has come, oldest first."""
        safe, taken = min(self._progress.values()), []
        while self._waiting and self._waiting[0][0] <= safe:
            taken.append(heapq.heappop(self._waiting)[2])
        return taken
