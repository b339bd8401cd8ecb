"""What happens to a VM or a claim's status after the commit: release, loss, expiry. Pure procedures.

Policy Delete: the VM is destroyed by its uid; the garbage collector would do the same if we were away.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from controller.claims import patches
from controller.claims.objects import Claim
from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
    Denied,
    Done,
    FoundClaim,
    FoundVM,
    Invalid,
    Missing,
    Next,
    NotApplied,
    Ops,
    PatchClaimStatus,
    ReadVM,
    StepName,
    TestRefused,
    Unknown,
)


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"  # the claim or the VM is not as we believed: decide anew from what is seen next
    GIVEN_UP = "given-up"  # refused for a reason that waiting may cure
    ALIVE = "alive"  # the VM that was missed lives


@dataclass(frozen=True, slots=True)
class Release:
    """Destroy a published VM whose claim is watched gone, or says Releasing."""

    name: str
    uid: str
    done: Done | None = None
    gone: bool = False  # it was not there any more

    def next(self) -> Next:
        return self.done or DeleteVM(StepName.RELEASE_DELETE, self.name, self.uid)

    def observe(self, answer: Answer) -> "Release":
        match answer:
            case Accepted():
                return replace(self, done=Done(Outcome.DONE))
            case Missing():
                return replace(self, done=Done(Outcome.DONE), gone=True)
            case Unknown() | NotApplied():
                return self
            case _:
                return replace(self, done=Done(Outcome.GIVEN_UP))


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """One guarded write of a claim's status. A refusal is an answer: what was seen is not so any more."""

    step: StepName
    claim: Claim
    ops: Ops
    done: Done | None = None
    result: Claim | None = None

    def next(self) -> Next:
        return self.done or PatchClaimStatus(self.step, self.claim.name, self.ops)

    def observe(self, answer: Answer) -> "StatusWrite":
        match answer:
            case FoundClaim(claim):
                return replace(self, done=Done(Outcome.DONE), result=claim)
            case TestRefused() | Missing():
                return replace(self, done=Done(Outcome.REFUSED))
            case Unknown() | NotApplied():
                return self
            case Invalid(message) | Denied(message):
                return replace(self, done=Done(Outcome.GIVEN_UP, message))
            case _:
                return replace(self, done=Done(Outcome.GIVEN_UP))


def expire(claim: Claim, status: dict[str, Any]) -> StatusWrite:
    """Bound → Releasing before the VM is touched, refused if the lifetime was changed meanwhile."""
    whose, *rest = patches.whole_status(claim, status, alive=True)
    lifetime = patches.test("/spec/lifetime", claim.spec.lifetime)
    return StatusWrite(StepName.EXPIRE_STATUS, claim, (whose, lifetime, *rest))  # the UID's test stays first


class LostStage(StrEnum):
    READ_VM = "read-vm"
    WRITE_CLAIM = "write-claim"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Lost:
    """A Bound claim whose VM the cache does not have: Lost only after an uncached read says so."""

    claim: Claim
    vm_name: str
    vm_uid: str
    status: dict[str, Any]
    stage: LostStage = LostStage.READ_VM
    done: Done = field(default=Done(Outcome.GIVEN_UP))
    result: Claim | None = None

    def next(self) -> Next:
        match self.stage:
            case LostStage.READ_VM:
                return ReadVM(StepName.LOST_READ_VM, self.vm_name)
            case LostStage.WRITE_CLAIM:
                return PatchClaimStatus(
                    StepName.LOST_STATUS, self.claim.name, patches.whole_status(self.claim, self.status)
                )
            case LostStage.OVER:
                return self.done

    def observe(self, answer: Answer) -> "Lost":
        match self.stage, answer:
            case LostStage.READ_VM, FoundVM(vm) if vm.metadata.uid == self.vm_uid:
                return self._over(Outcome.ALIVE)
            case LostStage.READ_VM, FoundVM() | Missing():
                return replace(self, stage=LostStage.WRITE_CLAIM)
            case LostStage.WRITE_CLAIM, FoundClaim(claim):
                return replace(self, result=claim)._over(Outcome.DONE)
            case LostStage.WRITE_CLAIM, TestRefused() | Missing():
                return self._over(Outcome.REFUSED)
            case _, Unknown() | NotApplied():
                return self
            case _:
                return self._over(Outcome.GIVEN_UP)

    def _over(self, outcome: Outcome) -> "Lost":
        return replace(self, stage=LostStage.OVER, done=Done(outcome))
