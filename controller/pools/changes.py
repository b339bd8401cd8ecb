"""What follows when a Secret or ConfigMap that a template refers to changes. Pure.

A VM reads most of them once, when it starts: one that was made before a change holds what they said then.
Nothing here ever sees what is in them: a UID and a resourceVersion tell that they changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from controller.pools.references import Kind, Reference
from crds.conditions import PoolReason, Truth
from crds.pool_status import ReferencedObject
from crds.schema import written_time


@dataclass(frozen=True, slots=True)
class Found:
    """It is there, and this tells one version of it from another."""

    uid: str
    version: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Whether it is there could not be found out."""

    why: str


Read: TypeAlias = Found | Unread | None
"""What came of looking for one; None: it is not there."""


@dataclass(frozen=True, slots=True)
class Data:
    """All that the template refers to, as it was last seen."""

    objects: tuple[ReferencedObject, ...] = ()
    missing: tuple[str, ...] = ()
    unread: str = ""
    watched: bool = False
    """The template refers to something."""

    @property
    def changed(self) -> bool:
        """Whether a change of any was ever noticed: else no VM can be older than what it refers to."""
        return any(each.changed_at is not None for each in self.objects)


def seen(before: Iterable[ReferencedObject], reads: Mapping[Reference, Read], asked_at: float) -> Data:
    """What is known after looking; `before` is what was known, `asked_at` when the looking began.

    What is seen for the first time is no change: which version the VMs hold that there are is not known. One
    that could not be read, or is away, is remembered, so that a change in the meantime is noticed.
    """
    known: dict[tuple[Kind, str], ReferencedObject] = {(each.kind, each.name): each for each in before}
    objects = [
        entry
        for reference, read in reads.items()
        if reference.held
        and (entry := _entry(reference, known.get((reference.kind, reference.name)), read, asked_at))
    ]
    return Data(
        objects=tuple(objects),
        missing=tuple(str(each) for each, read in reads.items() if read is None and not each.optional),
        unread=next((read.why for read in reads.values() if isinstance(read, Unread)), ""),
        watched=bool(reads),
    )


def changed(data: Data | None, created: Sequence[float]) -> tuple[Truth, str, str] | None:
    """The verdict of ReferencedDataChanged; None where there is nothing to say.

    `created` is when each unclaimed VM was made, in epoch seconds.
    """
    if data is None or not data.watched:
        return None
    if data.missing:
        them = "it is" if len(data.missing) == 1 else "they are"
        absent = "does not exist" if len(data.missing) == 1 else "do not exist"
        sentence = f"{_listed(data.missing)} {absent}: no VM can start until {them} there"
        return Truth.TRUE, PoolReason.DATA_MISSING, sentence
    if stale := [(each, count) for each in data.objects if (count := _older(each, created))]:
        return Truth.TRUE, PoolReason.DATA_CHANGED, _stale_sentence(stale)
    if data.unread:
        return Truth.UNKNOWN, PoolReason.DATA_UNREADABLE, data.unread
    return Truth.FALSE, PoolReason.DATA_UNCHANGED, "no unclaimed VM is older than what it refers to"


def _entry(
    reference: Reference, known: ReferencedObject | None, read: Read, asked_at: float
) -> ReferencedObject | None:
    if not isinstance(read, Found):
        return known
    if known is not None and (known.uid, known.resource_version) == (read.uid, read.version):
        return known
    return ReferencedObject(
        kind=reference.kind,
        name=reference.name,
        uid=read.uid,
        resource_version=read.version,
        changed_at=None if known is None else datetime.fromtimestamp(asked_at, UTC),
    )


def _older(entry: ReferencedObject, created: Sequence[float]) -> int:
    if entry.changed_at is None:
        return 0
    at = entry.changed_at.timestamp()
    return sum(each < at for each in created)


def _stale_sentence(stale: list[tuple[ReferencedObject, int]]) -> str:
    parts = [
        f"{each.kind} {each.name} changed (seen at {written_time(each.changed_at)}), "
        f"{count} unclaimed VM{'s were' if count > 1 else ' was'} made before"
        for each, count in stale
        if each.changed_at is not None
    ]
    return (
        f"{'; '.join(parts)}: they may hold what it said then. To have them replaced set updateStrategy.type "
        "to RollingUpdate and change the template, for instance an annotation in spec.template.metadata"
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
