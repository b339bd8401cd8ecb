"""Counts and replays against theory: claims that wait see Poisson's law, claims that go away Erlang's B.

Lead times are KubeVirt's own, not exponential: both laws hold for any distribution of the lead time (M/G/∞
and M/G/c/c are insensitive to it), which is what is shown.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.capacity.outcomes import ENGINE
from benchmarks.capacity.report import Table, per_cent
from benchmarks.capacity.traces import DAY, Floats, Lead, batches
from benchmarks.rows import Row
from capacity import counts, theory

LOADS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
LEVEL = 0.99
_CLAIMS = 400_000
_BATCHES = 40
_LEAD_IN = 1_000


@dataclass(frozen=True, slots=True)
class Check:
    """One buffer at one load: the share of claims that are not served at once, measured and by the formula.

    `error`: standard error of the measured share, by the means of batches (or of the formula's own share,
    whichever is larger: rare misses may all fall into one batch, or into none).
    """

    law: str
    load: float
    units: int
    measured: float
    exact: float
    error: float

    @property
    def off(self) -> float:
        """How many standard errors lie between the two."""
        return abs(self.measured - self.exact) / self.error


@dataclass(frozen=True, slots=True)
class Sizes:
    """The smallest buffer for LEVEL, counted and by the formula, for both laws."""

    load: float
    waits: int
    waits_exact: int
    lost: int
    lost_exact: int


def stream(load: float, lead: Lead, claims: int, seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng([seed, int(load * 10)])
    rate = load / lead.mean
    cells = int(claims / rate / 10.0) + 1
    arrivals = batches(np.full(cells, rate), 1.0, random)
    return arrivals + DAY, lead.draw(random, arrivals.size)


def check(load: float, lead: Lead, *, claims: int = _CLAIMS, seed: int = 1) -> tuple[Sizes, list[Check]]:
    """Both laws at the size that the formula wants, and at one unit less."""
    arrivals, leads = stream(load, lead, claims, seed)
    found = counts.outstanding(arrivals, leads)
    waits, lost = theory.quantile_target(load, LEVEL), theory.loss_target(load, LEVEL)
    sizes = Sizes(load, counts.smallest(found, LEVEL), waits, _smallest_loss(arrivals, leads, lost), lost)

    def waiting(units: int) -> Check:
        exact = 1.0 - float(theory.distribution([load], 0.0, theory.room(load, 0.0))[0][:units].sum())
        return _checked("waits", load, units, (found >= units).astype(np.float64), exact)

    def losing(units: int) -> Check:
        missed = _replayed(arrivals, leads, units)
        return _checked("lost", load, units, missed, theory.erlang_b(load, units))

    return sizes, [waiting(waits), waiting(waits - 1), losing(lost), losing(lost - 1)]


def _smallest_loss(arrivals: Floats, leads: Floats, guess: int) -> int:
    def enough(units: int) -> bool:
        return counts.lost(arrivals, leads, units) <= 1 - LEVEL

    while not enough(guess):
        guess += 1
    while guess > 1 and enough(guess - 1):
        guess -= 1
    return guess


def _replayed(arrivals: Floats, leads: Floats, units: int) -> Floats:
    """The loss of each part of the stream by the product's replay, which begins a while before the part."""
    edges = np.linspace(_LEAD_IN, arrivals.size, _BATCHES + 1).astype(int).tolist()

    def missed(low: int, high: int) -> float:
        return counts.lost(arrivals[low:high], leads[low:high], units) * (high - low)

    parts = itertools.pairwise(edges)
    return np.array(
        [(missed(low - _LEAD_IN, high) - missed(low - _LEAD_IN, low)) / (high - low) for low, high in parts]
    )


def _checked(law: str, load: float, units: int, missed: Floats, exact: float) -> Check:
    """`missed`: one entry a claim, or a share for each of _BATCHES parts."""
    means = np.array([part.mean() for part in np.array_split(missed, _BATCHES)])
    spread = float(means.std(ddof=1))
    pure = math.sqrt(exact * (1.0 - exact) / _CLAIMS * _BATCHES)
    return Check(law, load, units, float(means.mean()), exact, max(spread, pure) / math.sqrt(_BATCHES))


def row_name(load: float) -> str:
    return f"a = {load:g}"


def rows(found: Sequence[tuple[Sizes, list[Check]]]) -> list[Row]:
    """`waits_off`, `lost_off`: the worst distance in standard errors; `*_size`: units beside the formula."""
    return [
        Row(
            row_name(sizes.load),
            ENGINE,
            {
                "waits_off": max(each.off for each in checks if each.law == "waits"),
                "lost_off": max(each.off for each in checks if each.law == "lost"),
                "waits_size": abs(sizes.waits - sizes.waits_exact),
                "lost_size": abs(sizes.lost - sizes.lost_exact),
            },
        )
        for sizes, checks in found
    ]


def table(found: Sequence[tuple[Sizes, list[Check]]]) -> Table:
    """Both laws at the size that the formula asks for; distances in standard errors."""
    drawn = Table(
        "Theory: the smallest buffer for 99 %, counted and by the formula",
        (
            "a",
            "waits: counted",
            "Poisson",
            "wait then",
            "formula",
            "off",
            "lost: replayed",
            "Erlang B",
            "lost then",
            "formula",
            "off",
        ),
    )
    for sizes, checks in found:
        waits, _, lost, _ = checks
        drawn.lines.append(
            (
                f"{sizes.load:g}",
                str(sizes.waits),
                str(sizes.waits_exact),
                per_cent(waits.measured),
                per_cent(waits.exact),
                f"{waits.off:.1f}",
                str(sizes.lost),
                str(sizes.lost_exact),
                per_cent(lost.measured),
                per_cent(lost.exact),
                f"{lost.off:.1f}",
            )
        )
    return drawn
