"""Who was served before somebody who came earlier. Pure: lives in, seconds out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class Life:
    """One claim as a watch showed it. Times are of one monotonic clock, in seconds; 0: not yet.

    `arrival` and `service` are its places in the watch's order of ADDED and of the first Bound.
    """

    name: str
    uid: str = ""
    arrival: int = 0
    added: float = 0.0
    service: int = 0
    bound: float = 0.0
    ended: float = 0.0
    phase: str = ""
    reason: str = ""

    @property
    def served(self) -> bool:
        return self.service > 0

    @property
    def waited(self) -> float:
        return self.bound - self.added


@dataclass(frozen=True, slots=True)
class Overtaken:
    """This claim was served so many seconds after one that had arrived later."""

    name: str
    by: str
    seconds: float


def overtaken(lives: Iterable[Life]) -> list[Overtaken]:
    """Everyone who was overtaken, each with the first who overtook; the worst in front."""
    found = []
    first: Life | None = None  # of those who arrived later, who was served first
    for life in sorted(filter(lambda each: each.served, lives), key=lambda each: -each.arrival):
        if first is not None and first.service < life.service:
            found.append(Overtaken(life.name, first.name, life.bound - first.bound))
        if first is None or life.service < first.service:
            first = life
    return sorted(found, key=lambda each: -each.seconds)
