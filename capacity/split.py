"""Which units of a target may be stopped instead of running. It must never know what a tier costs."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from capacity.sketch import LeadTimes

SAMPLES: Final = 200  # of the wake times, evenly over their distribution


class Demand(Protocol):
    """What a split needs to know: P(a claim finds at least k orders outstanding), for each k."""

    def tail(self, k: NDArray[np.int64]) -> NDArray[np.float64]: ...


@dataclass(frozen=True, slots=True)
class Split:
    """Units of a target: running ones, which serve at once, and stopped ones, which have to wake."""

    running: int
    stopped: int


def split(units: int, level: float, demand: Demand, wake: LeadTimes, wait: float) -> Split:
    """The fewest running units with which the level (0..1) is still reached within `wait` seconds.

    Claims take running units first. So the unit at rank r serves the claims that find exactly r - 1 orders
    outstanding, and where it is stopped it serves those of them in time for which waking takes no longer than
    the wait. What the target itself cannot reach is not asked of the split. Without measured wake times
    nothing is stopped.
    """
    if not wake.count or units < 1:
        return Split(units, 0)
    at_least = demand.tail(np.arange(units + 1, dtype=np.int64))
    in_time = float(
        np.mean([(wake.quantile((each + 0.5) / SAMPLES) or 0.0) <= wait for each in range(SAMPLES)])
    )
    served = 1 - at_least + (at_least - at_least[units]) * in_time
    enough = served >= min(level, float(served[units])) - 1e-12
    running = int(np.argmax(enough))
    return Split(running, units - running)
