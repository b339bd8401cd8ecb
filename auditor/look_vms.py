"""What is wrong with a VM as it stands. A rule sees it and all that there is; the first to speak counts."""

from __future__ import annotations

from collections.abc import Callable

from auditor.findings import LEADS, REPORT, Finding, Severity, leak, violation, warning
from auditor.look import Look, SeenVm, at, stuck_terminating
from crds.names import CLAIM_KIND, POOL_KIND, Mark

_ON_ITS_WAY = frozenset({Mark.DRAINING, Mark.RECYCLING})


def vm(seen: Look, one: SeenVm) -> Finding | None:
    """The first thing that is wrong with it."""
    if not one.facts.labelled and one.facts.owner is None:
        return None
    if one.deleted_at is not None:
        return stuck_terminating(seen, one)
    if one.facts.owner is None:
        return _unowned(seen, one)
    return next((found for rule in _RULES if (found := rule(seen, one)) is not None), None)


def _unowned(seen: Look, one: SeenVm) -> Finding | None:
    vm = one.facts
    if vm.retained and not vm.misowned:
        return None
    if users := seen.users.get(vm.uid):
        return violation(
            one.about,
            "used-and-unowned",
            f"is used by claim {users[0].facts.name}, which does not own it: it would outlive the claim",
            "put the claim's owner reference back, or delete the VM when the claim is done",
        )
    if one.controlled_by:
        return _foreign(one, f"carries Bullpen's labels and belongs to {one.controlled_by}")
    # What a claim had and left is its user's, whether or not the pool is still there.
    if vm.claim_uid not in seen.claims if vm.claim_uid else vm.pool_uid not in seen.pools:
        return Finding(
            Severity.NOTE,
            "orphaned",
            one.about,
            f"was left when its {'claim' if vm.claim_uid else 'pool'} went "
            "(--cascade=orphan, or its owner reference was taken off), or is a copy",
            "nobody else deletes it: do that, or keep it and take its labels under bullpen.dev/ off",
        )
    if one.made_by_us:
        return leak(
            one.about,
            "owner-taken-off",
            "was made by Bullpen, and somebody took its owner reference off: nobody will delete it",
            f"delete it if nobody uses it: kubectl delete vm {vm.name} -n {vm.namespace}",
        )
    return _foreign(one, "carries Bullpen's labels and is owned by nobody: a copy, or restored from a backup")


def _foreign(one: SeenVm, why: str) -> Finding:
    return Finding(
        Severity.FOREIGN,
        "foreign",
        one.about,
        f"{why}; Bullpen leaves it alone",
        "take its labels under bullpen.dev/ off, or delete it",
    )


def _wrong_labels(_seen: Look, one: SeenVm) -> Finding | None:
    vm = one.facts
    if not vm.ours:
        return violation(one.about, "two-owners", vm.misowned, REPORT)
    if vm.state is None:
        return warning(
            one.about,
            "unlabelled",
            f"is owned by a {vm.owner.kind if vm.owner else ''} and has no label bullpen.dev/state",
            "somebody took it off; a controller at work puts it back within five minutes",
        )
    if vm.state not in set(Mark):
        return violation(
            one.about,
            "illegal-state",
            f"has the state {vm.state!r}, which there is not",
            "a controller at work puts it right at once: is one at work? kubectl get lease -A",
        )
    return None


def _owner_gone(seen: Look, one: SeenVm) -> Finding | None:
    owner = one.facts.owner
    if owner is None:
        return None
    there = seen.pools if owner.kind == POOL_KIND else seen.claims
    if owner.uid in there:
        return None
    word = "pool" if owner.kind == POOL_KIND else "claim"
    return leak(
        one.about,
        "owner-gone",
        f"belongs to a {word} that does not exist any more ({owner.uid})",
        "the garbage collector should have taken it: is kube-controller-manager well? Else delete it by hand",
    )


def _contradicts(_seen: Look, one: SeenVm) -> Finding | None:
    vm = one.facts
    if vm.misowned:
        return violation(one.about, "wrong-owner", vm.misowned, REPORT)
    if vm.state == Mark.POOLED and vm.claim_uid is not None:
        message = f"is Pooled, and carries the UID of a claim ({vm.claim_uid})"
        return violation(one.about, "pooled-and-claimed", message, REPORT)
    return None


def _stuck(seen: Look, one: SeenVm) -> Finding | None:
    if one.facts.state not in _ON_ITS_WAY or not seen.long_since(one.marked_at):
        return None
    return warning(
        one.about,
        f"stuck-{(one.facts.state or '').lower()}",
        f"is {one.facts.state} since {at(one.marked_at)}, and nobody goes on with it",
        LEADS,
    )


def _held(seen: Look, one: SeenVm) -> Finding | None:
    """Claimed by a claim that does not know of it."""
    vm = one.facts
    if vm.owner is None or vm.owner.kind != CLAIM_KIND:
        return None
    claim = seen.claims[vm.owner.uid].facts
    if vm.uid not in claim.named:
        why = f"which is {claim.phase} and does not name it"
    elif claim.phase not in {"Bound", "Releasing"} and not claim.deleting:
        why = f"which is {claim.phase}"
    else:
        return None
    return leak(
        one.about,
        "held-by-nobody",
        f"is held for claim {claim.name} ({claim.uid}), {why}",
        "a controller at work repairs that within seconds: see whether one leads, and its log",
    )


_Rule = Callable[[Look, SeenVm], Finding | None]
_RULES: tuple[_Rule, ...] = (_wrong_labels, _owner_gone, _contradicts, _stuck, _held)
