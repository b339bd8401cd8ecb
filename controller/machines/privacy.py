"""What a guest is told in private, and how it is taken out of sentences that others read.

Webhooks and policies quote what they refuse; what they say goes into conditions, claims' too, and into logs.
Pure. It must never let a private text through because of how it was quoted, escaped or encoded: whatever a
sentence has in common with one, eight characters or more, is left out.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crds.pool import VirtualMachinePool

GRAM = 8
"""Characters that are too many for a coincidence; a shorter private text can't be told from a word."""
OMITTED = "…"
_KEYS = frozenset({"userData", "networkData", "kernelArgs", "url"})
_ENCODED = frozenset({"userDataBase64", "networkDataBase64"})


def private_texts(pool: VirtualMachinePool) -> tuple[str, ...]:
    """What the pool's template tells a guest, or notes in annotations."""
    metadata = pool.spec.template.metadata
    notes = (metadata.annotations or {}).values() if metadata else ()
    return (*notes, *_found(pool.spec.template.spec))


def redacted(text: str, private: Iterable[str]) -> str:
    """The text without what it has in common with any of the private ones."""
    secrets = [each for each in private if len(each) >= GRAM]
    hidden: set[int] = set()
    for start in range(len(text) - GRAM + 1):
        gram = text[start : start + GRAM]
        if any(gram in each for each in secrets):
            hidden.update(range(start, start + GRAM))
    return "".join(_shown(text, hidden))


def _shown(text: str, hidden: set[int]) -> Iterator[str]:
    for at, character in enumerate(text):
        if at not in hidden:
            yield character
        elif at - 1 not in hidden:
            yield OMITTED


def _found(value: Any) -> Iterator[str]:
    """The private texts anywhere in a template, those in base64 both as they are and decoded."""
    if isinstance(value, list):
        for each in value:
            yield from _found(each)
    if not isinstance(value, Mapping):
        return
    for key, each in value.items():
        if key == "annotations" and isinstance(each, Mapping):
            yield from (note for note in each.values() if isinstance(note, str))
        elif isinstance(each, str):
            if key in _KEYS | _ENCODED:
                yield each
            if key in _ENCODED:
                yield _decoded(each)
        else:
            yield from _found(each)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
