"""The faults there are, and where each makes sense. Data and pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tests.faults.addresses import Nature


class Kind(StrEnum):
    """What goes wrong with a request, or with an open watch."""

    KILL_BEFORE = "kill-before"  # SIGKILL; the request is never forwarded
    KILL_AFTER = "kill-after"  # SIGKILL when it is applied and not answered
    KILL_LATE = "kill-late"  # SIGKILL; it is applied when its successor has done its work
    CONFLICT = "409"
    TEST_FAILED = "422"  # "the server rejected our request", as of a failed test
    INVALID = "422-causes"
    TOO_MANY = "429"  # with Retry-After
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    INTERNAL = "500"
    NO_WEBHOOK = "500-webhook"  # a webhook that could not be called: a 500, but before storage
    UNAVAILABLE = "503"
    CUT_BEFORE = "cut-before"
    CUT_AFTER = "cut-after"  # applied, the answer lost
    LATE = "late"  # cut; applied when the same step was answered another time
    LATE_END = "late-end"  # cut; applied when everything that was asked for is deleted
    STALL = "stall"  # held until the client gives up; never applied
    EXPIRED = "410"  # of a list's page, a watch's opening, or an open watch
    CUT = "cut"  # an open watch ends before this event
    DELAY = "delay"  # this event and those behind it come a good while later
    VANISH = "vanish"  # objects go away while an open watch is held; then it ends with 410


KILLS = frozenset({Kind.KILL_BEFORE, Kind.KILL_AFTER, Kind.KILL_LATE})
LANDING_LAST = frozenset({Kind.KILL_LATE, Kind.LATE_END})

_ANSWERS = (Kind.TOO_MANY, Kind.UNAUTHORIZED, Kind.FORBIDDEN, Kind.INTERNAL, Kind.UNAVAILABLE)
_ANY_WRITE = (
    Kind.KILL_BEFORE,
    Kind.KILL_AFTER,
    Kind.KILL_LATE,
    Kind.CONFLICT,
    *_ANSWERS,
    Kind.NO_WEBHOOK,
    Kind.CUT_BEFORE,
    Kind.CUT_AFTER,
    Kind.LATE,
    Kind.LATE_END,
    Kind.STALL,
)
_READ = (Kind.KILL_BEFORE, *_ANSWERS, Kind.CUT_BEFORE, Kind.STALL)
_LEASE = (
    Kind.KILL_BEFORE,
    Kind.KILL_AFTER,
    Kind.CONFLICT,
    *_ANSWERS,
    Kind.CUT_BEFORE,
    Kind.CUT_AFTER,
    Kind.STALL,
)

SENSIBLE: dict[Nature, tuple[Kind, ...]] = {
    Nature.PATCH: (*_ANY_WRITE, Kind.TEST_FAILED, Kind.INVALID),
    Nature.CREATE: (*_ANY_WRITE, Kind.INVALID),
    Nature.DELETE: _ANY_WRITE,
    Nature.PUT: _LEASE,  # only the lease is put; late, it would be refused by its resourceVersion
    Nature.READ: _READ,
    Nature.WATCH: (*_READ, Kind.EXPIRED),
    Nature.EVENT: (Kind.CUT, Kind.DELAY, Kind.EXPIRED, Kind.VANISH),
}


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """The `nth` time that `address` comes (from 1), this goes wrong."""

    address: str
    nth: int
    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind} at {self.address}#{self.nth}"


def kinds_for(nature: Nature, address: str) -> tuple[Kind, ...]:
    """What is tried at an address."""
    found = SENSIBLE[nature]
    if address.startswith("list/"):
        return (*found, Kind.EXPIRED)  # a page's continue token
    if address.startswith("lease/") and nature is Nature.CREATE:
        return SENSIBLE[Nature.PUT]
    return found
