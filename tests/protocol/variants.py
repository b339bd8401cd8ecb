"""Known-bad variants of the protocol: what each breaks must be found.

Small patches of the real code; where the product's event loop acts without a procedure, of what mirrors it
here (`chores`, `leader`): those show that the explorer sees the mistake, not that the product does not make
it.

The tests of the test. A variant that is not found means that the explorer would not see that mistake either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from controller.claims import decide, handover, objects, patches, release, repair, router
from controller.claims.protocol import Answer, DeleteVM, FoundVM, Ops, Unknown
from controller.claims.queue import Queue, Waiting
from controller.claims.release import LostStage
from controller.machines.objects import VirtualMachine
from controller.machines.ownership import Owner, OwnerKind, controller_reference
from controller.pools import loop
from crds import names
from tests.protocol import chores, leader, parts
from tests.protocol.things import Work, work
from tests.protocol.view import Purpose, Task

Patch = tuple[Any, str, Any]


@dataclass(frozen=True)
class Variant:
    """What is done wrong, in which world that shows, and how the violation begins."""

    name: str
    about: str
    world: str
    finds: str
    patches: Callable[[], list[Patch]]

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for target, attribute, bad in self.patches():
                stack.enter_context(mock.patch.object(target, attribute, bad))
            yield


# ---- write 1


def _without(*dropped: str) -> Callable[[], list[Patch]]:
    """Write 1 (and the removal, which has the same tests) without the tests of these paths."""
    real = patches.still_pooled

    def fewer(vm: VirtualMachine) -> Ops:
        return tuple(op for op in real(vm) if op["path"] not in dropped)

    return lambda: [(patches, "still_pooled", fewer)]


def _reapplied() -> list[Patch]:
    real = patches.hand_over

    def read_and_again(self: handover.HandOver, answer: Answer) -> handover.HandOver:
        match answer:
            case FoundVM(vm, at) if self._carried(vm):
                return replace(self, stage=handover.Stage.WRITE_CLAIM, vm=vm, terms=self.terms.at(at))
            case FoundVM(vm):
                return replace(self, stage=handover.Stage.WRITE_VM, vm=vm)
            case _:
                return self._over(handover.Outcome.VM_TAKEN)

    def on_what_was_read(vm: VirtualMachine, claim: objects.Claim) -> Ops:
        ops = real(vm, claim)
        free = vm.metadata.labels.get(names.LABEL_STATE) == names.Mark.POOLED
        return ops if free else tuple(op for op in ops if op["op"] != "test")

    return [
        (handover.HandOver, "_read_vm", read_and_again),
        (patches, "hand_over", on_what_was_read),
    ]


def _another_vm() -> list[Patch]:
    real = handover.HandOver._wrote_vm

    def gives_up(self: handover.HandOver, answer: Answer) -> handover.HandOver:
        if isinstance(answer, Unknown):
            return self._over(handover.Outcome.VM_TAKEN)
        return real(self, answer)

    return [(handover.HandOver, "_wrote_vm", gives_up)]


# ---- the claim


def _answers_forgotten() -> list[Patch]:
    def only_vms(_: object, __: object, answer: object) -> bool:
        return isinstance(answer, FoundVM)

    def whatever_it_carries(self: Queue, _: object) -> Waiting | None:
        return next((entry for entry in self.line.values() if not entry.assigned), None)

    return [(parts.Parts, "_takes_in", only_vms), (Queue, "head", whatever_it_carries)]


def _blind() -> list[Patch]:
    return [(patches, "claim_guard", lambda _claim, **_: ())]


def _lost_at_once() -> list[Patch]:
    real = release.Lost

    def unread(claim: objects.Claim, name: str, uid: str, status: dict[str, Any]) -> release.Lost:
        return real(claim, name, uid, status, stage=LostStage.WRITE_CLAIM)

    return [(release, "Lost", unread)]


def _orphans_released() -> list[Patch]:
    return [(objects.Claim, "orphans", property(lambda _: False))]


# ---- the VM afterwards


def _by_label() -> list[Patch]:
    reference = controller_reference

    def owner_by_label(meta: Any) -> Owner | None:
        uid = meta.labels.get(names.LABEL_CLAIM_UID)
        if uid:
            return Owner(OwnerKind.CLAIM, "", uid)
        return Owner(OwnerKind.POOL, "", meta.labels.get(names.LABEL_POOL_UID, ""))

    def whoever_owns_it(_: VirtualMachine, claim: objects.Claim | None) -> decide.Verdict:
        return decide.Verdict.DESTROY if claim is None else decide.Verdict.PUBLISHED

    def confirmed(self: repair.Repair, answer: Answer) -> repair.Repair:
        if isinstance(answer, FoundVM):
            return replace(self, stage=repair.Stage.DESTROY)
        return self._over(repair.Outcome.NOTHING)

    return [
        (router, "owner_of", owner_by_label),
        (
            router,
            "controller_reference",
            lambda meta: owner_by_label(meta) if meta.labels else reference(meta),
        ),
        (repair, "decide", whoever_owns_it),
        (repair.Repair, "_confirmed", confirmed),
    ]


def _by_name() -> list[Patch]:
    def no_precondition(step: Any, name: str, _uid: str) -> Any:
        return DeleteVM(step, name, "")

    return [(release, "DeleteVM", no_precondition), (repair, "DeleteVM", no_precondition)]


def _by_cache() -> list[Patch]:
    real = leader.Desk._repair

    def at_once(self: leader.Desk, instance: Any) -> Task:
        task = real(self, instance)
        if task.claim_uid in self.router.claims:
            return task
        gone: Work = work(release.Release(instance.name, instance.uid))
        return Task(Purpose.RELEASE, f"destroy {instance.name}", gone, instance.uid)

    return [(leader.Desk, "_repair", at_once)]


def _looked_once() -> list[Patch]:
    def unconfirmed(self: repair.Repair) -> repair.Repair:
        match decide.decide(self._vm, self.claim):
            case decide.Verdict.PUBLISHED:
                return self._over(repair.Outcome.NOTHING)
            case decide.Verdict.PUBLISH:
                return replace(self, stage=repair.Stage.PUBLISH)
            case decide.Verdict.LEAVE:
                return self._over(repair.Outcome.LEFT)
            case _:
                return replace(self, stage=repair.Stage.DESTROY)

    return [(repair.Repair, "_decided", unconfirmed)]


# ---- the pool


def _finalizer_by_cache() -> list[Patch]:
    real = chores.Dropping

    def unlisted(name: str, uid: str, finalizers: tuple[str, ...]) -> chores.Dropping:
        return real(name, uid, finalizers, listed=True)

    return [(chores, "Dropping", unlisted)]


def _own_creations_forgotten() -> list[Patch]:
    return [(loop.PoolLoop, "_creating", lambda _: 0)]


def _undrained() -> list[Patch]:
    def at_once(vm: VirtualMachine) -> Any:
        return release.Release(vm.metadata.name, vm.metadata.uid)

    return [(leader, "Drain", mock.Mock(of=at_once))]


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "retry-reapplied",
        "a refused write 1 is tried again on what was just read, without its tests",
        "leaders-two",
        "I1: controller gave",
        _reapplied,
    ),
    Variant(
        "older-than-own-write",
        "a decision on a claim older than our own last write to it",
        "hand-over",
        "I2: claim-1-1 holds more",
        _answers_forgotten,
    ),
    Variant(
        "no-state-test",
        "write 1 without its test of the state",
        "scale",
        "I3: controller handed",
        _without(patches.STATE),
    ),
    Variant(
        "no-deletion-test",
        "write 1 without its test of the deletion",
        "people",
        "I3: controller handed",
        _without("/metadata/deletionTimestamp"),
    ),
    Variant(
        "no-claim-uid-test",
        "write 1 without its test of the claim's UID",
        "forged",
        "I1: controller gave",
        _without(patches.CLAIM_UID),
    ),
    Variant(
        "no-owner-test",
        "write 1 without its test of the owner references",
        "freed",
        "foreign: controller handed",
        _without("/metadata/ownerReferences"),
    ),
    Variant(
        "another-vm",
        "another VM is tried after an unknown outcome",
        "lost-alone",
        "I2: claim-1-1 holds more",
        _another_vm,
    ),
    Variant("status-blind", "a claim's status is written without guards", "told", "I2: claim", _blind),
    Variant("lost-from-cache", "Lost is said from a cache", "labels", "L: claim", _lost_at_once),
    Variant("released-at-orphan", "a VM is released at orphan", "orphan", "foreign: the", _orphans_released),
    Variant(
        "repair-by-label",
        "repair goes by the label, whoever owns the VM",
        "clone",
        "foreign: the controller deleted clone",
        _by_label,
    ),
    Variant(
        "delete-by-name", "a VM is deleted without its UID", "namesake", "foreign: the controller", _by_name
    ),
    Variant(
        "release-by-cache",
        "a VM is destroyed because the cache has no claim of its label",
        "old-list",
        "I3: the controller deleted",
        _by_cache,
    ),
    Variant(
        "looked-once",
        "a VM whose claim is gone is destroyed on the look before",
        "orphan",
        "foreign: the controller deleted",
        _looked_once,
    ),
    Variant(
        "finalizer-by-cache",
        "the pool's finalizer goes by a cached count",
        "pool-unseen",
        "I3: the garbage collector",
        _finalizer_by_cache,
    ),
    Variant(
        "refill-stale",
        "creations under way are not counted",
        "refill",
        "limits: there are",
        _own_creations_forgotten,
    ),
    Variant(
        "scale-undrained",
        "a surplus VM is deleted by UID without the compare-and-set",
        "scale",
        "I3: the controller deleted",
        _undrained,
    ),
)
