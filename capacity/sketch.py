"""Lead times in a few hundred numbers: a histogram of logarithmic buckets. It must never hold a sample."""

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

ERROR: Final = 0.01  # relative, of every quantile
SHORTEST: Final = 1e-3  # seconds; whatever is less falls into the first bucket
LONGEST: Final = 1e6  # seconds, eleven days; whatever is more falls into the last one
_GAMMA: Final = (1 + ERROR) / (1 - ERROR)
_LOG_GAMMA: Final = math.log(_GAMMA)
_FIRST: Final = math.ceil(math.log(SHORTEST) / _LOG_GAMMA)
_LAST: Final = math.ceil(math.log(LONGEST) / _LOG_GAMMA)


def _bucket(seconds: float) -> int:
    return math.ceil(math.log(min(max(seconds, SHORTEST), LONGEST)) / _LOG_GAMMA)


def _middle(bucket: int) -> float:
    """The value that is within ERROR of everything in the bucket."""
    return 2 * _GAMMA**bucket / (_GAMMA + 1)


def uniform(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """One number in [0, 1) for each key, always the same: SplitMix64's finalizer (Steele et al., 2014)."""
    mixed = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


class LeadTimes:
    """How long orders took, in seconds: count, mean, quantiles, and draws for what-ifs.

    The mapping is DDSketch's (Masson, Rim, Lee: DDSketch, VLDB 12(12), 2019): every quantile is right within
    one percent, however long the tail, with at most about a thousand buckets. Own code because the library
    saves itself by protobuf only.
    """

    __slots__ = ("_buckets", "count")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        """Start with the buckets that `to_pairs` wrote.

        Raises:
            ValueError: a bucket that cannot be, or a number of samples below one.
        """
        self._buckets: dict[int, int] = {}
        self.count = 0
        for bucket, times in pairs:
            if not _FIRST <= bucket <= _LAST or times < 1:
                raise ValueError(f"no bucket of lead times: {bucket} with {times} samples")
            self._buckets[bucket] = self._buckets.get(bucket, 0) + times
            self.count += times

    @classmethod
    def of(cls, *seconds: float) -> "LeadTimes":
        """Of these samples. Raises ValueError for one that is no time."""
        found = cls()
        for each in seconds:
            found.add(each)
        return found

    def add(self, seconds: float, times: int = 1) -> None:
        """Count one lead time.

        Raises:
            ValueError: it is no time.
        """
        if not math.isfinite(seconds) or seconds < 0 or times < 1:
            raise ValueError(f"no lead time: {seconds} s, {times} times")
        bucket = _bucket(seconds)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + times
        self.count += times

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeadTimes) and self._buckets == other._buckets

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __add__(self, other: "LeadTimes") -> "LeadTimes":
        return LeadTimes([*self._buckets.items(), *other._buckets.items()])

    def to_pairs(self) -> list[tuple[int, int]]:
        """(bucket, samples in it), from the shortest: what the constructor takes."""
        return sorted(self._buckets.items())

    def cut(self, deadline: float) -> "LeadTimes":
        """The same with nothing longer than the deadline, after which an order is given up and made anew."""
        last = _bucket(deadline)
        return LeadTimes((min(bucket, last), times) for bucket, times in self._buckets.items())

    @property
    def mean(self) -> float:
        """Seconds; 0 without samples."""
        return sum(_middle(bucket) * times for bucket, times in self._buckets.items()) / max(self.count, 1)

    @property
    def logarithms(self) -> tuple[float, float]:
        """Mean and variance of the natural logarithm: for telling whether two sets differ."""
        if not self.count:
            return 0.0, 0.0
        mean = sum(bucket * times for bucket, times in self._buckets.items()) / self.count
        squares = sum((bucket - mean) ** 2 * times for bucket, times in self._buckets.items())
        return mean * _LOG_GAMMA, squares / self.count * _LOG_GAMMA**2

    def quantile(self, share: float) -> float | None:
        """The smallest time, in seconds, within which this share (0..1) was ready; None without samples."""
        if not self.count:
            return None
        wanted = max(1, math.ceil(share * self.count - 1e-9))
        for bucket, times in self.to_pairs():
            wanted -= times
            if wanted <= 0:
                return _middle(bucket)
        return _middle(max(self._buckets))

    def draw(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """One lead time for each key, distributed like the samples; the same key draws the same again.

        Raises:
            ValueError: there is nothing to draw from.
        """
        if not self.count:
            raise ValueError("no lead time was measured yet")
        pairs = self.to_pairs()
        up_to = np.cumsum([times for _, times in pairs]) / self.count
        places = np.searchsorted(up_to[:-1], uniform(keys), side="right")
        drawn: NDArray[np.float64] = np.array([_middle(bucket) for bucket, _ in pairs])[places]
        return drawn
