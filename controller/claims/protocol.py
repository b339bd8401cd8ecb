"""The vocabulary of the hand-over protocol: the steps that may be taken and the answers that may come.

A procedure (hand-over, release, repair, drain) is a frozen value with `next()`, the step it wants taken or
`Done`, and `observe(answer)`, the procedure after that answer. It does no I/O and reads no clock, so that a
test can drive it through every interleaving over a model of the API server.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, Self

from controller.claims.objects import Claim
from controller.machines.objects import VirtualMachine

Ops = tuple[dict[str, Any], ...]


class StepName(StrEnum):
    """Each write and read of the protocol; faults are injected and requests are counted by these names."""

    HAND_OVER_VM = "hand-over/vm"
    HAND_OVER_CLAIM = "hand-over/claim"
    HAND_OVER_READ_VM = "hand-over/read-vm"
    HAND_OVER_READ_CLAIM = "hand-over/read-claim"
    REPAIR_READ_VM = "repair/read-vm"
    REPAIR_READ_CLAIM = "repair/read-claim"
    REPAIR_CONFIRM = "repair/confirm"
    REPAIR_PUBLISH = "repair/publish"
    REPAIR_RELABEL = "repair/relabel"
    REPAIR_DESTROY = "repair/destroy"
    RELEASE_DELETE = "release/delete"
    EXPIRE_STATUS = "expire/status"
    FINISH_STATUS = "finish/status"
    LOST_READ_VM = "lost/read-vm"
    LOST_STATUS = "lost/status"
    CLAIM_STATUS = "claim/status"
    CLAIM_QUEUE = "claim/queue"
    CLAIM_TTL = "claim/ttl"
    DRAIN_MARK = "drain/mark"
    DRAIN_DELETE = "drain/delete"
    RESYNC = "resync/list"
    RESYNC_LABELS = "resync/labels"
    POOL_CREATE = "pool/create"
    POOL_READ_VM = "pool/read-vm"
    POOL_DRY_RUN = "pool/dry-run"
    POOL_STATUS = "pool/status"
    POOL_FINALIZER = "pool/finalizer"
    POOL_READ = "pool/read"
    POOL_REFERENCE = "pool/reference"
    POOL_LOOK = "pool/look"
    POOL_HISTORY_READ = "pool/history-read"
    POOL_HISTORY_MAKE = "pool/history-make"
    POOL_HISTORY_WRITE = "pool/history-write"


# ---- steps


@dataclass(frozen=True, slots=True)
class PatchVM:
    step: StepName
    name: str
    ops: Ops


@dataclass(frozen=True, slots=True)
class DeleteVM:
    step: StepName
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ReadVM:
    step: StepName
    name: str


@dataclass(frozen=True, slots=True)
class PatchClaimStatus:
    step: StepName
    name: str
    ops: Ops


@dataclass(frozen=True, slots=True)
class ReadClaim:
    step: StepName
    name: str


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a procedure: how it came out, and a sentence where a person has to know why."""

    outcome: str
    message: str = ""


Step = PatchVM | DeleteVM | ReadVM | PatchClaimStatus | ReadClaim
Next = Step | Done


# ---- answers


@dataclass(frozen=True, slots=True)
class FoundVM:
    """A read's answer, or the VM as it is after a patch; `at` is when it came (epoch seconds)."""

    vm: VirtualMachine
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundClaim:
    """A read's answer, or the claim as it is after a patch."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Accepted:
    """A delete was accepted."""


@dataclass(frozen=True, slots=True)
class Missing:
    """404, or a delete whose uid precondition failed: the object that was meant is gone."""


@dataclass(frozen=True, slots=True)
class TestRefused:
    """A test of the patch failed: nothing was applied, and what we believed is not so."""

    __test__ = False  # pytest would take the name for a test class


@dataclass(frozen=True, slots=True)
class Invalid:
    """The patched object would be invalid: nothing was applied, and what we put into it is at fault."""

    message: str


@dataclass(frozen=True, slots=True)
class Denied:
    """An admission webhook or policy, a quota or RBAC refused: nothing was applied."""

    message: str


@dataclass(frozen=True, slots=True)
class NotApplied:
    """409, 429, never sent: nothing was applied, and another time it may be.

    `why` is for people, where somebody has to put something right: a webhook that does not answer.
    """

    why: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """5xx, cut, time-out: applied or not, or applied later."""


Answer = FoundVM | FoundClaim | Accepted | Missing | TestRefused | Invalid | Denied | NotApplied | Unknown


class Procedure(Protocol):
    """What the executor drives: `next` until it is Done, `observe` with each answer."""

    def next(self) -> Next: ...

    def observe(self, answer: Answer) -> Self: ...
