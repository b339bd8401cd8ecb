"""Durations as people write them (`90s`, `1h30m`) and as the API server checks them.

This module must never read a clock.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from crds.schema import Rule, rules

PATTERN: Final = "^([0-9]{1,5}(h|m|s|ms)){1,4}$"
MAX_LENGTH: Final = 28
HOW_TO_WRITE: Final = (
    "write a duration as whole numbers with the units h, m, s or ms and no spaces, "
    "like 90s, 10m, 1h30m or 168h (there is no unit for days)"
)
MUST_BE_POSITIVE: Final = "must be longer than 0s, like 10m"

_FORM = re.compile(PATTERN)
_PART = re.compile("([0-9]+)(h|ms|m|s)")
_UNIT = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}  # in milliseconds
_SECONDS_ONLY_FROM = 10_000  # milliseconds


def seconds(duration: str) -> float:
    """How many seconds a duration like `1h30m` means.

    Raises:
        ValueError: with a sentence that says how to write it.
    """
    if len(duration) > MAX_LENGTH or not _FORM.fullmatch(duration):
        raise ValueError(f"{duration[:40]!r} is no duration: {HOW_TO_WRITE}")
    return sum(int(number) * _UNIT[unit] for number, unit in _PART.findall(duration)) / 1000


def text(length: float) -> str:
    """Write a length of time, in seconds, the way people do: `35ms`, `2s340ms`, `1m30s`.

    Exact to the millisecond below 10 s, to the second from there on. Nothing and less is `0s`.
    """
    rest = round(max(length, 0) * 1000)
    return _written(round(rest / 1000) * 1000 if rest >= _SECONDS_ONLY_FROM else rest)


def exact(length: float) -> str:
    """The duration of the API that is a length of time, in seconds, to the millisecond."""
    return _written(round(max(length, 0) * 1000))


def _written(rest: int) -> str:
    parts = []
    for unit, size in _UNIT.items():
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def _checked(duration: str) -> str:
    seconds(duration)
    return duration


def _positive(duration: str) -> str:
    if seconds(duration) <= 0:
        raise ValueError(f"{duration!r} {MUST_BE_POSITIVE}")
    return duration


# The form is checked by a rule and not by a pattern as well: one mistake gets one sentence, not two.
_WELL_FORMED = Rule(f"self.matches('{PATTERN}')", HOW_TO_WRITE)
_LONGER_THAN_ZERO = Rule(f"!self.matches('{PATTERN}') || duration(self) > duration('0s')", MUST_BE_POSITIVE)

Duration = Annotated[
    str, Field(max_length=MAX_LENGTH, json_schema_extra=rules(_WELL_FORMED)), AfterValidator(_checked)
]
PositiveDuration = Annotated[
    str,
    Field(max_length=MAX_LENGTH, json_schema_extra=rules(_WELL_FORMED, _LONGER_THAN_ZERO)),
    AfterValidator(_positive),
]
