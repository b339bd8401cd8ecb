"""What a budget of idle unit-hours buys in each hour that is left of the day. It must never read a clock.

One price for all remaining hours: the k-th unit of an hour serves rate · P(N = k - 1) claims an hour, N being
the orders that are outstanding when a claim arrives, and stands idle for P(N < k) of it. An hour keeps every
unit whose claims per idle hour are worth the price, and the price is the lowest at which what is left
suffices. (Lagrangian relaxation of "most claims served within so many idle hours"; what it gives is the best
there is for what it spends, as the claims served fall with each further unit: Everett, Operations Research
11(3), 1963.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class SlotDemand(Protocol):
    """Demand of one hour as far as a budget needs it."""

    @property
    def rate_per_hour(self) -> float:
        """Claims an hour."""

    def tail(self, k: NDArray[np.int64]) -> Floats:
        """P(at least k orders are outstanding when a claim arrives), for each k."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of what is left of the day: its length in hours, what is asked for in it, and its demand.

    Without a measured demand every unit counts as idle, and the units are spread evenly.
    """

    hours: float
    wants: int
    demand: SlotDemand | None = None


def allowance(pieces: Sequence[Piece], *, left: float, floor: int) -> int:
    """How many units the first piece may keep so that what is left, in unit-hours, lasts until the day's end.

    Args:
        pieces: what is left of the day, the present first.
        left: unit-hours, less than nothing if the day is overdrawn.
        floor: units that are kept in any case; they are paid for first.
    """
    asked = [max(piece.wants, floor) for piece in pieces]
    if sum(units * piece.hours for units, piece in zip(asked, pieces, strict=True)) <= left:
        return asked[0]
    rows = [_row(piece, units) for piece, units in zip(pieces, asked, strict=True)]
    cost = np.concatenate([costs[floor:] for costs, _ in rows])
    worth = np.concatenate([worths[floor:] for _, worths in rows])
    dearest_first = np.argsort(-worth, kind="stable")
    spent = np.cumsum(cost[dearest_first]) + sum(float(costs[:floor].sum()) for costs, _ in rows)
    unpaid = int(np.searchsorted(spent, left, side="right"))
    if unpaid == cost.size:
        return asked[0]
    # The first unit that can't be paid for sets the price, and everything that is worth more is bought.
    price = worth[dearest_first[unpaid]]
    return floor + int((rows[0][1][floor:] > price).sum())


def _row(piece: Piece, units: int) -> tuple[Floats, Floats]:
    """Idle unit-hours of the first, second, ... unit of a piece, and claims served per idle hour."""
    k = np.arange(units + 1, dtype=np.int64)
    if piece.demand is None:
        return np.full(units, piece.hours), -k[1:].astype(np.float64)
    tail = piece.demand.tail(k)
    idle = np.maximum(1 - tail[1:], 1e-9)
    served = piece.demand.rate_per_hour * np.maximum(tail[:-1] - tail[1:], 0.0)
    # Each further unit is worth less than the one before it: of two that a rounding swapped none may be kept
    # without the other.
    return idle * piece.hours, np.minimum.accumulate(served / idle)
