"""Back-tests as data: whatever a study may hold, without replaying anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cli.backtest.study import HOURS_A_WEEK, Lead, Point, Setting, Study

MONDAY = 1_772_409_600.0
WEEK = 7 * 86_400.0
CURVE = (
    Point(0, 0.0, 0.0, 10_000),
    Point(1, 0.30, 17.4, 7_000),
    Point(2, 0.60, 38.3, 4_000),
    Point(3, 0.85, 61.0, 1_500),
    Point(4, 0.93, 84.5, 700),
    Point(5, 0.98, 108.0, 200),
    Point(6, 0.994, 132.0, 60),
    Point(7, 0.9990, 156.0, 10),
    Point(8, 1.0, 180.0, 0),
    Point(9, 1.0, 204.0, 0),
)


def fixed(units: int) -> Setting:
    """The curve's point as a setting; its misses are all at nine on Monday."""
    point = CURVE[units]
    misses = [0] * HOURS_A_WEEK
    misses[9] = point.misses
    return Setting(
        point.hit_ratio,
        point.idle_hours,
        point.misses,
        (float(units),) * HOURS_A_WEEK,
        tuple(misses),
        units,
        units,
    )


def engine() -> Setting:
    """Two at night and seven by day."""
    units = [7.0 if 8 <= hour % 24 < 18 else 2.0 for hour in range(HOURS_A_WEEK)]
    misses = [0] * HOURS_A_WEEK
    misses[33] = 70
    return Setting(0.993, 70.2, 70, tuple(units), tuple(misses), 2, 7)


def study(**changes: Any) -> Study:
    """A week of 10,000 claims, four VMs today, six that would do."""
    arrivals = [200.0 if 8 <= hour % 24 < 18 and hour < 120 else 0.2 for hour in range(HOURS_A_WEEK)]
    whole = Study(
        of="wp/runners in namespace ci",
        since=MONDAY,
        until=MONDAY + WEEK,
        zone="UTC",
        level=0.99,
        wait=0.0,
        claims=10_000,
        lead=Lead(40.0, 67.0, "lead times measured over 5,412 VMs"),
        curve=CURVE,
        arrivals=tuple(arrivals),
        least=fixed(6),
        today=fixed(4),
        engine=engine(),
        notes=("a note",),
    )
    return replace(whole, **changes)
