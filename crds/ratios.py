"""Ratios as people write them: percent strings like `80%`. This module must never know what a ratio is of."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from crds.schema import Rule, rules

PATTERN: Final = "^(100|[1-9]?[0-9])%$"
HOW_TO_WRITE: Final = 'write a share of the whole from "0%" to "100%", in quotes, like "80%"'
WIDE_PATTERN: Final = "^(500|[1-4][0-9][0-9]|[1-9]?[0-9])%$"
HOW_TO_WRITE_WIDE: Final = 'write a whole share from "0%" to "500%", in quotes, like "20%"'
_ROOM: Final = 16  # characters: a share of a wrong form gets the sentence of its rule, not one about length
LEVEL_PATTERN: Final = "^[5-9][0-9]([.][0-9]{1,2})?%$"
HOW_TO_WRITE_A_LEVEL: Final = 'write a share from "50%" to "99.99%", in quotes, like "99%" or "99.9%"'


def at_least(share: str, whole: int) -> int:
    """The smallest number that is not less than this share of the whole."""
    return -(-int(share.removesuffix("%")) * whole // 100)


def fraction(share: str) -> float:
    """The share as a number: 0.999 for `99.9%`."""
    return float(share.removesuffix("%")) / 100


def _written(pattern: str, how_to_write: str) -> AfterValidator:
    def check(share: str) -> str:
        if not re.fullmatch(pattern, share):
            raise ValueError(f"{share[:40]!r} is no ratio: {how_to_write}")
        return share

    return AfterValidator(check)


Percent = Annotated[
    str,
    Field(max_length=len("100%"), json_schema_extra=rules(Rule(f"self.matches('{PATTERN}')", HOW_TO_WRITE))),
    _written(PATTERN, HOW_TO_WRITE),
]
"""A share of a whole."""
WidePercent = Annotated[
    str,
    Field(
        max_length=_ROOM,
        json_schema_extra=rules(Rule(f"self.matches('{WIDE_PATTERN}')", HOW_TO_WRITE_WIDE)),
    ),
    _written(WIDE_PATTERN, HOW_TO_WRITE_WIDE),
]
"""A share that may be more than the whole."""
Level = Annotated[
    str,
    Field(
        max_length=_ROOM,
        json_schema_extra=rules(Rule(f"self.matches('{LEVEL_PATTERN}')", HOW_TO_WRITE_A_LEVEL)),
    ),
    _written(LEVEL_PATTERN, HOW_TO_WRITE_A_LEVEL),
]
"""A service level: never all, which no buffer of a finite size can promise."""
