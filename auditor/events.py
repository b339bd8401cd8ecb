"""What the auditor is told, what it answers, and how a run is kept in a file and judged again.

Nothing here decides anything; the words are shared by the feed, the order and the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import orjson

Object: TypeAlias = dict[str, Any]
"""One object as the API server sent it."""


class Kind(StrEnum):
    """The kinds that are watched. A namespace only matters for its end, which takes everything with it."""

    POOL = "VirtualMachinePool"
    CLAIM = "VirtualMachineClaim"
    VM = "VirtualMachine"
    NAMESPACE = "Namespace"


SHORT = {Kind.POOL: "pool", Kind.CLAIM: "claim", Kind.VM: "VM", Kind.NAMESPACE: "namespace"}
"""What a sentence calls one."""


class Change(StrEnum):
    """What an event says."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    DARK = "DARK"
    """From this resourceVersion up to `until` nothing is known of the kind."""
    LISTED = "LISTED"
    """All objects of the kind at this resourceVersion; how they came about is not known."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, at `rv`: the resourceVersions of all kinds are one etcd's revisions."""

    kind: Kind
    change: Change
    rv: int
    objects: tuple[Object, ...] = ()
    until: int = 0
    why: str = ""
    """Of DARK: why nothing is known; empty at the start of a watch, where that is no surprise."""


class Rule(StrEnum):
    """What can be broken."""

    I1 = "I1"
    """A VM carries at most one claim UID in its life, and no two claims hold one VM."""
    I2 = "I2"
    """A claim's status names its VM once and never another."""
    I3 = "I3"
    """A VM in use is deleted only through its claim, and no claim gets a VM that is being deleted."""
    I4 = "I4"
    """Every VM of ours has the one owner that its labels say."""
    I5 = "I5"
    """What a released VM knew reaches nobody else."""
    FOREIGN = "foreign"
    """A VM that is not ours is never touched."""
    LEAK = "leak"
    """At rest, no VM is held that no claim names."""
    REST = "rest"
    """At rest, every claim says what is true."""
    GAP = "gap"
    """Something was not seen: the auditor cannot vouch for what lies in there."""


@dataclass(frozen=True, slots=True)
class About:
    """The object that something is said of."""

    kind: Kind
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{SHORT[self.kind]} {self.namespace}/{self.name} ({self.uid})"


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: at which resourceVersion, on which object, and what happened."""

    rule: Rule
    rv: int
    subject: str
    message: str
    about: About | None = field(default=None, compare=False)
    """The subject, where it is an object."""

    def __str__(self) -> str:
        return f"{self.rule} at {self.rv}: {self.subject}: {self.message}"


class NoEventError(ValueError):
    """A line of a recording is no event, or it has none."""


@dataclass(slots=True)
class Recording:
    """Events as JSON lines, in the order in which they were judged."""

    path: Path
    _lines: int = field(default=0, init=False)

    def add(self, events: Iterable[Event]) -> None:
        """Append the events; the file begins anew with the first one."""
        with self.path.open("ab" if self._lines else "wb") as file:
            for event in events:
                file.write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))
                self._lines += 1

    def read(self) -> Iterator[Event]:
        """The events of the file.

        Raises:
            NoEventError: a line is none, or there is none: that nothing happened proves nothing.
        """
        lines = self.path.read_bytes().splitlines()
        if not lines:
            raise NoEventError(f"{self.path} holds no event")
        for number, line in enumerate(lines, start=1):
            try:
                raw = orjson.loads(line)
                raw |= {"kind": Kind(raw["kind"]), "change": Change(raw["change"])}
                yield Event(**raw | {"objects": tuple(raw["objects"])})
            except (ValueError, KeyError, TypeError) as error:
                raise NoEventError(f"{self.path}:{number} is no event: {error}") from error
