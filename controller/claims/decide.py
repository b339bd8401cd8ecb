"""The repair table: what becomes of a VM that carries a claim's UID. One place, pure, no I/O.

Destroying is safe because each reason for it is final; "Pending" never is one.
"""

from enum import StrEnum

from controller.claims.objects import Claim
from controller.machines.objects import VirtualMachine
from statemachines.claim import State


class Verdict(StrEnum):
    PUBLISHED = "published"  # the claim names it and is Bound: nothing to do
    PUBLISH = "publish"  # held for a claim that waits: write 2, wherever it stands in the queue
    RELEASE = "release"  # published, and its claim is going or releasing: by the frozen policy
    DESTROY = "destroy"  # its claim is gone, finished, or has another VM: released, or never published
    LEAVE = "leave"  # a person orphaned it: it is theirs


def decide(vm: VirtualMachine, claim: Claim | None) -> Verdict:
    """The table. `claim` is the claim of the UID that the VM carries, None when there is none any more.

    Both must come from uncached reads, the VM's first: a claim deleted in between can then only have
    freed the VM, never given it away.
    """
    if claim is None:
        return Verdict.DESTROY if vm.metadata.owner_references else Verdict.LEAVE
    if claim.names(vm.metadata.uid):
        return _published(claim)
    if claim.waiting:
        return Verdict.PUBLISH
    return Verdict.DESTROY


def _published(claim: Claim) -> Verdict:
    if claim.orphans:
        return Verdict.LEAVE
    if claim.going:
        return Verdict.RELEASE
    match claim.phase:
        case State.BOUND:
            return Verdict.PUBLISHED
        case _:
            return Verdict.RELEASE
