"""Which lead times are believed now, by tier and revision. It must never hold what an outage made of them."""

import math
from typing import Final

from capacity.sketch import ERROR, LeadTimes

GENERATION: Final = (
    4_000  # samples (their mean is right to half a per cent); one to two generations are believed
)
BLOCK: Final = 20  # samples that are compared with all before them
_CERTAIN: Final = 4.5  # standard errors between two sets that are not the same
_ENOUGH: Final = 20  # samples of a revision that stand for themselves
REVISIONS: Final = 4  # of each tier, the newest


class Generations:
    """The newest lead times of one tier and revision, in seconds.

    Two generations of samples: the old one goes when the new one is full. Each block of the latest samples is
    compared with all before it; where chance cannot explain the difference, only the block is believed. So
    boot times that double are believed after some twenty boots and not after days.
    """

    __slots__ = ("latest", "new", "old")

    def __init__(
        self, latest: LeadTimes | None = None, new: LeadTimes | None = None, old: LeadTimes | None = None
    ) -> None:
        self.latest = latest or LeadTimes()
        self.new = new or LeadTimes()
        self.old = old or LeadTimes()

    def add(self, seconds: float) -> None:
        self.latest.add(seconds)
        if self.latest.count < BLOCK:
            return
        before = self.old + self.new
        if before.count >= BLOCK and differ(self.latest, before):
            self.old, self.new = LeadTimes(), LeadTimes()
        self.new += self.latest
        self.latest = LeadTimes()
        if self.new.count >= GENERATION:
            self.old, self.new = self.new, LeadTimes()

    @property
    def believed(self) -> LeadTimes:
        return self.old + self.new + self.latest


def differ(block: LeadTimes, before: LeadTimes) -> bool:
    """Whether the mean logarithms (boot times are about log-normal) differ by more than chance makes them."""
    mean, variance = before.logarithms
    error = math.sqrt(variance * (1 / block.count + 1 / before.count))
    return abs(block.logarithms[0] - mean) > _CERTAIN * error + 2 * ERROR


class Leads:
    """Lead times by (tier, revision)."""

    __slots__ = ("by",)

    def __init__(self) -> None:
        self.by: dict[tuple[str, str], Generations] = {}

    def add(self, seconds: float, tier: str, revision: str) -> None:
        of = self.by.pop((tier, revision), None) or Generations()
        of.add(seconds)
        self.by[tier, revision] = of  # the one measured last is the last
        revisions = [key for key in self.by if key[0] == tier]
        for key in revisions[:-REVISIONS]:
            del self.by[key]

    def of(self, tier: str, revision: str | None) -> LeadTimes:
        """Of this revision; None, or too few samples of it: of those of the tier that were measured last."""
        if revision is not None and (own := self.by.get((tier, revision))):
            believed = own.believed
            if believed.count >= _ENOUGH:
                return believed
        together = LeadTimes()
        for key in reversed([key for key in self.by if key[0] == tier]):
            together += self.by[key].believed
            if together.count >= _ENOUGH:
                break
        return together
