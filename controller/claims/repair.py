"""Repair: a VM in state Claimed that nobody's task has in hand and no Bound claim names.

A pure procedure: uncached read of the VM, then of its claim, then the table of `decide`. Level-triggered: it
is run for what is seen, whatever led there (a crash, a lost reply, two leaders, a person).
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from controller.claims import patches, status
from controller.claims.decide import Verdict, decide
from controller.claims.objects import Claim
from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
    Done,
    FoundClaim,
    FoundVM,
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
from controller.machines.ownership import controller_reference, forged, given_by_hand
from crds import names


class Outcome(StrEnum):
    NOTHING = "nothing"  # all is well, or it is nothing of ours
    PUBLISHED = "published"
    DESTROYED = "destroyed"
    LEFT = "left"  # a person's now
    GIVEN_UP = "given-up"  # refused for a reason that waiting may cure: the next pass tries anew


class Stage(StrEnum):
    READ_VM = "read-vm"
    RELABEL = "relabel"
    READ_CLAIM = "read-claim"
    CONFIRM = "confirm"
    PUBLISH = "publish"
    DESTROY = "destroy"
    OVER = "over"


def claim_name(vm: VirtualMachine) -> str:
    """The claim's name as its owner reference says, else as the hand-over noted it."""
    reference = controller_reference(vm.metadata)
    if reference is not None and reference.uid == vm.metadata.labels.get(names.LABEL_CLAIM_UID):
        return reference.name
    return vm.metadata.annotations.get(names.ANNOTATION_CLAIM, "")


@dataclass(frozen=True, slots=True)
class Repair:
    """One VM that carries a claim's UID. `terms` are those of a bind, should it come to write 2."""

    name: str
    uid: str
    terms: Terms
    vmi: VirtualMachineInstance | None = None
    vm: VirtualMachine | None = None
    claim: Claim | None = None
    stage: Stage = Stage.READ_VM
    done: Done = field(default=Done(Outcome.NOTHING))

    def next(self) -> Next:
        match self.stage:
            case Stage.READ_VM:
                return ReadVM(StepName.REPAIR_READ_VM, self.name)
            case Stage.CONFIRM:
                return ReadVM(StepName.REPAIR_CONFIRM, self.name)
            case Stage.RELABEL:
                return PatchVM(StepName.REPAIR_RELABEL, self.name, self._relabelling())
            case Stage.READ_CLAIM:
                return ReadClaim(StepName.REPAIR_READ_CLAIM, claim_name(self._vm))
            case Stage.PUBLISH:
                return PatchClaimStatus(StepName.REPAIR_PUBLISH, self._claim.name, self._publication())
            case Stage.DESTROY:
                return DeleteVM(StepName.REPAIR_DESTROY, self.name, self.uid)
            case Stage.OVER:
                return self.done

    def observe(self, answer: Answer) -> "Repair":
        match self.stage:
            case Stage.READ_VM | Stage.RELABEL:
                return self._saw_vm(answer)
            case Stage.READ_CLAIM:
                return self._saw_claim(answer)
            case Stage.CONFIRM:
                return self._confirmed(answer)
            case Stage.PUBLISH:
                return self._published(answer)
            case _:
                return self._destroyed(answer)

    # ---- one table per stage

    def _saw_vm(self, answer: Answer) -> "Repair":
        match answer:
            case FoundVM(vm) if vm.metadata.uid == self.uid:
                return replace(self, vm=vm)._judged_vm()
            case FoundVM() | Missing():
                return self._over(Outcome.NOTHING)
            case TestRefused():
                return replace(self, stage=Stage.READ_VM)  # it changed under the relabelling: look again
            case Unknown() | NotApplied():
                return self
            case _:
                return self._over(Outcome.GIVEN_UP)

    def _judged_vm(self) -> "Repair":
        meta = self._vm.metadata
        if forged(self._vm) or given_by_hand(self._vm):
            return replace(self, stage=Stage.RELABEL)
        if meta.deletion_timestamp is not None or not meta.labels.get(names.LABEL_CLAIM_UID):
            return self._over(Outcome.NOTHING)
        mark = meta.labels.get(names.LABEL_STATE)
        if mark in {names.Mark.DRAINING, names.Mark.RECYCLING, names.Mark.RETAINED}:
            return self._over(Outcome.NOTHING)
        if mark != names.Mark.CLAIMED:
            return replace(self, stage=Stage.RELABEL)
        if not claim_name(self._vm):
            return self._over(Outcome.LEFT)  # no owner, no note: a person's doing, and nobody to ask
        return replace(self, stage=Stage.READ_CLAIM)

    def _saw_claim(self, answer: Answer) -> "Repair":
        match answer:
            case FoundClaim(claim):
                same = claim.uid == self._vm.metadata.labels.get(names.LABEL_CLAIM_UID)
                return replace(self, claim=claim if same else None)._decided()
            case Missing():
                return replace(self, claim=None)._decided()
            case Unknown() | NotApplied():
                return self
            case _:
                return self._over(Outcome.GIVEN_UP)

    def _decided(self) -> "Repair":
        match decide(self._vm, self.claim):
            case Verdict.PUBLISHED:
                return self._over(Outcome.NOTHING)
            case Verdict.PUBLISH:
                return replace(self, stage=Stage.PUBLISH)
            case Verdict.RELEASE | Verdict.DESTROY:
                return replace(self, stage=Stage.CONFIRM if self.claim is None else Stage.DESTROY)
            case Verdict.LEAVE:
                return self._over(Outcome.LEFT)

    def _confirmed(self, answer: Answer) -> "Repair":
        """Its claim is gone. If it was orphaned, its owner was taken off the VM before: look once more.

        The first look may have been before that; after this one nothing can free the VM any more.
        """
        match answer:
            case FoundVM(vm) if vm.metadata.uid == self.uid and vm.metadata.owner_references:
                return replace(self, vm=vm, stage=Stage.DESTROY)
            case FoundVM(vm) if vm.metadata.uid == self.uid:
                return self._over(Outcome.LEFT)
            case FoundVM() | Missing():
                return self._over(Outcome.NOTHING)
            case Unknown() | NotApplied():
                return self
            case _:
                return self._over(Outcome.GIVEN_UP)

    def _published(self, answer: Answer) -> "Repair":
        match answer:
            case FoundClaim(claim):
                return replace(self, claim=claim)._over(Outcome.PUBLISHED)
            case TestRefused() | Missing():
                return replace(self, stage=Stage.READ_VM)  # decide anew by the table, from its beginning
            case Unknown() | NotApplied():
                return self
            case _:
                return self._over(Outcome.GIVEN_UP)

    def _destroyed(self, answer: Answer) -> "Repair":
        match answer:
            case Accepted() | Missing():
                return self._over(Outcome.DESTROYED)
            case Unknown() | NotApplied():
                return self  # safe to say twice: the reason is final and the uid is never used again
            case _:
                return self._over(Outcome.GIVEN_UP)

    # ---- inside

    @property
    def _vm(self) -> VirtualMachine:
        if self.vm is None:
            raise RuntimeError("the VM is read first")
        return self.vm

    @property
    def _claim(self) -> Claim:
        if self.claim is None:
            raise RuntimeError("the claim is read before it is published to")
        return self.claim

    def _relabelling(self) -> Ops:
        if forged(self._vm):
            return patches.relabel_pooled(self._vm)
        if given_by_hand(self._vm):
            return patches.discard(self._vm)
        return patches.relabel_claimed(self._vm)

    def _publication(self) -> Ops:
        return patches.whole_status(self._claim, status.bound(self._claim, self._vm, self.vmi, self.terms))

    def _over(self, outcome: Outcome) -> "Repair":
        return replace(self, stage=Stage.OVER, done=Done(outcome))
