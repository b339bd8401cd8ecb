"""What an API server recorded in its audit log: who wrote or read what, when, and what came of it.

Processes of one account are told apart by the User-Agent. Pure but for reading the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

READS = frozenset({"get", "list", "watch"})
LEASES = "leases"


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. Times are seconds since the epoch, by the API server's clock."""

    agent: str
    verb: str
    resource: str
    name: str
    status: int
    received: float
    answered: float
    dry_run: bool = False

    @property
    def writes(self) -> bool:
        """Whether it changed anything."""
        return self.verb not in READS and self.status < 300 and not self.dry_run

    @property
    def about_the_lease(self) -> bool:
        return self.resource == LEASES


def read(path: Path) -> list[Entry]:
    """The finished requests in the order in which they came; a last line that is cut is left out."""
    lines = path.read_bytes().split(b"\n")[:-1]
    events = (json.loads(line) for line in lines)
    found = [_entry(event) for event in events if event["stage"] == "ResponseComplete"]
    return sorted(found, key=lambda each: each.received)


def _entry(event: dict[str, Any]) -> Entry:
    about = event.get("objectRef", {})
    return Entry(
        event.get("userAgent", ""),
        event["verb"],
        "/".join(filter(None, (about.get("resource", ""), about.get("subresource", "")))),
        about.get("name", ""),
        event.get("responseStatus", {}).get("code", 0),
        _seconds(event["requestReceivedTimestamp"]),
        _seconds(event["stageTimestamp"]),
        "dryRun=" in event.get("requestURI", ""),
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def holders(entries: Iterable[Entry], lease: str) -> list[str]:
    """Who held this lease, one after the other."""
    found: list[str] = []
    for each in sorted(entries, key=lambda each: each.answered):
        if _takes(each, lease) and found[-1:] != [each.agent]:
            found.append(each.agent)
    return found


def _takes(each: Entry, lease: str) -> bool:
    """Or renews it, or frees it: who takes it is the first to write to it after another."""
    return each.about_the_lease and each.name == lease and each.writes


def after_their_time(entries: Iterable[Entry], lease: str) -> list[Entry]:
    """What processes changed that had held this lease, after another one had taken it.

    A lease that a holder frees by a clean stop is its own last word; only who takes it ends its time.
    """
    holder, former = "", set[str]()
    found = []
    for each in sorted(entries, key=lambda each: each.answered):
        if _takes(each, lease) and each.agent != holder:
            former.add(holder)
            former.discard(each.agent)
            holder = each.agent
        elif each.writes and each.agent in former:
            found.append(each)
    return found
