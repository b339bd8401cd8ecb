"""Each invariant broken, one at a time: the auditor names it, once."""

import pytest

from auditor.events import Kind, Rule
from auditor.judge import Judge
from tests.unit.auditor.story import PERSON, Story, owner

# I1


def test_i1_a_second_claim_uid_on_a_vm_that_was_not_published() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim("a")
    story.claim("b")
    story.hand_over("vm", "a")
    story.hand_over("vm", "b")

    assert story.broken() == [Rule.I1]
    (found,) = story.judge().violations
    assert found.subject == f"VM ns/vm ({story.uid(Kind.VM, 'vm')})"
    assert found.rv == story.rv
    assert story.uid(Kind.CLAIM, "a") in found.message
    assert story.uid(Kind.CLAIM, "b") in found.message


def test_i1_and_i5_a_double_hand_over_of_a_published_vm() -> None:
    story = Story()
    story.bound(claim="a")
    story.claim("b")
    story.hand_over("vm", "b")
    story.publish("b", "vm")

    assert story.broken() == [Rule.I1, Rule.I5, Rule.I1]
    assert "which claim a " in story.judge().violations[-1].message


def test_i1_two_bound_claims_name_one_vm() -> None:
    story = Story()
    story.bound(claim="a")
    story.claim("b")
    story.publish("b", "vm")

    assert story.broken() == [Rule.I1]


def test_i1_a_claim_names_a_vm_that_was_not_handed_to_it() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.publish()

    assert story.broken() == [Rule.I1]
    assert "carries no claim UID" in story.judge().violations[0].message


def test_i1_survives_a_label_that_was_stripped_in_between() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim("a")
    story.claim("b")
    story.hand_over("vm", "a")
    story.label(claim_uid=None, by=PERSON)
    story.hand_over("vm", "b")

    assert story.broken() == [Rule.I1]


# I2


def test_i2_a_claim_names_more_than_it_asked_for() -> None:
    story = Story()
    story.bound("one")
    story.vm("two")
    story.claim("other")
    story.hand_over("two", "other")
    story.status("other", phase="Pending")
    story.vm("three")
    story.hand_over("three", "other")
    story.publish("other", "two", "three")

    assert story.broken() == [Rule.I2]


def test_i2_what_a_claim_names_is_replaced() -> None:
    story = Story()
    story.bound("one")
    story.vm("two")
    story.hand_over("two", "claim")
    story.publish("claim", "two")

    assert story.broken() == [Rule.I2]


def test_i2_what_a_claim_names_is_taken_away() -> None:
    story = Story()
    story.bound()
    story.status(virtualMachines=[])

    assert story.broken() == [Rule.I2]


def test_i2_a_bound_claim_goes_back_to_the_queue() -> None:
    story = Story()
    story.bound()
    story.status(phase="Pending")

    assert story.broken() == [Rule.I2]


@pytest.mark.parametrize("phase", ["Released", "Expired", "Failed", "Lost"])
def test_i2_a_finished_claim_is_bound(phase: str) -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    story.status(phase=phase)
    story.publish()

    assert story.broken() == [Rule.I2]


def test_i2_a_claim_is_bound_after_it_was_deleted() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    story.delete(Kind.CLAIM, "claim", "foregroundDeletion")
    story.publish()

    assert story.broken() == [Rule.I2]


def test_i2_a_releasing_claim_is_bound_again() -> None:
    story = Story()
    story.bound()
    story.status(phase="Releasing")
    story.status(phase="Bound")

    assert story.broken() == [Rule.I2]


def test_i2_a_claim_is_bound_and_names_nothing() -> None:
    story = Story()
    story.claim()
    story.status(phase="Bound")

    assert story.broken() == [Rule.I2]


def test_i2_a_claim_names_a_vm_that_never_was() -> None:
    story = Story()
    story.claim()
    story.status(phase="Bound", virtualMachines=[{"name": "ghost", "uid": "ghost-uid"}])

    assert story.broken() == [Rule.I2]


# I3


def test_i3_a_vm_in_use_is_deleted() -> None:
    story = Story()
    story.bound()
    story.destroy()

    assert story.broken() == [Rule.I3]


def test_i3_a_vm_in_use_vanishes_at_once() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.VM, "vm")

    assert story.broken() == [Rule.I3]


def test_i3_the_vm_of_an_expired_claim_goes_before_its_status_says_so() -> None:
    story = Story()
    story.bound()
    story.destroy()
    story.status(phase="Releasing")

    assert story.broken() == [Rule.I3]


def test_i3_a_vm_is_handed_over_while_it_is_being_deleted() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.delete(Kind.VM, "vm", "kubevirt.io/virtualMachineControllerFinalize")
    story.hand_over()

    assert story.broken() == [Rule.I3]


def test_i3_a_draining_vm_is_handed_over() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.label(state="Draining")
    story.hand_over()

    assert story.broken() == [Rule.I3]


def test_i3_a_pool_deleted_in_the_background_is_no_excuse() -> None:
    story = Story()
    story.bound()
    story.delete(Kind.POOL, "pool", "bullpen.dev/pool")
    story.destroy()

    assert story.broken() == [Rule.I3]


def test_i3_a_pool_deleted_in_the_foreground_long_after_the_hand_over_is_no_excuse() -> None:
    story = Story()
    story.bound()
    story.status(boundAt="2026-01-01T11:00:00Z")
    story.delete(Kind.POOL, "pool", "foregroundDeletion")
    story.destroy()

    assert story.broken() == [Rule.I3]


def test_i3_what_a_person_deletes_is_excused_and_its_claim_must_then_be_lost() -> None:
    story = Story()
    story.bound()
    story.destroy()
    judge = Judge()
    judge.excuse(story.events[-1].objects[0]["metadata"]["uid"], "the test deletes it")

    assert story.broken(judge) == []
    assert [found.rule for found in judge.at_rest()] == [Rule.REST]


# I4


def test_i4_a_claimed_vm_that_its_pool_still_owns() -> None:
    story = Story()
    story.pool()
    story.vm()
    uid = story.claim()
    story.label(state="Claimed", claim_uid=uid)

    assert story.broken() == [Rule.I4]


def test_i4_a_vm_that_nobody_owns_any_more() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.own("vm")

    assert story.broken() == [Rule.I4]


def test_i4_a_vm_owned_by_a_claim_that_its_labels_do_not_name() -> None:
    story = Story()
    story.bound()
    story.own("vm", owner("VirtualMachineClaim", "other", "other-uid"))

    assert story.broken() == [Rule.I4]


def test_i4_an_owner_that_does_not_control_is_no_owner() -> None:
    story = Story()
    uid = story.pool()
    story.vm()
    story.own("vm", owner("VirtualMachinePool", "pool", uid, controller=False))

    assert story.broken() == [Rule.I4]


def test_i4_a_vm_that_is_wrongly_owned_from_its_birth() -> None:
    story = Story()
    uid = story.pool()
    labels = {"bullpen.dev/state": "Claimed", "bullpen.dev/pool-uid": uid}
    owners = [owner("VirtualMachinePool", "pool", uid)]
    story.create(Kind.VM, "vm", metadata={"labels": labels, "ownerReferences": owners})

    assert story.broken() == [Rule.I4]


def test_i4_is_reported_once_while_it_stays_broken() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.own("vm")
    story.write(Kind.VM, "vm", lambda raw: raw.update(status={"ready": True}))
    story.write(Kind.VM, "vm", lambda raw: raw.update(status={"ready": False}))

    assert story.broken() == [Rule.I4]


def test_i4_a_person_who_relabels_a_claimed_vm_breaks_nothing_unless_it_stays() -> None:
    story = Story()
    story.bound()
    story.label(state="Pooled", by=PERSON)

    assert story.wrong_at_rest() == [Rule.REST]
    story.label(state="Claimed")
    assert story.wrong_at_rest() == []


# I5


def test_i5_a_used_vm_is_offered_again() -> None:
    story = Story()
    story.bound()
    pool = story.uid(Kind.POOL, "pool")
    story.remove(Kind.CLAIM, "claim")
    story.own("vm", owner("VirtualMachinePool", "pool", pool))
    story.label(state="Pooled", claim_uid=None)

    assert story.broken() == [Rule.I4, Rule.I5]


def test_i5_a_used_vm_is_named_by_a_later_claim() -> None:
    story = Story()
    story.bound(claim="a")
    story.remove(Kind.CLAIM, "a")
    story.claim("b")
    story.publish("b", "vm")

    assert story.broken() == [Rule.I5]


def test_i5_a_label_put_back_by_us_as_pooled_after_a_person_stripped_it() -> None:
    story = Story()
    story.bound()
    story.label(state=None, by=PERSON)
    story.label(state="Pooled")

    assert Rule.I5 in story.broken()


# What is not ours


def _copy(story: Story) -> None:
    story.bound()
    labels = dict(story.objects[Kind.VM, "vm"]["metadata"]["labels"])
    story.create(Kind.VM, "copy", metadata={"labels": labels | {"bullpen.dev/state": "Pooled"}})


@pytest.mark.parametrize("state", ["Claimed", "Draining"])
def test_foreign_a_copy_is_labelled(state: str) -> None:
    story = Story()
    _copy(story)
    story.label("copy", state=state)

    assert story.broken() == [Rule.FOREIGN]


def test_foreign_a_copy_is_adopted() -> None:
    story = Story()
    _copy(story)
    story.hand_over("copy", "claim")

    assert story.broken() == [Rule.FOREIGN]
    assert "given the owner VirtualMachineClaim" in story.judge().violations[0].message


def test_foreign_a_copy_is_deleted() -> None:
    story = Story()
    _copy(story)
    story.destroy("copy")

    assert story.broken() == [Rule.FOREIGN]


def test_foreign_a_person_may_do_all_of_it() -> None:
    story = Story()
    _copy(story)
    judge = Judge()
    judge.excuse(story.uid(Kind.VM, "copy"), "it is the person's own")
    story.label("copy", state="Draining", by=PERSON)
    story.destroy("copy")

    assert story.broken(judge) == []


def test_foreign_a_vm_that_an_orphan_delete_left_to_its_user() -> None:
    story = Story()
    story.bound()
    story.delete(Kind.CLAIM, "claim", "orphan")
    story.own("vm")
    story.remove(Kind.CLAIM, "claim")
    story.destroy()

    assert story.broken() == [Rule.FOREIGN]


# At rest


def test_rest_a_vm_that_is_held_and_never_published_is_a_leak() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()

    assert story.wrong_at_rest() == [Rule.LEAK]


def test_rest_a_vm_whose_claim_is_gone_is_a_leak() -> None:
    story = Story()
    story.bound()
    story.remove(Kind.CLAIM, "claim")

    assert story.wrong_at_rest() == [Rule.LEAK]


def test_rest_a_second_vm_of_a_bound_claim_is_a_leak() -> None:
    story = Story()
    story.bound()
    story.vm("second")
    story.hand_over("second")

    assert story.wrong_at_rest() == [Rule.LEAK]


@pytest.mark.parametrize("phase", ["Releasing", "Released", "Lost"])
def test_rest_a_vm_of_an_ended_claim_is_a_leak(phase: str) -> None:
    story = Story()
    story.bound()
    story.status(phase=phase)

    assert story.wrong_at_rest() == [Rule.LEAK]


def test_rest_a_draining_vm_that_nobody_deletes_is_a_leak() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.label(state="Draining")

    assert story.wrong_at_rest() == [Rule.LEAK]


def test_rest_a_recycling_vm_of_which_nothing_comes_is_a_leak() -> None:
    story = Story()
    story.pool()
    story.vm()
    story.label(state="Recycling")

    assert story.wrong_at_rest() == [Rule.LEAK]


def test_rest_a_claim_that_stays_releasing_without_a_vm() -> None:
    story = Story()
    story.bound()
    story.status(phase="Releasing")
    story.destroy()

    assert story.wrong_at_rest() == [Rule.REST]


def test_a_vm_that_its_user_has_kept_is_deleted() -> None:
    story = Story()
    story.bound()
    story.delete(Kind.CLAIM, "claim", "orphan")
    story.own("vm")
    story.delete(Kind.CLAIM, "claim", "foregroundDeletion")
    story.destroy()

    assert story.broken() == [Rule.FOREIGN]
