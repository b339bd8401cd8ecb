"""The API server's time, better than the one second that its Date header tells.

Each answer bounds the offset between its clock and our monotonic one; the bounds are intersected. The
estimate moves only when the bounds force it, so that the difference of two readings is a length of time. It
must never trust the local wall clock, but for a first guess within the bounds.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_DRIFT = 200e-6  # seconds per second that two disciplined clocks may part
_GAP = 0.25  # seconds between two looks at the header: parsing it is slow


class ServerClock:
    """An interval that holds `server's unix time - monotonic time`."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._low = self._high = 0.0
        self._offset = wall() - monotonic()
        self._seen: float | None = None

    def observe(self, date: str | None, sent: float, received: float) -> None:
        """Learn from an answer's Date header and the monotonic times around it."""
        if date is None or (self._seen is not None and received - self._seen < _GAP):
            return
        try:
            second = parsedate_to_datetime(date).timestamp()
        except ValueError:  # a proxy's; the next one may be better
            return
        low, high = second - received, second + 1.0 - sent
        if self._seen is not None:
            slack = (received - self._seen) * _DRIFT
            kept_low, kept_high = max(low, self._low - slack), min(high, self._high + slack)
            if kept_low <= kept_high:  # else the server's clock was set: start again
                low, high = kept_low, kept_high
        self._low, self._high, self._seen = low, high, received
        if not low <= self._offset <= high:
            self._offset = (low + high) / 2

    def now(self) -> datetime:
        """The server's time in UTC; the local clock's before the first answer."""
        if self._seen is None:
            return datetime.fromtimestamp(self._wall(), UTC)
        return datetime.fromtimestamp(self._monotonic() + self._offset, UTC)

    def agrees(self, tolerance: float) -> bool:
        """Whether the local wall clock is surely within `tolerance` seconds of the server's."""
        if self._seen is None:
            return False
        offset = self._wall() - self._monotonic()
        return max(abs(offset - self._low), abs(offset - self._high)) <= tolerance
