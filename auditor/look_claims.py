"""What is wrong with a claim, or a pool, as it stands. A rule sees one of them and all that there is."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.findings import LEADS, REPORT, Finding, violation, warning
from auditor.look import Look, SeenClaim, SeenPool, at, stuck_terminating


def claim(seen: Look, one: SeenClaim) -> Iterator[Finding]:
    """All that is wrong with it."""
    facts = one.facts
    if facts.deleting:
        stuck = stuck_terminating(seen, one)
        yield from [stuck] if stuck else []
        return
    if len(facts.named) > facts.replicas:
        message = f"names {len(facts.named)} VMs and asked for {facts.replicas}"
        yield violation(one.about, "too-many", message, REPORT)
    if facts.phase == "Bound" and not facts.named:
        yield violation(one.about, "bound-to-nothing", "is Bound and names no VM", REPORT)
    if facts.phase == "Pending" and facts.named:
        yield violation(one.about, "pending-with-vm", "is Pending and names a VM", REPORT)
    if facts.in_use:
        for uid, name in zip(facts.named, one.names, strict=True):
            yield from _used(seen, one, uid, name)
    if seen.long_since(one.releasing_since):
        message = f"is being released since {at(one.releasing_since)}"
        yield warning(one.about, "stuck-releasing", message, f"is its VM stuck? Else {LEADS}")


def _used(seen: Look, one: SeenClaim, uid: str, name: str) -> Iterator[Finding]:
    """One VM that a claim says it has."""
    others = [each.facts.name for each in seen.users.get(uid, ()) if each.facts.uid != one.facts.uid]
    if others:
        message = f"has VM {name}, and so has claim {' and '.join(others)}"
        yield violation(one.about, "used-twice", message, f"stop using it, delete both claims; {REPORT}")
    vm = seen.vms.get(uid)
    if vm is None:
        namesake = (one.facts.namespace, name) in seen.names
        message = f"has VM {name} ({uid}), which does not exist"
        if namesake:
            message = f"has VM {name} ({uid}), and the VM of that name is another one"
        yield violation(
            one.about,
            "vm-gone",
            message,
            f"a controller at work says Lost within seconds: {LEADS}; then claim another",
        )
    elif vm.facts.claim_uid not in {None, one.facts.uid}:
        message = f"has VM {name}, which carries the UID of another claim ({vm.facts.claim_uid})"
        yield violation(one.about, "vm-of-another", message, REPORT)
    elif vm.facts.owner is not None and vm.facts.state == "Pooled":
        message = f"has VM {name}, which is marked as free (Pooled)"
        yield violation(one.about, "vm-offered", message, f"a controller at work puts that right: {LEADS}")


def pool(seen: Look, one: SeenPool) -> Iterator[Finding]:
    """All that is wrong with it."""
    if one.deleted_at is not None:
        stuck = stuck_terminating(seen, one)
        yield from [stuck] if stuck else []
    elif one.stopped:
        yield warning(
            one.about,
            "no-controller",
            "has no controller: it was stopped, and none has started since",
            "start one: no VM is made, handed over or removed meanwhile",
        )
    elif one.observed < one.generation:
        yield warning(
            one.about,
            "unseen",
            "was changed, and no controller has taken note" if one.observed else "has never been looked at",
            LEADS,
        )
