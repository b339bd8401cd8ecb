"""What must hold: I1 to I5 with every write, and what a world must look like when it has come to rest.

It shares no code with the controller, and knows the labels only by their names. Each finding begins with the
promise that is broken and who broke it, so that a limit of the design can be allowed by that and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from crds import names
from tests.protocol.apiserver import Server
from tests.protocol.things import Thing
from tests.protocol.worlds import World

FINISHED = frozenset({"Released", "Expired", "Failed", "Lost"})
POOLED, CLAIMED, DRAINING = names.Mark.POOLED.value, names.Mark.CLAIMED.value, names.Mark.DRAINING.value


def written(world: World, before: Server, after: Server, who: str) -> tuple[str, ...]:
    """Everything that this one write broke."""
    return (
        *_each_vm(before, after, who),
        *(
            finding
            for old, new in zip(before.claims, after.claims, strict=True)
            if old is not new and old is not None and new is not None and old.uid == new.uid
            for finding in _claim(before, after, old, new)
        ),
        *_named_twice(after),
        *(_strictly(world, before, after) if world.strict else ()),
    )


def _each_vm(before: Server, after: Server, who: str) -> Iterator[str]:
    for slot, (old, new) in enumerate(zip(before.vms, after.vms, strict=True)):
        if old is new:
            continue
        by_hand = after.by_hand[slot]
        if old is not None and not old.going and (new is None or new.going):
            yield from _deletion_begun(before, slot, old, who)
        if new is not None and who != "person":
            if old is not None:
                yield from _vm(before, slot, old, new, who)
            if not by_hand and not new.going and (wrong := _misowned(new, who)):
                yield f"I4: {new.name} {wrong}"


def _vm(before: Server, slot: int, old: Thing, new: Thing, who: str) -> Iterator[str]:
    carries, carried = new.labels.get(names.LABEL_CLAIM_UID, ""), before.carried[slot]
    state, was = new.labels.get(names.LABEL_STATE), old.labels.get(names.LABEL_STATE)
    handed = carries and carries != old.labels.get(names.LABEL_CLAIM_UID, "")
    if handed and carried not in {"", carries}:
        yield f"I1: {who} gave {new.name} to {carries} after it was {carried}'s"
        if before.used[slot]:
            yield f"I5: {who} gave {new.name}, which {carried} had used, to {carries}"
    if handed and old.going:
        yield f"I3: {who} handed {new.name} over while it was being deleted"
    if handed and was == DRAINING:
        yield f"I3: {who} handed {new.name} over after it was chosen for deletion"
    if state == POOLED and was != POOLED and carried and was is not None:
        yield f"I5: {who} offers {new.name} again, which was {carried}'s"
    if not _ours(old) and who == "controller" and not new.going and not before.by_hand[slot]:
        yield f"foreign: {who} wrote to {new.name}, which is not ours"
    if handed and not _by_pool(old):
        yield f"foreign: {who} handed {new.name} over, which its pool does not own"


def _strictly(world: World, before: Server, after: Server) -> Iterator[str]:
    """What only an unknown outcome in a controller's death, a second leader or a person may do."""
    ours = [vm for vm in after.vms if vm is not None and _ours(vm)]
    held = [vm.labels.get(names.LABEL_CLAIM_UID, "") for vm in ours if not vm.going]
    if twice := next((uid for uid in held if uid and held.count(uid) > 1), None):
        yield f"I2: {twice} holds more VMs than it asked for"
    most = world.limits.get("maxReplicas")
    if most is not None and len(ours) > most and len(ours) > sum(vm is not None for vm in before.vms):
        yield f"limits: there are {len(ours)} VMs, and maxReplicas is {most}"


def _deletion_begun(before: Server, slot: int, vm: Thing, who: str) -> Iterator[str]:
    if who == "person":
        return
    for claim in before.claims:
        if claim is not None and _in_use(claim) and vm.uid in claim.named:
            yield f"I3: the {who} deleted {vm.name}, which {claim.name} ({claim.uid}) had"
    if not _ours(vm) and who == "controller" and not _nobodys(before, slot):
        yield f"foreign: the {who} deleted {vm.name}, which is not ours"
    offered = vm.labels.get(names.LABEL_STATE) == POOLED and not vm.labels.get(names.LABEL_CLAIM_UID)
    if who == "controller" and offered and _ours(vm):
        yield f"I3: the {who} deleted {vm.name} without taking it off the offer first"


def _claim(before: Server, after: Server, old: Thing, new: Thing) -> Iterator[str]:
    if len(new.named) > 1:
        yield f"I2: {new.uid} names {len(new.named)} VMs"
    if old.named and new.named != old.named:
        yield f"I2: {new.uid} named {' '.join(old.named)} and now names {' '.join(new.named) or 'nothing'}"
    if old.phase in FINISHED and new.phase != old.phase:
        yield f"I2: {new.uid} was {old.phase} and became {new.phase}"
    if old.phase != "Bound" and new.phase == "Bound":
        if old.going:
            yield f"I2: {new.uid} was bound after it was deleted"
        for uid in new.named:
            yield from _published(after, new, uid)
    if old.phase == "Bound" and new.phase == "Lost" and any(_lives(after, uid) for uid in new.named):
        yield f"L: {new.uid} is said to have lost a VM that lives"
    if old.phase == "Bound" and new.phase == "Releasing" and not _over(before, old):
        yield f"E: {new.uid} is released though its lifetime is not over"


def _published(after: Server, claim: Thing, uid: str) -> Iterator[str]:
    vm = after.vm_of(uid)
    if vm is not None and vm.labels.get(names.LABEL_CLAIM_UID, "") not in {"", claim.uid}:
        yield f"I1: {claim.uid} was told of {vm.name}, which another claim carries"


def _over(before: Server, claim: Thing) -> bool:
    """The lifetime as it is written at this instant."""
    lifetime, bound_at = claim.raw["spec"].get("lifetime"), claim.status.get("boundAt")
    if lifetime is None or bound_at is None:
        return False
    seconds = int(lifetime[:-1]) * {"m": 60, "h": 3600}[lifetime[-1]]
    return before.now >= datetime.fromisoformat(bound_at).timestamp() + seconds


def _named_twice(after: Server) -> Iterator[str]:
    named = [uid for claim in after.claims if claim is not None and _in_use(claim) for uid in claim.named]
    if len(named) != len(set(named)):
        yield "I1: two claims have one VM"


def _misowned(vm: Thing, who: str) -> str:
    state, carries = vm.labels.get(names.LABEL_STATE), vm.labels.get(names.LABEL_CLAIM_UID)
    if not vm.owners:
        return "is owned by nobody" if who == "controller" else ""
    if len(vm.owners) > 1:
        return "has two owners"
    kind, uid = vm.owners[0]
    if state == POOLED and kind != names.POOL_KIND:
        return f"is Pooled and owned by a {kind}"
    if state == CLAIMED and (kind, uid) != (names.CLAIM_KIND, carries):
        return f"is Claimed by {carries} and owned by {kind} {uid}"
    return ""


def _nobodys(server: Server, slot: int) -> bool:
    """Handed over, told to nobody, and then freed: its claim was orphaned in that instant."""
    return bool(server.carried[slot]) and not server.used[slot] and not server.by_hand[slot]


def _ours(vm: Thing) -> bool:
    return any(kind in {names.POOL_KIND, names.CLAIM_KIND} for kind, _ in vm.owners)


def _by_pool(vm: Thing) -> bool:
    return any(kind == names.POOL_KIND for kind, _ in vm.owners)


def _in_use(claim: Thing) -> bool:
    return claim.phase == "Bound" and not claim.going


def _lives(server: Server, uid: str) -> bool:
    vm = server.vm_of(uid)
    return vm is not None and not vm.going


# ---- at rest


def at_rest(world: World, server: Server) -> Iterator[str]:
    """Everything that is wrong if nothing happens any more."""
    for slot, vm in enumerate(server.vms):
        if vm is not None and _ours(vm):
            yield from _vm_at_rest(server, slot, vm)
        elif vm is not None and _nobodys(server, slot):
            yield f"leak: {vm.name} is nobody's, and nobody was told of it"
    free = [vm.name for vm in server.vms if vm is not None and _free(server, vm)]
    for claim in server.claims:
        if claim is not None:
            yield from _claim_at_rest(server, claim, free)
    if server.pool is not None and server.pool.going:
        yield "rest: the pool stays in deletion"
    if world.tells:
        yield from _not_told(server)


def _vm_at_rest(server: Server, slot: int, vm: Thing) -> Iterator[str]:
    state, carries = vm.labels.get(names.LABEL_STATE), vm.labels.get(names.LABEL_CLAIM_UID)
    if vm.going:
        yield f"rest: {vm.name} stays in deletion"
        return
    if state == DRAINING:
        yield f"leak: {vm.name} is Draining for ever"
    if (state == CLAIMED or carries) and not _named_by(server, vm, carries):
        yield f"leak: {vm.name} is held for {carries or 'nobody'}, and no claim names it"
    if server.carried[slot] and state == POOLED:
        yield f"rest: {vm.name} says Pooled, and was {server.carried[slot]}'s"
    if wrong := _misowned(vm, ""):
        yield f"I4: {vm.name} {wrong}, for ever"


def _named_by(server: Server, vm: Thing, carries: str | None) -> bool:
    claim = server.claim_of(carries or "")
    return claim is not None and vm.uid in claim.named and claim.phase == "Bound"


def _free(server: Server, vm: Thing) -> bool:
    mark = vm.labels.get(names.LABEL_STATE)
    running = vm.status.get("printableStatus") == "Running"
    serves = server.pool is not None and not server.pool.going
    return serves and mark == POOLED and _by_pool(vm) and not vm.going and running


def _claim_at_rest(server: Server, claim: Thing, free: list[str]) -> Iterator[str]:
    if claim.going:
        yield f"rest: {claim.uid} stays in deletion"
        return
    if claim.phase == "Pending" and free:
        yield f"rest: {claim.uid} waits beside {free[0]}, which is free"
    if claim.phase == "Releasing":
        yield f"rest: {claim.uid} stays Releasing"
    if claim.phase == "Bound":
        if not all(_lives(server, uid) for uid in claim.named):
            yield f"rest: {claim.uid} is Bound, and its VM is gone"
        elif _over(server, claim):
            yield f"rest: the lifetime of {claim.uid} is over, and it keeps its VM"


def _not_told(server: Server) -> Iterator[str]:
    """Where claims are told: none waits without a reason."""
    for claim in server.claims:
        if claim is not None and claim.phase == "Pending" and not claim.going:
            told = [each for each in claim.status.get("conditions", ()) if each["type"] == "Bound"]
            if not told:
                yield f"rest: {claim.uid} waits and is not told why"
