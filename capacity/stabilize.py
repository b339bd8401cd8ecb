"""Up at once, down slowly: the highest recommendation of the last while. It must never read a clock."""

from collections import deque


class Stabilizer:
    """Remembers what was recommended lately.

    A recommendation holds until the next one is made, so that a caller who asks rarely gets the same answers
    as one who asks often. Only those are kept that may still be the highest: a handful, however often it is
    asked.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: deque[tuple[float, int]] = deque()  # (held until, units), the units falling

    def seed(self, units: int, now: float) -> None:
        """Go on from the target that was written last, after a restart: it falls no sooner than any other.

        Leave it out where `replicas` had decided, which is followed at once.
        """
        self._push(units, now)

    def forget(self) -> None:
        """Nothing was recommended: what comes next is followed at once."""
        self._held.clear()

    def highest(self, units: int, now: float, window: float) -> int:
        """Recommend so many units now; the highest that was recommended within the last `window` seconds."""
        self._push(units, now)
        while len(self._held) > 1 and self._held[0][0] <= now - window:
            self._held.popleft()
        return self._held[0][1]

    def falls_at(self, window: float) -> float | None:
        """When the highest falls if nothing else is recommended, in epoch seconds; None: it does not."""
        return self._held[0][0] + window if len(self._held) > 1 else None

    def _push(self, units: int, now: float) -> None:
        if self._held:
            until, before = self._held.pop()
            # A clock that was set back shortens nothing.
            self._held.append((max(until, now), before))
        while self._held and self._held[-1][1] <= units:
            self._held.pop()
        self._held.append((now, units))
