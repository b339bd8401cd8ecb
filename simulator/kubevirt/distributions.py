"""Lengths of time as distributions: `1s`, `500ms..2s`, `p50=16s,p95=27s`.

Pure: the caller brings the randomness, so that a VM's life can be told again from its seed.
"""

import math
import re
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from crds.durations import seconds

REALISTIC: Final = "p50=16s,p95=27s"
FORMS: Final = "write a duration (1s), a range (500ms..2s) or a lognormal by two quantiles (p50=16s,p95=27s)"
_Z95: Final = 1.6448536269514722  # the standard normal's 95th percentile
_FARTHEST: Final = 4.0  # standard deviations; one boot in 30,000 would lie beyond


class Distribution(Protocol):
    def sample(self, random: Random) -> float:
        """One length of time, in seconds, never negative."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    seconds: float

    def sample(self, random: Random) -> float:  # noqa: ARG002 - the protocol's argument
        return self.seconds


@dataclass(frozen=True, slots=True)
class Uniform:
    low: float
    high: float

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("a range goes from the shorter to the longer")

    def sample(self, random: Random) -> float:
        return random.uniform(self.low, self.high)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Boots on real clusters: a hump and a long tail, told by its median and its 95th percentile."""

    p50: float
    p95: float

    def __post_init__(self) -> None:
        if not 0 < self.p50 <= self.p95:
            raise ValueError("p50 must be above zero and no longer than p95")

    def sample(self, random: Random) -> float:
        sigma = math.log(self.p95 / self.p50) / _Z95
        deviations = max(-_FARTHEST, min(_FARTHEST, random.gauss(0.0, 1.0)))
        return self.p50 * math.exp(sigma * deviations)


def parse(text: str) -> Distribution:
    """Read one of the three forms.

    Raises:
        ValueError: with a sentence that shows the forms.
    """
    quantiles = re.fullmatch(r"p50=(\w+),p95=(\w+)", text.strip())
    try:
        if quantiles:
            return LogNormal(seconds(quantiles[1]), seconds(quantiles[2]))
        low, is_range, high = text.strip().partition("..")
        return Uniform(seconds(low), seconds(high)) if is_range else Fixed(seconds(low))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}; {FORMS}") from None
