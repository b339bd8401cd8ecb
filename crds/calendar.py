"""Times of the week as people write them: cron expressions and IANA time zones.

This module must never read a clock, nor say when an expression fires next.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field

from crds.schema import Rule, rules

HOW_TO_WRITE_CRON: Final = (
    "write five fields with one space between them: minute, hour, day of the month, month, day of the week, "
    'like "30 7 * * mon-fri" for 7:30 on working days; numbers, * , - / and English names of three letters'
)
HOW_TO_WRITE_A_RANGE: Final = (
    "a range runs from the lower number to the higher one: "
    'for the night write two, like "22-23,0-6" in place of "22-6"'
)
HOW_TO_WRITE_A_ZONE: Final = (
    'write a time zone by its IANA name, like "Europe/Berlin", "America/New_York" or "UTC"'
)


def _field(number: str, *names: str) -> str:
    one = "|".join((number, *names))
    item = rf"([*]|({one})(-({one}))?)(/[1-9][0-9]?)?"
    return f"{item}(,{item})*"


_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
CRON_PATTERN: Final = (
    "(?i)^"
    + " ".join(
        (
            _field("[0-5]?[0-9]"),
            _field("2[0-3]|[01]?[0-9]"),
            _field("3[01]|[12][0-9]|0?[1-9]"),
            _field("1[0-2]|0?[1-9]", *_MONTHS),
            _field("[0-7]", *_DAYS),
        )
    )
    + "$"
)
MAX_CRON: Final = 100
ZONE_PATTERN: Final = "^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$"
MAX_ZONE: Final = 64
_RANGE: Final = re.compile("([0-9]+|[a-z]+)-([0-9]+|[a-z]+)")
_ANY_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _cron(expression: str) -> str:
    if not re.fullmatch(CRON_PATTERN, expression):
        raise ValueError(f"{expression[:40]!r} is no cron expression: {HOW_TO_WRITE_CRON}")
    try:
        CronSim(expression, _ANY_DAY)
    except CronSimError:
        # What is left is a day that no month has. The API server can't tell, so it is no error here either:
        # a slot that never opens is told as such, and the rest of the pool goes on.
        if "-" in expression and not all(_rises(*ends) for ends in _RANGE.findall(expression.lower())):
            raise ValueError(f"{expression!r} is no cron expression: {HOW_TO_WRITE_A_RANGE}") from None
    return expression


def _rises(first: str, second: str) -> bool:
    if first.isdigit() and second.isdigit():
        return int(first) <= int(second)
    names = (*_DAYS, *_MONTHS)
    return first in names and second in names and names.index(first) <= names.index(second)


def _zone(name: str) -> str:
    if not re.fullmatch(ZONE_PATTERN, name):
        raise ValueError(f"{name[:40]!r} is no time zone: {HOW_TO_WRITE_A_ZONE}")
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a directory of zones is an OSError, an unknown name a KeyError
        raise ValueError(f"{name!r} is no time zone that is known here: {HOW_TO_WRITE_A_ZONE}") from None
    return name


def _rising(kind: str, order: str) -> str:
    """CEL: in each range of this kind the first end does not come after the second."""
    first, second = (order.format(f"range.split('-')[{end}]") for end in (0, 1))
    return f"self.findAll('{kind}-{kind}').all(range, {first} <= {second})"


_ORDER = f"'{' '.join((*_DAYS, *_MONTHS))}'.indexOf({{}}.lowerAscii())"
_RISING = f"{_rising('[0-9]+', 'int({})')} && {_rising('[A-Za-z]+', _ORDER)}"
# Only what has the right form is looked into any further: one mistake gets one sentence.
_FORM = f"!self.matches('{CRON_PATTERN}')"

Cron = Annotated[
    str,
    Field(
        max_length=MAX_CRON,
        json_schema_extra=rules(
            Rule(f"self.matches('{CRON_PATTERN}')", HOW_TO_WRITE_CRON),
            Rule(f"{_FORM} || ({_RISING})", HOW_TO_WRITE_A_RANGE),
        ),
    ),
    AfterValidator(_cron),
]
TimeZone = Annotated[
    str,
    Field(
        max_length=MAX_ZONE,
        json_schema_extra=rules(
            Rule(
                # The API server knows the zones and CEL has no other way to ask: an unknown one is an error
                # of the rule itself, and the API server's sentence then ends with "unknown time zone".
                f"self.matches('{ZONE_PATTERN}') && self != 'Local' && "
                "timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
                HOW_TO_WRITE_A_ZONE,
            )
        ),
    ),
    AfterValidator(_zone),
]
