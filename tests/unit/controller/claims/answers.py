"""Everything that may be answered to each kind of step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from controller.claims.objects import Claim
from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
    Denied,
    FoundClaim,
    FoundVM,
    Invalid,
    Missing,
    NotApplied,
    PatchClaimStatus,
    PatchVM,
    ReadVM,
    Step,
    TestRefused,
    Unknown,
)
from controller.machines.objects import VirtualMachine
from tests.support.builders import read_claim, read_vm, stored
from tests.support.patching import Refused, applied

NEVER_DEFINITE: tuple[Answer, ...] = (NotApplied(), Unknown())
REFUSALS: tuple[Answer, ...] = (Denied("denied"), *NEVER_DEFINITE)


def all_answers(vms: Sequence[VirtualMachine], claims: Sequence[Claim]) -> Callable[[Step], Iterable[Answer]]:
    """Answers in which the VM and the claim may be found in each of these forms.

    A write that is taken answers with what it makes of the first form that it fits.
    """

    def answers(step: Step) -> Iterable[Answer]:
        match step:
            case PatchVM(ops=ops):
                fitting = [each for each in map(stored, vms) if _fits(each, step)]
                taken = [FoundVM(read_vm(applied(each, ops))) for each in fitting[:1]]
                return [*taken, TestRefused(), Missing(), Invalid("invalid"), *REFUSALS]
            case PatchClaimStatus(ops=ops):
                fitting = [each for each in map(stored, claims) if _fits(each, step)]
                done = [FoundClaim(read_claim(applied(each, ops))) for each in fitting[:1]]
                return [*done, TestRefused(), Missing(), Invalid("invalid"), *REFUSALS]
            case DeleteVM():
                return [Accepted(), Missing(), *REFUSALS]
            case ReadVM():
                return [*map(FoundVM, vms), Missing(), *REFUSALS]
            case _:
                return [*map(FoundClaim, claims), Missing(), *REFUSALS]

    return answers


def _fits(raw: dict[str, object], step: PatchVM | PatchClaimStatus) -> bool:
    try:
        applied(raw, step.ops)
    except Refused:
        return False
    return True
