"""What a run of one seed came to, and what all seeds of a trace say together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.rows import Row

ENGINE, LESS, STATIC, ORACLE = "engine", "engine - 1", "static", "oracle"
RATE, PERCENT, AUTOSCALER = "rate x boot", "percent", "HPA"
SIDES = (ENGINE, LESS, STATIC, ORACLE, RATE, PERCENT, AUTOSCALER)
PER_CENT = 100.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One side of one trace, level and seed. `units`: the mean target; `idle`: ready unit-hours a day.

    `wasted`: units a day that were begun and never claimed.
    """

    trace: str
    kind: str
    level: float
    side: str
    seed: int
    claims: int
    hit: float
    idle: float
    units: float
    wasted: float

    @property
    def row(self) -> str:
        return row_name(self.trace, self.level)


def row_name(trace: str, level: float) -> str:
    return f"{trace} {level * PER_CENT:g} %"


def interval(values: Sequence[float]) -> float:
    """Half the 95 % confidence interval of the mean over independent seeds (Student's t)."""
    count = len(values)
    if count < 2:
        return math.inf
    spread = float(np.std(values, ddof=1)) / math.sqrt(count)
    return float(stats.t.ppf(0.975, count - 1)) * spread


def summed(outcomes: Iterable[Outcome]) -> list[Row]:
    """A row for each trace, level and side: means over the seeds; the engine beside the others."""
    groups: dict[str, dict[str, list[Outcome]]] = {}
    for each in outcomes:
        groups.setdefault(each.row, {}).setdefault(each.side, []).append(each)
    rows = []
    for name, sides in groups.items():
        for side, found in sides.items():
            figures = _figures(found)
            if side == ENGINE:
                figures |= _beside(found, sides)
            rows.append(Row(name, side, figures))
    return rows


def _figures(found: Sequence[Outcome]) -> dict[str, float]:
    return {
        "seeds": len(found),
        "level": found[0].level,
        "claims": float(np.mean([each.claims for each in found])),
        "hit": float(np.mean([each.hit for each in found])),
        "interval": interval([each.hit for each in found]),
        "idle": float(np.mean([each.idle for each in found])),
        "units": float(np.mean([each.units for each in found])),
        "wasted": float(np.mean([each.wasted for each in found])),
    }


def _beside(found: Sequence[Outcome], sides: dict[str, list[Outcome]]) -> dict[str, float]:
    """What the thresholds judge.

    `short_points`: points of hit ratio below the target (negative: above). `spare_points`: by how much one
    unit less would still have been above it, less its confidence interval. `saved`, `of_static`: idle hours
    of the smallest static pool saved and used. `of_oracle`: saved, as a share of what the oracle saves.
    """
    level = found[0].level
    hit, idle = (float(np.mean([getattr(each, what) for each in found])) for what in ("hit", "idle"))
    figures = {"short_points": (level - hit) * PER_CENT}
    if less := sides.get(LESS):
        hits = [each.hit for each in less]
        figures["less_hit"] = float(np.mean(hits))
        figures["spare_points"] = (float(np.mean(hits)) - interval(hits) - level) * PER_CENT
    if static := sides.get(STATIC):
        fixed = float(np.mean([each.idle for each in static]))
        figures |= {"saved": 1.0 - idle / fixed, "of_static": idle / fixed}
        if best := sides.get(ORACLE):
            saving = fixed - float(np.mean([each.idle for each in best]))
            figures["of_oracle"] = (fixed - idle) / saving if saving > 0 else math.nan
    return figures
