"""One timer for all that time alone will change: the earliest rings, nothing polls."""

import asyncio
import heapq
from collections.abc import Callable

SHORTEST = 0.01  # s: rings for the same instant come together
_SAME = 0.001  # s: a timer this much later is as good
_SLACK = 64  # times of keys that were forgotten, before they are swept out


class Alarm:
    """Keys to look at at given times. `now` and all times are epoch seconds of the API server's clock."""

    def __init__(self, now: Callable[[], float], rings: Callable[[list[str]], None]) -> None:
        self._now = now
        self._rings = rings
        self._due: list[tuple[float, str]] = []
        self._set: dict[str, set[float]] = {}
        self._times = 0  # in all of those: counted, as nobody is forgotten by a walk over everybody
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Times that are set."""
        return self._times

    def set(self, key: str, at: float) -> None:
        """Have this key looked at then, too; other times that were set for it stand."""
        times = self._set.setdefault(key, set())
        if at not in times:
            times.add(at)
            self._times += 1
            heapq.heappush(self._due, (at, key))

    def forget(self, key: str) -> None:
        """Nobody wants to look at it any more, however far off its times are."""
        self._times -= len(self._set.pop(key, ()))
        if len(self._due) > 2 * self._times + _SLACK:
            self._due = [(at, each) for each, times in self._set.items() for at in times]
            heapq.heapify(self._due)

    def arm(self, other: float | None) -> None:
        """Ring at the earliest of the keys' times and this one, which somebody else keeps.

        The timer is compared by the loop's clock: the server's may have been set since it was started.
        """
        times = [at for at in (other, self._due[0][0] if self._due else None) if at is not None]
        if not times:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(SHORTEST, min(times) - self._now())
        if self._timer is not None:
            if self._timer.when() <= when + _SAME:
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._now()
        keys = []
        while self._due and self._due[0][0] <= now:
            at, key = heapq.heappop(self._due)
            if at in (times := self._set.get(key, set())):
                times.discard(at)
                self._times -= 1
                keys.append(key)
            if not times:
                self._set.pop(key, None)
        self._rings(keys)
