"""Ratios as people write them: percent strings like `80%`. This module must never know what a ratio is of."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from crds.schema import Rule, rules

PATTERN: Final = "^(100|[1-9]?[0-9])%$"
HOW_TO_WRITE: Final = 'write a share of the whole from "0%" to "100%", in quotes, like "80%"'


def at_least(share: str, whole: int) -> int:
    """The smallest number that is not less than this share of the whole."""
    return -(-int(share.removesuffix("%")) * whole // 100)


def _checked(share: str) -> str:
    if not re.fullmatch(PATTERN, share):
        raise ValueError(f"{share[:40]!r} is no ratio: {HOW_TO_WRITE}")
    return share


Percent = Annotated[
    str,
    Field(max_length=len("100%"), json_schema_extra=rules(Rule(f"self.matches('{PATTERN}')", HOW_TO_WRITE))),
    AfterValidator(_checked),
]
