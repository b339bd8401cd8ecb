"""Reading stored objects: one sentence instead of a stack of validation errors.

The API server checked every object when it came in, but perhaps under an older schema. What is
raised here is a ValueError and nothing else, so that a bad object becomes a condition, never a crash.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from crds.schema import Model

Parsed = TypeVar("Parsed", bound=Model)


def parsed(model: type[Parsed], obj: Mapping[str, Any]) -> Parsed:
    """Read a whole object; a status that can't be read is left out.

    Raises:
        ValueError: in one readable sentence.
    """
    try:
        return model.model_validate(obj)
    except ValidationError as error:
        if any(item["loc"][:1] != ("status",) for item in error.errors()):
            raise ValueError(sentence(error)) from None
    return model.model_validate({key: value for key, value in obj.items() if key != "status"})


def parsed_part(model: type[Parsed], part: object, *, at: str) -> Parsed:
    """Read one part of an object that stands at this path.

    Raises:
        ValueError: in one readable sentence.
    """
    try:
        return model.model_validate(part)
    except ValidationError as error:
        raise ValueError(sentence(error, at=at)) from None


def sentence(error: ValidationError, *, at: str = "") -> str:
    """Say the first thing that is wrong, and how many more there are."""
    first, *others = error.errors(include_url=False)
    where = ".".join(str(step) for step in (*filter(None, [at]), *first["loc"])) or "the object"
    what = first["msg"].removeprefix("Value error, ")
    more = f" (and {len(others)} more)" if others else ""
    return f"{where}: {what}{more}"
