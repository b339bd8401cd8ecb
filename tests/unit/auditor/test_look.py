"""What one look at a cluster finds: stories with one thing wrong each, and those with nothing wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from auditor.events import Kind
from auditor.findings import Finding, Severity, lasting, ordered
from auditor.look import Look, look
from auditor.looking import judged
from tests.unit.auditor.story import P, Story, owner, set_labels

NOW = datetime(2026, 1, 1, 13, tzinfo=UTC)
LATELY = (NOW - timedelta(minutes=9)).isoformat()
LONG_AGO = (NOW - timedelta(minutes=11)).isoformat()
CONTROLLER = "bullpen"
OTHER_CLAIM = "0000-other-claim"

BROKEN, LEAK = Severity.VIOLATION, Severity.LEAK

Tell = Callable[[Story], None]


def seen(story: Story, *ending: str) -> Look:
    of = {
        kind: [copy.deepcopy(raw) for (each, _), raw in story.objects.items() if each is kind]
        for kind in Kind
    }
    return look(NOW, of[Kind.POOL], of[Kind.CLAIM], of[Kind.VM], frozenset(ending))


def found(story: Story, *ending: str) -> list[Finding]:
    return judged(seen(story, *ending))


def change(story: Story, kind: Kind, name: str, **metadata: Any) -> None:
    story.objects[kind, name]["metadata"] |= metadata


def made_by_us(story: Story, name: str = "vm", at: str = LONG_AGO, **labels: str) -> None:
    """Its labels are the controller's work, and were set at that time."""
    raw = story.objects[Kind.VM, name]
    given: dict[str, str | None] = {"pool_uid": raw["metadata"]["labels"][f"{P}pool-uid"], **labels}
    set_labels(raw, given, CONTROLLER)
    for entry in raw["metadata"]["managedFields"]:
        entry["time"] = at


# ---- what is well


def warm(story: Story) -> None:
    story.pool()
    story.vm()


def claimed(story: Story) -> None:
    story.bound()


def claimed_and_its_pool_gone(story: Story) -> None:
    story.bound()
    story.remove(Kind.POOL, "pool")


def going(story: Story) -> None:
    warm(story)
    change(story, Kind.VM, "vm", deletionTimestamp=LATELY, finalizers=["kubevirt.io/x"])


def draining(story: Story) -> None:
    warm(story)
    made_by_us(story, at=LATELY, state="Draining")


def retained(story: Story) -> None:
    story.bound()
    vm = story.objects[Kind.VM, "vm"]
    vm["metadata"]["labels"][f"{P}state"] = "Retained"
    vm["metadata"]["annotations"] = {f"{P}retained-uid": vm["metadata"]["uid"]}
    story.own("vm")
    story.remove(Kind.CLAIM, "claim")


def released_by_its_lifetime(story: Story) -> None:
    story.bound()
    story.status(phase="Releasing", expiresAt=LATELY)


def deleted_with_its_claim(story: Story) -> None:
    story.bound()
    change(story, Kind.CLAIM, "claim", deletionTimestamp=LATELY, finalizers=["foregroundDeletion"])


def somebody_elses(story: Story) -> None:
    story.create(Kind.VM, "vm", metadata={"labels": {"app": "web"}})


def waiting(story: Story) -> None:
    story.pool()
    story.claim()
    story.status(phase="Pending")


WELL: list[Tell] = [
    warm, claimed, claimed_and_its_pool_gone, going, draining, retained, released_by_its_lifetime,
    deleted_with_its_claim, somebody_elses, waiting,
]  # fmt: skip


@pytest.mark.parametrize("tell", WELL, ids=lambda tell: tell.__name__)
def test_nothing_is_said_of_what_is_well(tell: Tell) -> None:
    story = Story()
    tell(story)
    assert found(story) == []


# ---- VMs


def a_copy_of_a_warm_one(story: Story) -> None:
    warm(story)
    story.own("vm")


def one_of_a_deployment(story: Story) -> None:
    warm(story)
    story.own("vm", {"apiVersion": "apps/v1", "kind": "Web", "name": "shop", "uid": "x", "controller": True})


def one_whose_owner_was_taken_off(story: Story) -> None:
    warm(story)
    made_by_us(story)
    story.own("vm")


def orphaned_with_its_claim(story: Story) -> None:
    story.bound()
    made_by_us(story)
    story.own("vm")
    story.remove(Kind.CLAIM, "claim")


def orphaned_with_its_claim_and_then_its_pool_went(story: Story) -> None:
    orphaned_with_its_claim(story)
    story.remove(Kind.POOL, "pool")


def orphaned_with_its_pool(story: Story) -> None:
    warm(story)
    story.own("vm")
    story.remove(Kind.POOL, "pool")


def used_and_not_owned(story: Story) -> None:
    story.bound()
    story.own("vm")


def owned_by_a_pool_and_labelled_for_another(story: Story) -> None:
    warm(story)
    story.label(pool_uid="another")


def without_labels(story: Story) -> None:
    warm(story)
    change(story, Kind.VM, "vm", labels={})


def in_a_state_that_there_is_not(story: Story) -> None:
    warm(story)
    story.label(state="Sleeping")


def of_a_pool_that_is_gone(story: Story) -> None:
    warm(story)
    story.remove(Kind.POOL, "pool")


def of_a_claim_that_is_gone(story: Story) -> None:
    story.bound()
    story.remove(Kind.CLAIM, "claim")


def claimed_and_owned_by_its_pool(story: Story) -> None:
    warm(story)
    story.label(state="Claimed")


def pooled_and_owned_by_a_claim(story: Story) -> None:
    story.bound()
    story.status(phase="Releasing", expiresAt=LATELY)
    story.label(state="Pooled")


def pooled_with_the_uid_of_a_claim(story: Story) -> None:
    warm(story)
    story.label(claim_uid=OTHER_CLAIM)


def draining_for_ever(story: Story) -> None:
    warm(story)
    made_by_us(story, state="Draining")


def recycling_for_ever(story: Story) -> None:
    warm(story)
    made_by_us(story, state="Recycling")


def terminating_for_ever(story: Story) -> None:
    warm(story)
    change(story, Kind.VM, "vm", deletionTimestamp=LONG_AGO, finalizers=["kubevirt.io/a", "example.com/b"])


def held_for_a_claim_that_waits(story: Story) -> None:
    story.pool()
    story.vm()
    story.claim()
    story.status(phase="Pending")
    story.hand_over()


def held_for_a_claim_that_has_another(story: Story) -> None:
    story.bound()
    story.vm("second")
    story.hand_over("second")


def held_for_a_claim_that_is_over(story: Story) -> None:
    story.bound()
    story.status(phase="Released")


VMS: list[tuple[Tell, Severity, str, str]] = [
    (a_copy_of_a_warm_one, Severity.FOREIGN, "foreign", "is owned by nobody: a copy, or restored"),
    (one_of_a_deployment, Severity.FOREIGN, "foreign", "belongs to Web shop; Bullpen leaves it alone"),
    (one_whose_owner_was_taken_off, LEAK, "owner-taken-off", "took its owner reference off"),
    (orphaned_with_its_claim, Severity.NOTE, "orphaned", "was left when its claim went"),
    (orphaned_with_its_claim_and_then_its_pool_went, Severity.NOTE, "orphaned", "when its claim went"),
    (orphaned_with_its_pool, Severity.NOTE, "orphaned", "was left when its pool went"),
    (orphaned_with_its_claim, Severity.NOTE, "orphaned", "or its owner reference was taken off)"),
    (used_and_not_owned, BROKEN, "used-and-unowned", "used by claim claim, which does not own it"),
    (owned_by_a_pool_and_labelled_for_another, BROKEN, "two-owners", "which its labels do not say"),
    (without_labels, Severity.WARNING, "unlabelled", "has no label bullpen.dev/state"),
    (in_a_state_that_there_is_not, BROKEN, "illegal-state", "'Sleeping', which there is not"),
    (of_a_pool_that_is_gone, LEAK, "owner-gone", "a pool that does not exist any more (pool-uid-1)"),
    (of_a_claim_that_is_gone, LEAK, "owner-gone", "a claim that does not exist any more"),
    (claimed_and_owned_by_its_pool, BROKEN, "wrong-owner", "is Claimed and owned by a Virt"),
    (pooled_and_owned_by_a_claim, BROKEN, "wrong-owner", "is Pooled and owned by a Virt"),
    (pooled_with_the_uid_of_a_claim, BROKEN, "pooled-and-claimed", OTHER_CLAIM),
    (draining_for_ever, Severity.WARNING, "stuck-draining", "is Draining since 2026-01-01T12:49:00Z"),
    (recycling_for_ever, Severity.WARNING, "stuck-recycling", "is Recycling since"),
    (terminating_for_ever, Severity.WARNING, "stuck-terminating", "kubevirt.io/a and example.com/b hold it"),
    (held_for_a_claim_that_waits, LEAK, "held-by-nobody", "which is Pending and does not name it"),
    (held_for_a_claim_that_has_another, LEAK, "held-by-nobody", "which is Bound and does not name it"),
    (held_for_a_claim_that_is_over, LEAK, "held-by-nobody", "which is Released"),
]  # fmt: skip


@pytest.mark.parametrize(("tell", "severity", "what", "words"), VMS, ids=[row[0].__name__ for row in VMS])
def test_a_vm_that_is_wrong_is_named_once(tell: Tell, severity: Severity, what: str, words: str) -> None:
    story = Story()
    tell(story)
    [one] = found(story)
    assert one.about is not None
    assert one.about.kind is Kind.VM
    assert (one.severity, one.what) == (severity, what)
    assert words in one.message
    assert one.advice


# ---- claims


def with_two_vms(story: Story) -> None:
    story.bound()
    story.vm("second")
    story.hand_over("second")
    story.publish("claim", "vm", "second")


def bound_to_nothing(story: Story) -> None:
    story.claim()
    story.status(phase="Bound")


def pending_with_a_vm(story: Story) -> None:
    story.claim()
    story.status(phase="Pending", virtualMachines=[{"name": "vm", "uid": "x"}])


def whose_vm_is_gone(story: Story) -> None:
    story.bound()
    story.remove(Kind.VM, "vm")


def whose_vm_is_another(story: Story) -> None:
    story.bound()
    story.remove(Kind.VM, "vm")
    story.vm("vm")


def whose_vm_carries_another_claims_uid(story: Story) -> None:
    story.bound()
    story.claim("thief")
    story.hand_over("vm", "thief")
    story.publish("thief", "vm")
    story.status("thief", phase="Lost")


def whose_vm_is_offered(story: Story) -> None:
    story.bound()
    story.label(state="Pooled", claim_uid=None)
    story.own("vm", owner("VirtualMachinePool", "pool", story.uid(Kind.POOL, "pool")))


def released_for_ever(story: Story) -> None:
    story.bound()
    story.status(phase="Releasing", expiresAt=LONG_AGO)


def deleted_for_ever(story: Story) -> None:
    story.bound()
    change(story, Kind.CLAIM, "claim", deletionTimestamp=LONG_AGO, finalizers=["example.com/mine"])


CLAIMS: list[tuple[Tell, Severity, str, str]] = [
    (with_two_vms, BROKEN, "too-many", "names 2 VMs and asked for 1"),
    (bound_to_nothing, BROKEN, "bound-to-nothing", "names no VM"),
    (pending_with_a_vm, BROKEN, "pending-with-vm", "is Pending and names a VM"),
    (whose_vm_is_gone, BROKEN, "vm-gone", "which does not exist"),
    (whose_vm_is_another, BROKEN, "vm-gone", "the VM of that name is another one"),
    (whose_vm_carries_another_claims_uid, BROKEN, "vm-of-another", "the UID of another claim"),
    (whose_vm_is_offered, BROKEN, "vm-offered", "marked as free"),
    (released_for_ever, Severity.WARNING, "stuck-releasing", "is being released since 2026-01-01T12:49:00Z"),
    (deleted_for_ever, Severity.WARNING, "stuck-terminating", "example.com/mine hold it"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tell", "severity", "what", "words"), CLAIMS, ids=[row[0].__name__ for row in CLAIMS]
)
def test_a_claim_that_is_wrong_is_named(tell: Tell, severity: Severity, what: str, words: str) -> None:
    story = Story()
    tell(story)
    [one, *_] = [each for each in found(story) if each.about and each.about.kind is Kind.CLAIM]
    assert (one.severity, one.what) == (severity, what)
    assert words in one.message
    assert one.advice


def test_a_vm_that_two_claims_have_is_told_of_both() -> None:
    story = Story()
    story.bound()
    story.claim("second")
    story.hand_over("vm", "second")
    story.publish("second", "vm")
    twice = [each for each in found(story) if each.what == "used-twice"]
    assert [each.message for each in twice] == [
        "has VM vm, and so has claim second", "has VM vm, and so has claim claim",
    ]  # fmt: skip


# ---- pools


def pool(story: Story, *, generation: int = 1, observed: int | None = 1, **metadata: Any) -> None:
    status = {} if observed is None else {"observedGeneration": observed, "conditions": []}
    story.create(Kind.POOL, "pool", metadata={"generation": generation, **metadata}, status=status)


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({}, []),
        ({"observed": None}, ["unseen"]),
        ({"generation": 2}, ["unseen"]),
        ({"deletionTimestamp": LATELY, "observed": None}, []),
        ({"deletionTimestamp": LONG_AGO, "finalizers": ["bullpen.dev/pool"]}, ["stuck-terminating"]),
    ],
)
def test_a_pool_that_nobody_looks_after_is_named(how: dict[str, Any], what: list[str]) -> None:
    story = Story()
    pool(story, **how)
    assert [each.what for each in found(story)] == what


def test_a_pool_whose_controller_said_good_bye_is_named() -> None:
    story = Story()
    pool(story)
    conditions = [{"type": "Ready", "status": "Unknown", "reason": "ControllerStopped"}]
    story.objects[Kind.POOL, "pool"]["status"]["conditions"] = conditions
    assert [(each.severity, each.what) for each in found(story)] == [(Severity.WARNING, "no-controller")]


# ---- of all of them


@pytest.mark.parametrize("tell", [row[0] for row in (*VMS, *CLAIMS)], ids=lambda tell: tell.__name__)
def test_in_a_namespace_that_ends_nothing_is_wrong(tell: Tell) -> None:
    story = Story()
    tell(story)
    assert found(story, "ns") == []


@pytest.mark.parametrize("tell", [row[0] for row in (*VMS, *CLAIMS)], ids=lambda tell: tell.__name__)
def test_what_is_seen_later_and_has_not_changed_lasts(tell: Tell) -> None:
    story = Story()
    tell(story)
    first = found(story)
    assert lasting(first, found(story)) == first


def test_what_was_on_its_way_is_through_by_the_second_look() -> None:
    story = Story()
    held_for_a_claim_that_waits(story)
    first = found(story)
    story.publish()
    story.claim("next")
    story.vm("other")
    story.hand_over("other", "next")
    second = found(story)
    assert [each.what for each in (*first, *second)] == ["held-by-nobody", "held-by-nobody"]
    assert lasting(first, second) == []


def test_the_worst_comes_first() -> None:
    story = Story()
    a_copy_of_a_warm_one(story)
    story.vm("a")
    story.label("a", state="Sleeping")
    assert [each.severity for each in ordered(found(story))] == [BROKEN, Severity.FOREIGN]


def test_thousands_of_vms_are_judged_in_a_moment() -> None:
    story = Story()
    story.pool()
    for number in range(3_000):
        story.vm(f"vm-{number}")
    all_of_them = seen(story)
    begun = datetime.now(UTC)
    assert judged(all_of_them) == []
    assert datetime.now(UTC) - begun < timedelta(seconds=3)
