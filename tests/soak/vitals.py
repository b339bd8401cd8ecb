"""What controllers hold over time, as the operating system and their own metrics say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import psutil

from tests.soak.court import Court, Seat
from tests.trials.stage import scrape

EVERY = 3.0  # seconds
_TABLES = "bullpen_held_entries{"
_TASKS = "bullpen_tasks "


@dataclass
class Life:
    """The samples of one controller by figure, and how long it led."""

    figures: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    led: int = 0

    def add(self, at: float, sample: dict[str, float], *, leads: bool) -> None:
        self.led += leads
        for figure, value in sample.items():
            self.figures.setdefault(figure, []).append((at, value))


class Vitals:
    """Samples by controller."""

    def __init__(self, court: Court) -> None:
        self.lives: dict[str, Life] = {}
        self._court = court

    async def watch(self) -> None:
        """For ever."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        for seat in [each for each in self._court.seats if each.free and not each.frozen]:
            await self._sample(seat)

    async def _sample(self, seat: Seat) -> None:
        try:
            process = psutil.Process(seat.controller.process.pid)
            sample = {
                "rss_mib": process.memory_info().rss / 2**20,
                "fds": float(process.num_fds()),
                "threads": float(process.num_threads()),
            }
            text = await asyncio.to_thread(scrape, seat.controller.listen)
        except (psutil.Error, OSError):  # it is starting, or it has ended just now
            return
        tables = held(text)
        sample |= {"tasks": _value(text.splitlines(), _TASKS), "held": sum(tables.values())}
        life = self.lives.setdefault(seat.name, Life())
        life.add(time.monotonic(), sample, leads="bullpen_leading 1.0" in text)

    def since(self, at: float) -> dict[str, dict[str, list[tuple[float, float]]]]:
        """The samples from then on of those who are there now."""
        return {
            seat.name: {
                figure: [each for each in series if each[0] >= at]
                for figure, series in self.lives[seat.name].figures.items()
            }
            for seat in self._court.seats
            if seat.name in self.lives
        }


def held(text: str) -> dict[str, float]:
    """Entries by table, of a controller's metrics."""
    found = {}
    for line in text.splitlines():
        if line.startswith(_TABLES):
            labels, number = line.rsplit(" ", 1)
            found[labels.split('"')[1]] = float(number)
    assert found, f"no {_TABLES} among the metrics: nobody would see a table that grows"
    return found


def _value(lines: Iterable[str], name: str) -> float:
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))
