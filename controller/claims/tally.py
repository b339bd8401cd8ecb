"""What was asked of a pool and how it was served, noted by the claims' side until the pool's loop takes it.

Bounded bookkeeping: it must never decide anything, and nobody has to come for it.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from controller.claims.objects import Claim
from controller.machines.readiness import epoch

MOST = 10_000  # of each kind, between two passes of a pool's loop


@dataclass(frozen=True, slots=True)
class Served:
    """A claim came to its end of waiting at `at`; its VM was warm `late` seconds after the claim had come.

    0 when one was warm when it came, infinite when it got none.
    """

    at: float
    late: float = math.inf


@dataclass(slots=True)
class Tally:
    """`arrived`: when each claim was made, noted when it is first seen. Epoch seconds of the API server."""

    arrived: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))
    served: deque[Served] = field(default_factory=lambda: deque(maxlen=MOST))

    def take(self) -> tuple[list[float], list[Served]]:
        """All that was noted since the last time."""
        found = list(self.arrived), list(self.served)
        self.clear()
        return found

    def clear(self) -> None:
        self.arrived.clear()
        self.served.clear()


def made(claim: Claim, now: float) -> float:
    """When a claim was made, by the API server's stamp (epoch seconds)."""
    return epoch(claim.metadata.creation_timestamp) or now


def arrivals(claims: Iterable[Claim], pool: str, now: float) -> list[float]:
    """When the claims on a pool were made, the first one first."""
    return sorted(made(each, now) for each in claims if each.spec.pool_ref.name == pool)
