"""Lives in which nothing is broken: the auditor must say nothing, or nobody will listen when it does."""

import pytest

from auditor.events import Change, Event, Kind
from auditor.judge import Judge
from tests.unit.auditor.story import CONTROLLER, PERSON, Story, owner, set_labels


def _clean(story: Story) -> None:
    judge = story.judge()
    assert judge.violations == []
    assert judge.at_rest() == []


def test_a_hand_over_and_a_release() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.CLAIM, "claim")
    story.destroy()

    _clean(story)


def test_a_pending_claim_and_a_warm_vm_are_at_rest() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.status("claim", queue={"position": 1})

    _clean(story)


def test_a_claim_that_expires_is_releasing_before_its_vm_goes() -> None:
    story = Story()
    story.bound()
    story.status("claim", phase="Releasing")
    story.destroy()
    story.status("claim", phase="Released")

    _clean(story)


def test_a_claim_deleted_in_the_foreground_takes_its_vm_first() -> None:
    story = Story()
    story.bound()
    story.delete(Kind.CLAIM, "claim", "foregroundDeletion")
    story.destroy()
    story.remove(Kind.CLAIM, "claim")

    _clean(story)


def test_a_claim_deleted_with_orphan_leaves_its_vm_to_its_user() -> None:
    story = Story()
    story.bound()
    story.delete(Kind.CLAIM, "claim", "orphan")
    story.own("vm")
    story.remove(Kind.CLAIM, "claim")

    _clean(story)


@pytest.mark.parametrize("destroyed", [False, True])
def test_a_claim_deleted_with_orphan_and_then_otherwise_may_keep_its_vm_or_not(destroyed: bool) -> None:  # noqa: FBT001 - a case
    story = Story()
    story.bound()
    story.delete(Kind.CLAIM, "claim", "orphan")
    story.delete(Kind.CLAIM, "claim", "foregroundDeletion")
    story.own("vm")  # by the garbage collector, which had read the claim before
    if destroyed:
        story.destroy()
    story.remove(Kind.CLAIM, "claim")

    _clean(story)


def test_a_pool_deleted_with_orphan_leaves_its_vms() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.delete(Kind.POOL, "pool", "orphan")
    story.own("vm")
    story.remove(Kind.POOL, "pool")

    _clean(story)


def test_a_claim_keeps_its_vm_when_the_pool_goes() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.POOL, "pool")

    _clean(story)


def test_a_surplus_vm_is_drained_and_deleted() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.label(state="Draining")
    story.destroy()

    _clean(story)


def test_a_vm_that_was_never_published_is_destroyed() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    story.remove(Kind.CLAIM, "claim")
    story.destroy()

    _clean(story)


def test_more_vms_may_carry_a_claims_uid_as_long_as_one_is_published() -> None:
    story = Story()
    story.bound()
    story.vm("second")
    story.hand_over("second")
    story.destroy("second")

    _clean(story)


def test_a_vm_handed_over_and_deleted_by_a_person_before_it_is_published_makes_its_claim_lost() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    story.delete(Kind.VM, "vm", "kubevirt.io/virtualMachineControllerFinalize")
    story.publish()
    story.remove(Kind.VM, "vm")
    story.status("claim", phase="Lost")

    _clean(story)


def test_addresses_and_nodes_come_and_go_in_a_published_claim() -> None:
    story = Story()
    story.bound()
    named = {"name": "vm", "uid": story.uid(Kind.VM, "vm")}
    story.status("claim", virtualMachines=[named | {"node": "n1", "addresses": []}])

    _clean(story)


def test_a_recycled_vm_serves_a_second_claim() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.CLAIM, "claim")
    pool = story.uid(Kind.POOL, "pool")

    def recycle(raw: dict[str, object]) -> None:
        meta = raw["metadata"]
        assert isinstance(meta, dict)
        meta["labels"]["bullpen.dev/state"] = "Recycling"
        meta["ownerReferences"] = [owner("VirtualMachinePool", "pool", pool)]

    story.write(Kind.VM, "vm", recycle)
    story.label(state="Pooled", claim_uid=None)
    story.bound(claim="second")

    _clean(story)


def test_a_retained_vm_has_no_owner_and_is_left_alone() -> None:
    story = Story()
    story.bound()

    def retain(raw: dict[str, object]) -> None:
        meta = raw["metadata"]
        assert isinstance(meta, dict)
        meta["labels"]["bullpen.dev/state"] = "Retained"
        meta["annotations"] = {"bullpen.dev/retained-uid": meta["uid"]}
        meta["ownerReferences"] = []

    story.write(Kind.VM, "vm", retain)
    story.remove(Kind.CLAIM, "claim")

    _clean(story)


def test_a_namesake_of_a_deleted_claim_gets_a_vm_of_its_own() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.CLAIM, "claim")
    story.destroy()
    story.vm("other")
    story.bound("other", "claim")

    _clean(story)


def test_vms_of_nobody_in_particular_do_not_concern_the_auditor() -> None:
    story = Story()
    story.create(Kind.VM, "alien", metadata={"labels": {"app": "web"}})
    story.destroy("alien")

    _clean(story)


def test_a_copy_with_all_labels_that_is_left_alone() -> None:
    story = Story()
    story.bound()
    labels = story.objects[Kind.VM, "vm"]["metadata"]["labels"]
    story.create(Kind.VM, "copy", metadata={"labels": labels})
    story.write(Kind.VM, "copy", lambda raw: raw.update(status={"ready": True}))

    _clean(story)


def test_the_end_of_a_namespace_takes_everything_in_any_order() -> None:
    story = Story()
    story.bound()
    story.vm("warm")
    story.create(Kind.NAMESPACE, "ns")
    story.delete(Kind.NAMESPACE, "ns", "kubernetes")
    story.destroy("vm")
    story.remove(Kind.CLAIM, "claim")
    story.destroy("warm")
    story.remove(Kind.NAMESPACE, "ns")

    _clean(story)


def test_a_pool_deleted_in_the_foreground_at_the_instant_of_the_hand_over_is_kubernetes_doing() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    story.delete(Kind.POOL, "pool", "foregroundDeletion")
    story.publish()
    story.destroy()
    story.status("claim", phase="Lost", reason="PoolDeleted")

    _clean(story)


@pytest.mark.parametrize("word", ["state", "claim_uid", "pool_uid"])
def test_a_label_that_a_person_strips_and_that_is_put_back(word: str) -> None:
    story = Story()
    story.bound()
    before = story.objects[Kind.VM, "vm"]["metadata"]["labels"][f"bullpen.dev/{word.replace('_', '-')}"]
    story.write(Kind.VM, "vm", lambda raw: set_labels(raw, {word: None}, PERSON))
    story.write(Kind.VM, "vm", lambda raw: set_labels(raw, {word: before}, CONTROLLER))

    _clean(story)


def test_what_was_there_before_the_watch_is_taken_as_it_is() -> None:
    earlier = Story()
    earlier.bound()
    judge = Judge()
    for kind in Kind:
        judge.see(Event(kind, Change.DARK, 0, until=earlier.rv))
    for kind in (Kind.CLAIM, Kind.VM, Kind.POOL):  # the claim is seen before the VM that it names
        objects = tuple(raw for (of, _), raw in earlier.objects.items() if of is kind)
        judge.see(Event(kind, Change.LISTED, earlier.rv, objects))

    assert judge.violations == []
    assert judge.at_rest() == []


def test_a_claim_deleted_with_orphan_before_it_was_given_its_vm_keeps_none() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    story.delete(Kind.CLAIM, "claim", "orphan")
    story.own("vm")
    story.remove(Kind.CLAIM, "claim")
    story.destroy()

    _clean(story)
