"""How old something is, by a clock that nobody sets: what was stamped under another setting is restated.

Pure. A time stamp is compared with the present only after it was restated; then a clock that is set, forward
or back, hastens nothing. In doubt a thing counts as the younger: being late costs less than a VM in use.
"""

import math
from dataclasses import dataclass, replace

TOLERANCE = 2.0  # seconds that the estimate of the server's clock may move without its having been set
_BLUR = 1.0  # seconds: stamps are cut to the second
_KEPT = 16  # settings remembered; older ones are merged, in favour of the younger


@dataclass(frozen=True, slots=True)
class Stretch:
    """While nobody set the server's clock: how far it was ahead of ours, and what it said first and last."""

    offset: float
    first: float
    last: float = math.inf


@dataclass(frozen=True, slots=True)
class Timeline:
    """The stretches since this process first heard the server. `host`: by how much the host's clock is ahead.

    Without any, stamps are what they are.
    """

    stretches: tuple[Stretch, ...] = ()
    host: float = math.inf

    def heard(self, offset: float, at: float) -> "Timeline":
        """The server's clock is now so far ahead of ours, which says `at`."""
        if not self.stretches:
            return replace(self, stretches=(Stretch(offset, offset + at - _BLUR),))
        before = self.stretches[-1]
        if abs(offset - before.offset) <= TOLERANCE:
            return self
        ended = replace(before, last=before.offset + at + _BLUR)
        return replace(
            self, stretches=_merged((*self.stretches[:-1], ended, Stretch(offset, offset + at - _BLUR)))
        )

    def restated(self, stamp: float) -> float:
        """The stamp as the server's present setting would have it.

        What was stamped before we came is as old as the younger of the server's clock and the host's says.
        """
        if not self.stretches or stamp >= self.stretches[-1].first:
            return stamp
        present, oldest = self.stretches[-1].offset, self.stretches[0]
        for each in reversed(self.stretches):
            if each.first <= stamp <= each.last:
                return stamp + present - each.offset
        if stamp < oldest.first:
            behind = self.host < oldest.offset - TOLERANCE
            return stamp + present - (self.host if behind else oldest.offset)
        later = next(each for each in reversed(self.stretches) if each.first > stamp)
        return later.first + present - later.offset  # in the gap that a jump left


AS_STAMPED = Timeline()
"""For who knows of no clock: stamps are what they are."""


def _merged(stretches: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    if len(stretches) <= _KEPT:
        return stretches
    one, two, *rest = stretches
    both = Stretch(min(one.offset, two.offset), min(one.first, two.first), max(one.last, two.last))
    return (both, *rest)
