"""The hand-over: write 1 gives the VM to the claim, write 2 publishes it in the claim's status.

A pure procedure. It never tries another VM: a definite refusal ends it and the claim goes back to the head
of the queue; an unknown outcome sends the very same write again until the answer is definite.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from controller.claims import patches, status
from controller.claims.decide import Verdict, decide
from controller.claims.objects import Claim
from controller.claims.protocol import (
    Answer,
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
    PatchVM,
    ReadClaim,
    ReadVM,
    StepName,
    TestRefused,
    Unknown,
)
from controller.claims.status import Terms
from controller.machines.objects import VirtualMachine, VirtualMachineInstance
from crds import names


class Outcome(StrEnum):
    """How a hand-over ends."""

    BOUND = "bound"  # published
    VM_TAKEN = "vm-taken"  # the VM is not free any more: next VM, same claim
    NOT_APPLIED = "not-applied"  # refused for now: same claim, later
    METADATA_REFUSED = "metadata-refused"  # the claim's own metadata is at fault: the queue goes on
    DENIED = "denied"  # admission says no: the pool waits
    HELD = "held"  # the VM carries the claim's UID and is not published: repair decides by its table


class Stage(StrEnum):
    WRITE_VM = "write-vm"
    READ_VM = "read-vm"
    WRITE_CLAIM = "write-claim"
    READ_CLAIM = "read-claim"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class HandOver:
    """One VM to one claim.

    `terms` are what the bind records (pool, times), `doubt` remembers that write 1 was once sent without a
    definite answer, so that a later "not applied" can't be believed. `refused` is how a later try was
    refused: if the VM is not ours, that is the reason, and not that somebody took it.
    """

    claim: Claim
    vm: VirtualMachine
    vmi: VirtualMachineInstance | None
    terms: Terms
    stage: Stage = Stage.WRITE_VM
    doubt: bool = False
    refused: Done | None = None
    done: Done = field(default=Done(Outcome.HELD))

    def next(self) -> Next:
        match self.stage:
            case Stage.WRITE_VM:
                return PatchVM(
                    StepName.HAND_OVER_VM, self.vm.metadata.name, patches.hand_over(self.vm, self.claim)
                )
            case Stage.READ_VM:
                return ReadVM(StepName.HAND_OVER_READ_VM, self.vm.metadata.name)
            case Stage.WRITE_CLAIM:
                return PatchClaimStatus(StepName.HAND_OVER_CLAIM, self.claim.name, self._publication())
            case Stage.READ_CLAIM:
                return ReadClaim(StepName.HAND_OVER_READ_CLAIM, self.claim.name)
            case Stage.OVER:
                return self.done

    def observe(self, answer: Answer) -> "HandOver":
        match self.stage:
            case Stage.WRITE_VM:
                return self._wrote_vm(answer)
            case Stage.READ_VM:
                return self._read_vm(answer)
            case Stage.WRITE_CLAIM:
                return self._wrote_claim(answer)
            case _:
                return self._read_claim(answer)

    # ---- one table per stage

    def _wrote_vm(self, answer: Answer) -> "HandOver":
        match answer:
            case FoundVM(vm, at):
                return replace(self, stage=Stage.WRITE_CLAIM, vm=vm, terms=self.terms.at(at))
            case TestRefused() | Missing():
                return replace(self, stage=Stage.READ_VM)  # which test, and was it our own late write?
            case Invalid(message) if not self.doubt:
                return self._over(Outcome.METADATA_REFUSED, message)
            case Denied(message) if not self.doubt:
                return self._over(Outcome.DENIED, message)
            case NotApplied(why) if not self.doubt:
                return self._over(Outcome.NOT_APPLIED, why)
            case Unknown():
                return replace(self, doubt=True)  # the same patch to the same VM, never another VM
            case NotApplied():
                return self  # this try was not, and an earlier one may be yet: the same patch still
            case Invalid(message):
                return self._doubted(Outcome.METADATA_REFUSED, message)
            case Denied(message):
                return self._doubted(Outcome.DENIED, message)
            case _:
                return replace(self, stage=Stage.READ_VM)

    def _read_vm(self, answer: Answer) -> "HandOver":
        match answer:
            case FoundVM(vm, at) if self._carried(vm):
                return replace(self, stage=Stage.WRITE_CLAIM, vm=vm, terms=self.terms.at(at))
            case FoundVM(vm) if taken := self._taken_keys(vm):
                return self._over(Outcome.METADATA_REFUSED, f"the VM has {', '.join(taken)} already")
            case FoundVM(vm) if self.refused is not None and self._free(vm):
                return replace(self, stage=Stage.OVER, done=self.refused)
            case FoundVM() | Missing():
                return self._over(Outcome.VM_TAKEN)
            case Invalid(message) | Denied(message):
                return self._over(Outcome.DENIED, message)  # we may not look: the pool waits
            case _:
                return self  # a read that did not answer says nothing: read again

    def _wrote_claim(self, answer: Answer) -> "HandOver":
        match answer:
            case FoundClaim(claim):
                return replace(self, claim=claim)._over(Outcome.BOUND)
            case TestRefused() | Missing():
                return replace(self, stage=Stage.READ_CLAIM)
            case Invalid(message) | Denied(message):
                return self._over(Outcome.HELD, message)
            case _:
                return self  # the VM is held: the same write until the answer is definite

    def _read_claim(self, answer: Answer) -> "HandOver":
        match answer:
            case FoundClaim(claim):
                now = claim if claim.uid == self.claim.uid else None
            case Missing():
                now = None
            case Invalid(message) | Denied(message):
                return self._over(Outcome.HELD, message)
            case _:
                return self
        if now is None:
            return self._over(Outcome.HELD)
        match decide(self.vm, now):
            case Verdict.PUBLISH:
                return replace(self, stage=Stage.WRITE_CLAIM, claim=now)
            case Verdict.PUBLISHED:
                return replace(self, claim=now)._over(Outcome.BOUND)
            case _:
                return self._over(Outcome.HELD)

    # ---- inside

    def _publication(self) -> Ops:
        return patches.whole_status(self.claim, status.bound(self.claim, self.vm, self.vmi, self.terms))

    def _carried(self, vm: VirtualMachine) -> bool:
        meta = vm.metadata
        return (
            meta.uid == self.vm.metadata.uid
            and meta.labels.get(names.LABEL_CLAIM_UID) == self.claim.uid
            and meta.labels.get(names.LABEL_STATE) == names.Mark.CLAIMED
        )

    def _taken_keys(self, vm: VirtualMachine) -> list[str]:
        return patches.taken_keys(vm, self.claim) if self._free(vm) else []

    def _free(self, vm: VirtualMachine) -> bool:
        same = vm.metadata.uid == self.vm.metadata.uid
        return same and vm.metadata.labels.get(names.LABEL_STATE) == names.Mark.POOLED

    def _doubted(self, outcome: Outcome, message: str) -> "HandOver":
        """Refused now, but an earlier try may have landed: the VM says."""
        return replace(self, stage=Stage.READ_VM, refused=Done(outcome, message))

    def _over(self, outcome: Outcome, message: str = "") -> "HandOver":
        return replace(self, stage=Stage.OVER, done=Done(outcome, message))
