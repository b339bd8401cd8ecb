"""What must hold when a claim changes. The rules only look; the judge writes down what follows."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.events import Rule
from auditor.facts import Claim
from auditor.world import World

Finding = tuple[Rule, str]

FINISHED = frozenset({"Released", "Expired", "Failed", "Lost"})
_AFTER_BOUND = frozenset({"Bound", "Releasing", *FINISHED}) - {"Expired", "Failed"}


def changed(world: World, old: Claim | None, new: Claim) -> Iterator[Finding]:
    """What is wrong with the step from `old` to `new`; None: the claim is new."""
    yield from _named(old, new)
    yield from _bound(old, new)
    for uid in new.named:
        if old is None or uid not in old.named:
            yield from _published(world, new, uid)


def named_twice(world: World) -> Iterator[tuple[Claim, str]]:
    """Each claim that has a VM which an earlier one has too, with the UID of that VM."""
    holders: dict[str, str] = {}
    for life in world.claims.values():
        for uid in life.facts.named if life.in_use else ():
            if holders.setdefault(uid, life.facts.uid) != life.facts.uid:
                yield life.facts, uid


def _named(old: Claim | None, new: Claim) -> Iterator[Finding]:
    if len(new.named) > new.replicas:
        yield Rule.I2, f"names {len(new.named)} VMs and asked for {new.replicas}"
    if old is not None and old.named and new.named != old.named:
        yield Rule.I2, f"named {' '.join(old.named)} and now names {' '.join(new.named) or 'nothing'}"


def _bound(old: Claim | None, new: Claim) -> Iterator[Finding]:
    phase = old.phase if old is not None else "Pending"
    if phase == new.phase or old is None:
        return
    if phase in FINISHED:
        yield Rule.I2, f"was {phase} and became {new.phase}"
    elif phase in {"Bound", "Releasing"} and (new.phase not in _AFTER_BOUND or new.phase == "Bound"):
        yield Rule.I2, f"was {phase} and went back to {new.phase}"
    elif new.phase == "Bound" and (old.deleting or new.deleting):
        yield Rule.I2, "was bound after it was deleted"
    if new.phase == "Bound" and not new.named:
        yield Rule.I2, "is Bound and names no VM"


def _published(world: World, claim: Claim, uid: str) -> Iterator[Finding]:
    life = world.vms.get(uid)
    if life is None:
        yield Rule.I2, f"names VM {uid}, which nobody has ever seen"
        return
    name = life.facts.name
    for other in world.users(uid):
        if other.uid != claim.uid:
            yield Rule.I1, f"names VM {name} ({uid}), which claim {other.name} ({other.uid}) names too"
            return
    earlier = next((one for one in world.published.get(uid, ()) if one != claim.uid), None)
    if earlier is not None:
        yield Rule.I5, f"names VM {name} ({uid}), which claim {earlier} had before"
    elif life.carried != claim.uid:
        yield Rule.I1, f"names VM {name} ({uid}), which carries {life.carried or 'no claim UID'}"
