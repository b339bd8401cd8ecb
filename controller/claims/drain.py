"""How a VM that nobody claimed is removed: Pooled → Draining by compare-and-set, then DELETE by uid.

A pure procedure, the same for surplus, failed and (later) stale VMs. The compare-and-set has write 1's
tests, so that a hand-over and a removal of the same VM can't both succeed.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from controller.claims import patches
from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
    Denied,
    Done,
    FoundVM,
    Invalid,
    Missing,
    Next,
    NotApplied,
    PatchVM,
    StepName,
    TestRefused,
    Unknown,
)
from controller.machines.objects import VirtualMachine
from crds import names


class Outcome(StrEnum):
    GONE = "gone"  # deleted, or its deletion is under way
    REFUSED = "refused"  # it is not an unclaimed VM of this pool any more
    GIVEN_UP = "given-up"  # refused for a reason that waiting may cure


class Stage(StrEnum):
    MARK = "mark"
    DELETE = "delete"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Drain:
    """One VM. Start with `of`: one that is Draining already needs its DELETE alone."""

    vm: VirtualMachine
    stage: Stage = Stage.MARK
    done: Done = field(default=Done(Outcome.GIVEN_UP))

    @classmethod
    def of(cls, vm: VirtualMachine) -> "Drain":
        draining = vm.metadata.labels.get(names.LABEL_STATE) == names.Mark.DRAINING
        return cls(vm, Stage.DELETE if draining else Stage.MARK)

    def next(self) -> Next:
        meta = self.vm.metadata
        match self.stage:
            case Stage.MARK:
                return PatchVM(StepName.DRAIN_MARK, meta.name, patches.drain(self.vm))
            case Stage.DELETE:
                return DeleteVM(StepName.DRAIN_DELETE, meta.name, meta.uid)
            case Stage.OVER:
                return self.done

    def observe(self, answer: Answer) -> "Drain":
        match self.stage, answer:
            case Stage.MARK, FoundVM(vm):
                return replace(self, vm=vm, stage=Stage.DELETE)
            case Stage.MARK, TestRefused():
                return self._over(
                    Outcome.REFUSED
                )  # if it was our own earlier try: Draining is seen and goes on
            case _, Accepted() | Missing():
                return self._over(Outcome.GONE)
            case _, NotApplied(why) if why:
                return self._over(
                    Outcome.GIVEN_UP, why
                )  # a person has to know: the pool says it and tries again
            case _, Unknown() | NotApplied():
                return self
            case _, Invalid(message) | Denied(message):
                return self._over(Outcome.GIVEN_UP, message)
            case _:
                return self._over(Outcome.GIVEN_UP)

    def _over(self, outcome: Outcome, message: str = "") -> "Drain":
        return replace(self, stage=Stage.OVER, done=Done(outcome, message))
