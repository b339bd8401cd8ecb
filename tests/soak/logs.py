"""What a controller's log says that it should not. Pure: text in, lines out."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

NOT_LEADING = "not leading"
_ERRORS = frozenset({"error", "critical"})
_ALARMING = (
    "Traceback",
    "Error",
    "never retrieved",
    "never awaited",
    "Unclosed",
    "Warning",
    "destroyed",
)
_PASSING = "will retry"  # kopf, while the API server is away


def complaints(log: str, *, lost_its_lease: bool = False) -> Iterator[str]:
    """Lines of an error's level, and whatever was not written by our logger and smells of one.

    `lost_its_lease`: whether it was made to, and may say so.
    """
    for line in log.splitlines():
        if not line.startswith("{"):
            if _PASSING not in line and any(word in line for word in _ALARMING):
                yield line
            continue
        said = msgspec.json.decode(line)
        expected = lost_its_lease and str(said.get("event", "")).startswith(NOT_LEADING)
        if (said.get("level") in _ERRORS and not expected) or "Traceback" in line:
            yield line
