"""The JSON patches of the protocol. Every guard of the design stands here, each with why it is needed.

Pure. A failed test is 422 and nothing is applied; a test with null passes on an absent key. Keys that a
patch adds are tested for absence where they must not overwrite what is there.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from controller.claims.objects import Claim
from controller.claims.protocol import Ops
from controller.kube.objects import KubeObject
from controller.machines.objects import VirtualMachine, manifest_owner
from crds import names
from statemachines.base import advance
from statemachines.instance import MACHINE, State, Trigger

_LABELS = "/metadata/labels/"
_ANNOTATIONS = "/metadata/annotations/"


def escape(key: str) -> str:
    """A key as a JSON pointer wants it."""
    return key.replace("~", "~0").replace("/", "~1")


def test(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


STATE = _LABELS + escape(names.LABEL_STATE)
CLAIM_UID = _LABELS + escape(names.LABEL_CLAIM_UID)


def owner_references(vm: VirtualMachine | KubeObject) -> list[dict[str, Any]]:
    """The whole list as it was seen, for a test: an owner that somebody added or took must refuse us."""
    return [
        {key: value for key, value in msgspec.to_builtins(each).items() if value is not None}
        for each in vm.metadata.owner_references
    ]


def still_pooled(vm: VirtualMachine) -> Ops:
    """The tests of write 1 and of every Pooled → Draining: this very VM, alive, unclaimed, its pool's."""
    return (
        test("/metadata/uid", vm.metadata.uid),
        test("/metadata/deletionTimestamp", None),
        test(STATE, names.Mark.POOLED.value),
        test(CLAIM_UID, None),
        test("/metadata/ownerReferences", owner_references(vm)),
    )


def hand_over(vm: VirtualMachine, claim: Claim) -> Ops:
    """Write 1: the VM becomes the claim's, or nothing happens."""
    mark = advance(MACHINE, State.WARM, Trigger.HAND_OVER)
    extra = claim.spec.metadata
    guards = [test(_LABELS + escape(key), None) for key in extra.labels]
    guards += [test(_ANNOTATIONS + escape(key), None) for key in extra.annotations]
    given = [add(_LABELS + escape(key), value) for key, value in extra.labels.items()]
    given += [add(_ANNOTATIONS + escape(key), value) for key, value in extra.annotations.items()]
    owner = manifest_owner("VirtualMachineClaim", names.API_VERSION, claim.name, claim.uid)
    return (
        *still_pooled(vm),
        *guards,
        *given,
        add(_ANNOTATIONS + escape(names.ANNOTATION_CLAIM), claim.name),
        add(_ANNOTATIONS + escape(names.ANNOTATION_RELEASE_POLICY), "Delete"),
        add("/metadata/ownerReferences", [owner]),
        add(CLAIM_UID, claim.uid),
        add(STATE, mark.value),
    )


def taken_keys(vm: VirtualMachine, claim: Claim) -> list[str]:
    """The keys of the claim's metadata that the VM has already: a claim may add, never overwrite."""
    extra = claim.spec.metadata
    return [key for key in extra.labels if key in vm.metadata.labels] + [
        key for key in extra.annotations if key in vm.metadata.annotations
    ]


def drain(vm: VirtualMachine) -> Ops:
    """Pooled → Draining, terminal: the compare-and-set before every deletion of an unclaimed VM."""
    return (*still_pooled(vm), add(STATE, names.Mark.DRAINING.value))


def discard(vm: VirtualMachine) -> Ops:
    """A person wrote a claim's UID onto a VM that its pool owns: nobody knows whose it is, so it goes.

    Marked first, like every VM that is removed, and refused if the person takes the UID off again.
    """
    return (
        test("/metadata/uid", vm.metadata.uid),
        test("/metadata/deletionTimestamp", None),
        test(CLAIM_UID, vm.metadata.labels.get(names.LABEL_CLAIM_UID)),
        test(STATE, vm.metadata.labels.get(names.LABEL_STATE)),
        test("/metadata/ownerReferences", owner_references(vm)),
        add(STATE, names.Mark.DRAINING.value),
    )


def relabel_claimed(vm: VirtualMachine) -> Ops:
    """A person set the state back on a claimed VM: it is put right, and never offered."""
    return (
        test("/metadata/uid", vm.metadata.uid),
        test(CLAIM_UID, vm.metadata.labels.get(names.LABEL_CLAIM_UID)),
        test(STATE, vm.metadata.labels.get(names.LABEL_STATE)),
        add(STATE, names.Mark.CLAIMED.value),
    )


def relabel_pooled(vm: VirtualMachine) -> Ops:
    """A person set or took off the state of a VM that no claim has and its pool owns: it is put right."""
    return (
        test("/metadata/uid", vm.metadata.uid),
        test("/metadata/deletionTimestamp", None),
        test(STATE, vm.metadata.labels.get(names.LABEL_STATE)),
        test(CLAIM_UID, None),
        test("/metadata/ownerReferences", owner_references(vm)),
        add(STATE, names.Mark.POOLED.value),
    )


def claim_guard(claim: Claim, *, alive: bool = True) -> Ops:
    """This very claim in the phase in which it was seen; a namesake or a later decision must refuse us."""
    guards = [test("/metadata/uid", claim.uid)]
    if alive:
        guards.append(test("/metadata/deletionTimestamp", None))
    if claim.status is None:
        guards.append(test("/status", None))
    else:
        guards.append(test("/status/phase", claim.status.phase or None))
    return tuple(guards)


def whole_status(claim: Claim, status: dict[str, Any], *, alive: bool = True) -> Ops:
    """Replace the status that was seen. Guarded by its phase, so that it never undoes a hand-over."""
    return (*claim_guard(claim, alive=alive), add("/status", status))


def queue_place(claim: Claim, place: dict[str, Any]) -> Ops:
    """Write the queue's place alone, onto a claim that waits still."""
    return (*claim_guard(claim), add("/status/queue", place))


def timestamp(at: float) -> str:
    """Seconds since the epoch as Kubernetes writes times."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
