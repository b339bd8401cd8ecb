"""The numbers of a back-test, and nothing of how they are shown."""

from __future__ import annotations

from dataclasses import dataclass, field

HOURS_A_WEEK = 168


@dataclass(frozen=True, slots=True)
class Point:
    """One fixed number of units, replayed. `idle_hours`: unit-hours a day that stood ready."""

    units: int
    hit_ratio: float
    idle_hours: float
    misses: int


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to size the pool, replayed. By hour of the week, Monday 0 h first, in the zone of the study."""

    hit_ratio: float
    idle_hours: float
    misses: int
    units_by_hour: tuple[float, ...]
    """Mean of the target in each hour of the week."""
    misses_by_hour: tuple[int, ...]
    """All misses of the whole time."""
    fewest: int
    most: int

    @property
    def units(self) -> str:
        """How many units, as people say it: `6`, or `2 to 9`."""
        return str(self.most) if self.fewest == self.most else f"{self.fewest} to {self.most}"


@dataclass(frozen=True, slots=True)
class Lead:
    """How long units took to be ready, in seconds; `what` says where that is from."""

    p50: float
    p95: float
    what: str


@dataclass(frozen=True, slots=True)
class Study:
    """A history, and what each setting would have done with it."""

    of: str
    since: float
    until: float
    zone: str
    level: float
    wait: float
    claims: int
    lead: Lead
    curve: tuple[Point, ...]
    arrivals: tuple[float, ...]
    """Claims in each hour of the week, on average over the weeks that there are."""
    least: Setting
    """The smallest fixed number that meets the level: as many as claims came at most."""
    today: Setting | None = None
    engine: Setting | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def days(self) -> float:
        """How long the history is, in days."""
        return (self.until - self.since) / 86_400
