"""A JSON patch as the Kubernetes API server applies it, which is not quite as the RFC says.

A test with null passes on an absent key; a test under an absent parent fails; a key can't be added to a map
that is not there. All operations are applied, or none.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


class Refused(Exception):  # noqa: N818 - it is the API server's answer, not an error of the test's
    """422: nothing was applied. `op` is the operation at which it ended."""

    def __init__(self, op: Json) -> None:
        super().__init__(f"{op['op']} {op['path']}")
        self.op = op


def applied(document: Json, ops: Iterable[Json]) -> Json:
    """The patched document; the one that was given is left as it is.

    Raises:
        Refused: a test failed, or an operation has no place to go.
    """
    result = copy.deepcopy(document)
    for op in ops:
        _apply(result, op)
    return result


def refused(document: Json, ops: Iterable[Json]) -> bool:
    try:
        applied(document, ops)
    except Refused:
        return True
    return False


def _apply(document: Json, op: Json) -> None:
    parent, key = _place(document, op)
    if op["op"] == "test":
        if parent.get(key) != op["value"]:
            raise Refused(op)
    elif op["op"] == "add":
        parent[key] = copy.deepcopy(op["value"])
    else:
        raise AssertionError(f"the protocol knows tests and adds alone, not {op['op']}")


def _place(document: Json, op: Json) -> tuple[Json, str]:
    *parents, key = (part.replace("~1", "/").replace("~0", "~") for part in op["path"].split("/")[1:])
    found: Any = document
    for part in parents:
        found = found.get(part) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise Refused(op)
    return found, key
