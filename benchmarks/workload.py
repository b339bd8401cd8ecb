"""How claims arrive: a closed loop, a Poisson stream, a burst. It knows nothing of what serves them.

Times are of `time.perf_counter`, in seconds: the event loop's own clock has milliseconds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(slots=True)
class Served:
    """One claim's life: its create is sent, it is usable, everything that the client does for it is done."""

    sent: float
    ready: float
    ended: float
    added: float = 0.0  # when the watch showed it: its place in the line


@dataclass(slots=True)
class Load:
    """What came of one stream of claims; `began` to `ended` is the measured time."""

    began: float
    ended: float
    served: list[Served] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    offered: int = 0

    def waits(self) -> list[float]:
        """From create sent to usable, of all that were sent in the measured time, however long it took."""
        return [each.ready - each.sent for each in self.served if self.began <= each.sent <= self.ended]

    def per_second(self) -> float:
        """Claims that were through in the measured time."""
        count = sum(self.began <= each.ended <= self.ended for each in self.served)
        return count / (self.ended - self.began)

    def usable_per_second(self) -> float:
        """Hand-overs, whether or not the release has been answered yet."""
        count = sum(self.began <= each.ready <= self.ended for each in self.served)
        return count / (self.ended - self.began)


Serve = Callable[[], Awaitable[Served]]


def poisson(rate: float, seconds: float, seed: int) -> list[float]:
    """Arrival times from 0 to `seconds` of a Poisson process with `rate` arrivals a second."""
    source = random.Random(seed)
    times: list[float] = []
    at = source.expovariate(rate)
    while at < seconds:
        times.append(at)
        at += source.expovariate(rate)
    return times


async def closed(workers: int, serve: Serve, *, warm_up: float, seconds: float) -> Load:
    """So many clients, each of which asks again as soon as it was served."""
    began = perf_counter() + warm_up
    load = Load(began, began + seconds)

    async def work() -> None:
        while perf_counter() < load.ended:
            await _one(serve, load)

    await asyncio.gather(*(work() for _ in range(workers)))
    return load


async def open_loop(arrivals: Sequence[float], serve: Serve) -> Load:
    """Claims that arrive when they do, whether or not earlier ones were served. Ends when all have ended."""
    began = perf_counter()
    load = Load(began, began)
    tasks = []
    for at in arrivals:
        if (wait := began + at - perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(_one(serve, load)))
    load.ended = perf_counter()
    await asyncio.gather(*tasks)
    return load


async def burst(count: int, serve: Serve, *, at_once: int) -> Load:
    """So many claims as fast as `at_once` requests make them; the measured time ends with the last."""
    began = perf_counter()
    load = Load(began, began)
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await _one(serve, load)

    await asyncio.gather(*(work() for _ in range(min(count, at_once))))
    load.ended = perf_counter()
    return load


async def _one(serve: Serve, load: Load) -> None:
    load.offered += 1
    try:
        load.served.append(await serve())
    except Exception as failure:  # noqa: BLE001 - counted and shown: one refusal must not end the run
        load.failures.append(f"{type(failure).__name__}: {failure}")
