"""What must hold at rest, when nothing is under way any more: what a single step can't show."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.events import Rule
from auditor.facts import Claim, Vm
from auditor.world import ClaimLife, VmLife, World
from crds.names import CLAIM_KIND, Mark

Finding = tuple[Rule, Vm | Claim, str]


def at_rest(world: World) -> Iterator[Finding]:
    """Everything that is wrong, if nothing changes any more."""
    for vm in world.vms.values():
        if vm.alive and vm.ours and not world.unjudged(vm.facts):
            yield from _vm(world, vm)
    for claim in world.claims.values():
        if not claim.gone and claim.facts.namespace not in world.ending:
            yield from _claim(world, claim)


def _vm(world: World, life: VmLife) -> Iterator[Finding]:
    vm = life.facts
    held = vm.claim_uid or (vm.owner.uid if vm.owner and vm.owner.kind == CLAIM_KIND else None)
    if vm.state == Mark.RETAINED and not vm.misowned:
        return
    if vm.state == Mark.DRAINING:
        yield Rule.LEAK, vm, "is Draining and nobody deletes it"
    elif vm.state == Mark.RECYCLING:
        yield Rule.LEAK, vm, "is Recycling and nothing comes of it"
    elif vm.state == Mark.POOLED and life.carried is not None:
        yield Rule.REST, vm, f"is labelled Pooled and was handed to claim {life.carried}"
    elif vm.misowned:
        yield Rule.I4, vm, vm.misowned
    elif held is not None and (why := _not_named_by(world, held, vm.uid)):
        yield Rule.LEAK, vm, f"is held for claim {held}, {why}"


def _not_named_by(world: World, claim_uid: str, vm_uid: str) -> str:
    claim = world.claims.get(claim_uid)
    if claim is None or claim.gone:
        return "which is gone"
    if vm_uid not in claim.facts.named:
        return f"which is {claim.facts.phase} and does not name it"
    if claim.facts.phase != "Bound" and not claim.facts.deleting:
        return f"which is {claim.facts.phase}"
    return ""


def _claim(world: World, life: ClaimLife) -> Iterator[Finding]:
    claim = life.facts
    left = [uid for uid in claim.named if uid in world.vms and not world.vms[uid].gone]
    if claim.in_use and len(left) < len(claim.named):
        yield Rule.REST, claim, "is Bound, and a VM that it names is gone"
    if claim.phase == "Releasing" and not left:
        yield Rule.REST, claim, "is Releasing, and nothing is left to release"
