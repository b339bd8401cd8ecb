"""Who reads what a command says: people, or programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Any

import orjson
import typer
import yaml


class Output(StrEnum):
    """In which form."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def parsed(text: str) -> Output:
    """The value of `-o`.

    Raises:
        BadParameter: it is none of the forms.
    """
    try:
        return Output(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither table, json nor yaml") from None


def write(document: dict[str, Any], form: Output) -> None:
    """One document to standard output."""
    if form is Output.YAML:
        sys.stdout.write(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100))
    else:
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
