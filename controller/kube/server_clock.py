"""The API server's time, better than the one second that its Date header tells.

Each answer bounds the offset between its clock and our boot-time one; the bounds are intersected. The
estimate moves only when the bounds force it, so that the difference of two readings is a length of time. It
must never trust the host's wall clock, but for a first guess within the bounds, and says when that is off.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import structlog

from controller.kube.timeline import TOLERANCE, Timeline

_DRIFT = 200e-6  # seconds per second that two disciplined clocks may part
_GAP = 0.25  # seconds between two looks at the header: parsing it is slow
_SAID_EVERY = 60.0  # seconds between two sentences about clocks

log = structlog.get_logger(__name__)


def boot_time() -> float:
    """Seconds since boot, sleep included (where the system has such a clock)."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ServerClock:
    """An interval that holds `server's unix time - monotonic time`."""

    def __init__(
        self, monotonic: Callable[[], float] = boot_time, wall: Callable[[], float] = time.time
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._low = self._high = 0.0
        self._offset = wall() - monotonic()
        self._seen: float | None = None
        self._heard = Timeline()
        self._parted = False
        self._said_at = -_SAID_EVERY

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
        self._note(received)

    def now(self) -> datetime:
        """The server's time in UTC; the local clock's before the first answer."""
        if self._seen is None:
            return datetime.fromtimestamp(self._wall(), UTC)
        return datetime.fromtimestamp(self._monotonic() + self._offset, UTC)

    def timeline(self) -> Timeline:
        """What tells how old a stamp is."""
        return Timeline(self._heard.stretches, self._wall() - self._monotonic())

    def host_ahead(self) -> float:
        """Seconds by which the host's wall clock is ahead of the server's; 0 while that can't be told."""
        if self._seen is None:
            return 0.0
        offset = self._wall() - self._monotonic()
        return offset - max(self._low, min(self._high, offset))

    def _note(self, at: float) -> None:
        """Remember a clock that was set, and say it; also that the two do not agree, once."""
        before, self._heard = self._heard, self._heard.heard(self._offset, at)
        ahead = self.host_ahead()
        parted, said = abs(ahead) > TOLERANCE, at - self._said_at < _SAID_EVERY
        if not said and before.stretches and before is not self._heard:
            by = round(self._offset - before.stretches[-1].offset, 1)
            log.warning("the API server's clock was set; no deadline is hastened by it", seconds=by)
            self._said_at = at
        if parted and not self._parted:
            log.warning(
                "the host's clock and the API server's do not agree; what is older than this process ends by "
                "the later of the two",
                host_ahead=round(ahead, 1),
            )
        self._parted = parted
