"""What must hold when a VM changes. Each rule sees the VM before and after, and all that was ever seen.

The rules only look; the judge writes down what follows from the change afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from auditor.events import Rule
from auditor.facts import OWNERS, Claim, Vm
from auditor.world import VmLife, World
from crds.names import LABEL_CLAIM_UID, LABEL_POOL_UID, LABEL_STATE, Mark

COLLECTOR_LAG = timedelta(seconds=30)
"""How long after a hand-over the garbage collector may still act on the owner that it read before."""

Finding = tuple[Rule, str]


def changed(world: World, life: VmLife, new: Vm) -> Iterator[Finding]:
    """What is wrong with the step from `life.facts` to `new`."""
    if life.ours:
        yield from _handed_over(world, life, new)
        yield from _offered_again(life, new)
        yield from _owned(world, life, new)
    else:
        yield from _touched(world, life, new)


def appeared(new: Vm) -> Iterator[Finding]:
    """What is wrong with a VM at its birth."""
    if new.ours and new.misowned:
        yield Rule.I4, new.misowned


def deletion_begun(world: World, life: VmLife) -> Iterator[Finding]:
    """What is wrong with deleting the VM now."""
    vm = life.facts
    if world.unjudged(vm):
        return
    # Who deletes a claim with orphan keeps the VM that its status names. One that it never named was nobody's
    # yet, and is destroyed, whether or not the garbage collector was there first.
    never_given = life.orphaned and life.carried is not None and vm.uid not in world.published
    if not life.ours and vm.labelled and not never_given and not life.wavered:
        yield Rule.FOREIGN, "is not ours and was deleted"
    for claim in world.users(vm.uid):
        if not _collected_with_its_pool(world, vm, claim):
            yield Rule.I3, f"was deleted while claim {claim.name} ({claim.uid}) had it"


def _handed_over(world: World, life: VmLife, new: Vm) -> Iterator[Finding]:
    old, uid = life.facts, new.claim_uid
    if uid is None or uid == old.claim_uid or LABEL_CLAIM_UID in new.by_person:
        return
    if life.carried not in {None, uid}:
        yield Rule.I1, f"was handed to claim {uid} after it was handed to claim {life.carried}"
    earlier = next((one for one in world.published.get(new.uid, ()) if one != uid), None)
    if earlier is not None:
        yield Rule.I5, f"was handed to claim {uid} after claim {earlier} had used it"
    if uid == life.carried:
        return  # a label that was stripped is put back
    if old.deleting or new.deleting:
        yield Rule.I3, f"was handed to claim {uid} while it was being deleted"
    elif old.state == Mark.DRAINING:
        yield Rule.I3, f"was handed to claim {uid} after it was marked for deletion"


def reset(old: Vm, new: Vm) -> bool:
    """Whether the step completes a recycle: from here on the VM is as good as new."""
    return old.state == Mark.RECYCLING and new.state == Mark.POOLED and new.claim_uid is None


def _offered_again(life: VmLife, new: Vm) -> Iterator[Finding]:
    old = life.facts
    if new.state != Mark.POOLED or old.state == Mark.POOLED or LABEL_STATE in new.by_person:
        return
    if life.carried is not None and not reset(old, new):
        yield Rule.I5, f"is offered again after it was handed to claim {life.carried}"


def _owned(world: World, life: VmLife, new: Vm) -> Iterator[Finding]:
    old = life.facts
    wrong = new.misowned
    if not wrong or wrong == old.misowned or world.unjudged(new) or new.deleting:
        return
    if new.by_person & {LABEL_STATE, LABEL_CLAIM_UID, LABEL_POOL_UID}:
        return  # a person's hand: broken for an instant, and at rest it must have healed
    if new.owner is None and world.orphaned(old):
        return
    yield Rule.I4, wrong


def _touched(world: World, life: VmLife, new: Vm) -> Iterator[Finding]:
    old = life.facts
    if not (old.labelled or new.labelled) or world.unjudged(new):
        return
    ways = [
        f"its label {label} was set from {before} to {after}"
        for label, before, after in (
            (LABEL_STATE, old.state, new.state),
            (LABEL_CLAIM_UID, old.claim_uid, new.claim_uid),
        )
        if after not in {None, before} and label not in new.by_person
    ]
    if new.owner is not None and new.owner != old.owner and OWNERS not in new.by_person:
        ways.append(f"it was given the owner {new.owner.kind} {new.owner.uid}")
    if ways:
        yield Rule.FOREIGN, f"is not ours, and {', and '.join(ways)}"


def _collected_with_its_pool(world: World, vm: Vm, claim: Claim) -> bool:
    """The one exception of I3: a pool deleted in the foreground within the instant of a hand-over.

    The garbage collector may act on the owner that it read before the hand-over; nothing but Kubernetes can
    close that.
    """
    pool = world.pool_of(vm)
    if pool is None or not pool.foreground or not claim.bound_at:
        return False
    return _time(claim.bound_at) + COLLECTOR_LAG >= _time(pool.deleted_at)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
