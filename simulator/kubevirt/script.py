"""A script: the writes of a stretch of a VM's life, each at its time. Data, so that tests can read it.

Pure. The two rules of KubeVirt's control loops live here as functions over scripts: a late copy (`lagging`)
and what merges when the writer is behind (`due`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final


class Verb(StrEnum):
    FILL_DEFAULTS = "fill-defaults"  # VM, merge patch: what the webhook would have done at creation
    VM_STATUS = "vm-status"  # VM, merge patch of /status
    ANNOTATE = "annotate"  # VM, PUT with resourceVersion
    FINALIZE = "finalize"  # VM, JSON patch
    UNFINALIZE = "unfinalize"  # VM, JSON patch
    CREATE = "create"  # VMI, POST
    ADOPT = "adopt"  # VMI, merge patch of its owner
    VMI = "vmi"  # VMI, merge patch (it has no status subresource)
    DELETE = "delete"  # VMI, DELETE with its uid
    UNFINALIZE_VMI = "unfinalize-vmi"  # VMI, JSON patch
    WARN = "warn"  # a Warning event on the VMI
    LOSE_NODE = "lose-node"  # no write: the node's lease stops


@dataclass(frozen=True, slots=True)
class Write:
    """One write, `at` seconds after its script began; `name` is for people."""

    at: float
    verb: Verb
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)


Script = tuple[Write, ...]
ON_VM: Final = frozenset({Verb.FILL_DEFAULTS, Verb.VM_STATUS, Verb.ANNOTATE, Verb.FINALIZE, Verb.UNFINALIZE})


def ordered(writes: Sequence[Write], *, delay: float = 0.0) -> Script:
    """By time, otherwise as given; `delay` seconds later altogether."""
    moved = writes if not delay else [replace(write, at=write.at + delay) for write in writes]
    return tuple(sorted(moved, key=lambda write: write.at))


def lagging(script: Script, lag: float) -> Script:
    """Let the VM's status trail its VMI by `lag` seconds, what falls into one lag merged into its last.

    The first status (`Stopped`) comes in time: it is what a VM shows until the loop gets to it again.
    """
    if not lag:
        return script
    statuses = [index for index, write in enumerate(script) if write.verb is Verb.VM_STATUS]
    late = statuses[1:] if statuses and script[statuses[0]].name == "Stopped" else statuses
    merged = {index for index, following in pairwise(late) if script[following].at - script[index].at < lag}
    moved = [
        replace(write, at=write.at + lag) if index in late else write
        for index, write in enumerate(script)
        if index not in merged
    ]
    return ordered(moved)


def due(script: Script, index: int, elapsed: float) -> int:
    """The write to make next, at or after `index`: a VM status whose successor is due too is skipped.

    That is what a burst does to KubeVirt: nine writes to a VM merge to five.
    """
    while script[index].verb is Verb.VM_STATUS:
        following = next(
            (at for at in range(index + 1, len(script)) if script[at].verb is Verb.VM_STATUS), None
        )
        if following is None or script[following].at > elapsed:
            break
        index += 1
    return index
