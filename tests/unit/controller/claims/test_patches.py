"""Every guard of the protocol's writes: with it a changed object refuses, without it all goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.claims import patches
from controller.claims.objects import Claim
from controller.claims.protocol import Ops
from controller.machines.ownership import OwnerKind, owner_of
from crds import names
from tests.support.builders import (
    NOW,
    make_bound_claim,
    make_claim,
    make_condition,
    make_vm,
    read_claim,
    read_vm,
    stored,
)
from tests.support.patching import Refused, applied, refused

Json = dict[str, Any]
Change = Callable[[Json], object]

VM = make_vm(labels={"template": "label"})
CLAIM = make_claim(labels={"team": "a"}, annotations={"ticket/id": "7"})


def _labels(**fields: str | None) -> Change:
    """Set labels of ours, or take them away."""
    keys = {"state": names.LABEL_STATE, "claim_uid": names.LABEL_CLAIM_UID}

    def change(raw: Json) -> None:
        for key, value in fields.items():
            raw["metadata"]["labels"].pop(keys[key], None)
            if value is not None:
                raw["metadata"]["labels"][keys[key]] = value

    return change


def _metadata(**fields: Any) -> Change:
    return lambda raw: raw["metadata"].update(fields)


def _changed(raw: Json, change: Change) -> Json:
    change(raw)
    return raw


def _without(ops: Ops, path: str) -> Ops:
    left = tuple(op for op in ops if not (op["op"] == "test" and op["path"] == path))
    assert len(left) == len(ops) - 1, f"there is one test of {path}"
    return left


def _tested(ops: Ops) -> list[str]:
    return [op["path"] for op in ops if op["op"] == "test"]


OWNER = {
    "apiVersion": names.API_VERSION,
    "kind": names.POOL_KIND,
    "name": "pool",
    "uid": "pool-uid",
    "controller": True,
    "blockOwnerDeletion": True,
}

# What may have happened to a VM between our last look and our write, and the guard that notices.
VM_CHANGES = [
    pytest.param(_metadata(uid="other-uid"), "/metadata/uid", id="another VM has its name"),
    pytest.param(
        _metadata(deletionTimestamp="2026-01-01T11:59:59Z"), "/metadata/deletionTimestamp", id="it is going"
    ),
    pytest.param(_labels(state="Claimed"), patches.STATE, id="it was handed over"),
    pytest.param(_labels(state="Draining"), patches.STATE, id="it is draining"),
    pytest.param(_labels(state=None), patches.STATE, id="a person took the state off"),
    pytest.param(_labels(claim_uid="rival-uid"), patches.CLAIM_UID, id="it carries another claim"),
    pytest.param(
        lambda raw: raw["metadata"].pop("ownerReferences"), "/metadata/ownerReferences", id="it has no owner"
    ),
    pytest.param(
        _metadata(ownerReferences=[{**OWNER, "uid": "other-uid"}]),
        "/metadata/ownerReferences",
        id="another pool owns it",
    ),
    pytest.param(
        _metadata(
            ownerReferences=[OWNER, {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}]
        ),
        "/metadata/ownerReferences",
        id="somebody else owns it too",
    ),
]


# ---- write 1


def test_write_1_makes_the_vm_the_claims() -> None:
    after = read_vm(applied(stored(VM), patches.hand_over(VM, CLAIM)))
    owner = owner_of(after.metadata)
    assert owner is not None
    assert (owner.kind, owner.name, owner.uid) == (OwnerKind.CLAIM, "claim", "claim-uid")
    assert len(after.metadata.owner_references) == 1
    assert after.metadata.owner_references[0].block_owner_deletion
    assert after.metadata.labels[names.LABEL_STATE] == names.Mark.CLAIMED
    assert after.metadata.labels[names.LABEL_CLAIM_UID] == "claim-uid"
    assert after.metadata.annotations[names.ANNOTATION_CLAIM] == "claim"
    assert after.metadata.annotations[names.ANNOTATION_RELEASE_POLICY] == "Delete"


def test_write_1_gives_the_claims_metadata_and_leaves_all_else() -> None:
    after = read_vm(applied(stored(VM), patches.hand_over(VM, CLAIM))).metadata
    assert after.labels["team"] == "a"
    assert after.annotations["ticket/id"] == "7"
    assert after.labels["template"] == "label"
    assert after.labels[names.LABEL_POOL_UID] == "pool-uid"
    assert after.uid == VM.metadata.uid


@pytest.mark.parametrize(("change", "guard"), VM_CHANGES)
def test_write_1_is_refused_when(change: Change, guard: str) -> None:
    seen = _changed(stored(VM), change)
    ops = patches.hand_over(VM, CLAIM)
    with pytest.raises(Refused) as caught:
        applied(seen, ops)
    assert caught.value.op["path"] == guard
    stolen = applied(seen, _without(ops, guard))
    assert stolen["metadata"]["labels"][names.LABEL_CLAIM_UID] == "claim-uid"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param(
            lambda raw: raw["metadata"]["labels"].update(team="b"), "/metadata/labels/team", id="label"
        ),
        pytest.param(
            lambda raw: raw["metadata"]["labels"].update(team="a"),
            "/metadata/labels/team",
            id="label, even with the same value",
        ),
        pytest.param(
            lambda raw: raw["metadata"]["annotations"].update({"ticket/id": "8"}),
            "/metadata/annotations/ticket~1id",
            id="annotation",
        ),
    ],
)
def test_a_claim_may_add_and_never_overwrites_a(change: Change, path: str) -> None:
    seen = _changed(stored(VM), change)
    ops = patches.hand_over(VM, CLAIM)
    with pytest.raises(Refused) as caught:
        applied(seen, ops)
    assert caught.value.op["path"] == path
    assert not refused(seen, _without(ops, path))


def test_write_1_tests_everything_before_it_changes_anything() -> None:
    kinds = [op["op"] for op in patches.hand_over(VM, CLAIM)]
    assert kinds == sorted(kinds, reverse=True)


def test_write_1_has_each_guard_once_and_no_other() -> None:
    assert _tested(patches.hand_over(VM, CLAIM)) == [
        "/metadata/uid",
        "/metadata/deletionTimestamp",
        patches.STATE,
        patches.CLAIM_UID,
        "/metadata/ownerReferences",
        "/metadata/labels/team",
        "/metadata/annotations/ticket~1id",
    ]


def test_write_1_applied_twice_is_refused_the_second_time() -> None:
    ops = patches.hand_over(VM, CLAIM)
    once = applied(stored(VM), ops)
    assert refused(once, ops)


def test_two_claims_never_both_get_a_vm() -> None:
    first, second = (patches.hand_over(VM, make_claim(name)) for name in ("one", "two"))
    assert refused(applied(stored(VM), first), second)
    assert refused(applied(stored(VM), second), first)


def test_write_1_and_a_drain_of_the_same_vm_never_both_succeed() -> None:
    claim, drain = patches.hand_over(VM, CLAIM), patches.drain(VM)
    assert refused(applied(stored(VM), claim), drain)
    assert refused(applied(stored(VM), drain), claim)


def test_what_a_person_notes_on_a_vm_does_not_refuse_a_hand_over() -> None:
    noted = _changed(stored(VM), lambda raw: raw["metadata"]["annotations"].update(note="mine"))
    noted["metadata"]["resourceVersion"] = "999"
    assert not refused(noted, patches.hand_over(VM, CLAIM))


def test_a_claim_that_names_a_key_of_ours_is_refused_by_the_vm_that_has_it() -> None:
    """The CRD refuses such a claim; were one let in by an older one, the VM would."""
    sly = make_claim(labels={names.LABEL_POOL: "other"})
    assert refused(stored(VM), patches.hand_over(VM, sly))


def test_taken_keys_are_those_that_the_vm_has_already() -> None:
    vm = make_vm(labels={"team": "b", "free": None}, annotations={"ticket/id": "8"})
    assert patches.taken_keys(vm, CLAIM) == ["team", "ticket/id"]
    assert patches.taken_keys(VM, CLAIM) == []


# ---- drain


def test_a_drain_marks_and_changes_nothing_else() -> None:
    after = applied(stored(VM), patches.drain(VM))
    assert after["metadata"]["labels"].pop(names.LABEL_STATE) == "Draining"
    before = stored(VM)
    del before["metadata"]["labels"][names.LABEL_STATE]
    assert after == before


@pytest.mark.parametrize(("change", "guard"), VM_CHANGES)
def test_a_drain_is_refused_when(change: Change, guard: str) -> None:
    seen = _changed(stored(VM), change)
    ops = patches.drain(VM)
    with pytest.raises(Refused) as caught:
        applied(seen, ops)
    assert caught.value.op["path"] == guard
    assert applied(seen, _without(ops, guard))["metadata"]["labels"][names.LABEL_STATE] == "Draining"


def test_a_drain_has_the_very_tests_of_write_1() -> None:
    bare = make_claim()
    assert _tested(patches.drain(VM)) == _tested(patches.hand_over(VM, bare))


# ---- relabel


STRAY = make_vm(state=names.Mark.POOLED, claim_uid="claim-uid")


def test_a_claimed_vm_whose_label_was_set_back_is_put_right() -> None:
    after = applied(stored(STRAY), patches.relabel_claimed(STRAY))
    assert after["metadata"]["labels"][names.LABEL_STATE] == "Claimed"
    assert after["metadata"]["labels"][names.LABEL_CLAIM_UID] == "claim-uid"


def test_a_claimed_vm_whose_label_was_taken_away_is_put_right() -> None:
    bare = make_vm(state=None, claim_uid="claim-uid")
    assert (
        applied(stored(bare), patches.relabel_claimed(bare))["metadata"]["labels"][names.LABEL_STATE]
        == "Claimed"
    )


@pytest.mark.parametrize(
    ("change", "guard"),
    [
        pytest.param(_metadata(uid="other-uid"), "/metadata/uid", id="another VM has its name"),
        pytest.param(_labels(state="Draining"), patches.STATE, id="somebody drains it"),
        pytest.param(_labels(claim_uid="rival-uid"), patches.CLAIM_UID, id="it carries another claim"),
        pytest.param(_labels(claim_uid=None), patches.CLAIM_UID, id="it carries none any more"),
    ],
)
def test_a_relabelling_is_refused_when(change: Change, guard: str) -> None:
    seen = _changed(stored(STRAY), change)
    ops = patches.relabel_claimed(STRAY)
    with pytest.raises(Refused) as caught:
        applied(seen, ops)
    assert caught.value.op["path"] == guard
    assert not refused(seen, _without(ops, guard))


# ---- write 2


PENDING = make_claim(phase="Pending", conditions=[make_condition("Bound", "False", reason="Queued")])
FRESH = {"phase": "Bound", "pool": "pool"}


def _phase(value: str) -> Change:
    return lambda raw: raw["status"].update(phase=value)


CLAIM_CHANGES = [
    pytest.param(_metadata(uid="other-uid"), "/metadata/uid", id="a namesake"),
    pytest.param(
        _metadata(deletionTimestamp="2026-01-01T12:00:00Z"), "/metadata/deletionTimestamp", id="going"
    ),
    pytest.param(_phase("Bound"), "/status/phase", id="bound by somebody else"),
    pytest.param(_phase("Expired"), "/status/phase", id="expired"),
    pytest.param(_phase("Releasing"), "/status/phase", id="releasing"),
]


def test_write_2_replaces_the_whole_status() -> None:
    after = applied(stored(PENDING), patches.whole_status(PENDING, FRESH))
    assert after["status"] == FRESH


@pytest.mark.parametrize(("change", "guard"), CLAIM_CHANGES)
def test_write_2_is_refused_when_the_claim_is(change: Change, guard: str) -> None:
    seen = _changed(stored(PENDING), change)
    ops = patches.whole_status(PENDING, FRESH)
    with pytest.raises(Refused) as caught:
        applied(seen, ops)
    assert caught.value.op["path"] == guard
    assert applied(seen, _without(ops, guard))["status"] == FRESH


def test_write_2_onto_a_claim_without_a_status_is_refused_when_it_has_one_by_now() -> None:
    new = make_claim()
    ops = patches.whole_status(new, FRESH)
    assert applied(stored(new), ops)["status"] == FRESH
    bound = stored(make_bound_claim())
    assert refused(bound, ops)
    assert not refused(bound, _without(ops, "/status"))


def test_write_2_onto_a_status_without_a_phase_is_refused_when_it_has_one_by_now() -> None:
    vague = make_claim(phase="")
    raw = {**stored(vague), "status": {"observedGeneration": 1}}
    ops = patches.whole_status(read_claim(raw), FRESH)
    assert not refused(raw, ops)
    raw["status"]["phase"] = "Expired"
    assert refused(raw, ops)


def test_a_place_in_the_queue_or_a_persons_note_does_not_refuse_write_2() -> None:
    seen = stored(PENDING)
    seen["status"]["queue"] = {"position": 3}
    seen["metadata"]["annotations"] = {"note": "mine"}
    seen["metadata"]["resourceVersion"] = "999"
    assert not refused(seen, patches.whole_status(PENDING, FRESH))


def test_write_2_applied_twice_is_refused_the_second_time() -> None:
    ops = patches.whole_status(PENDING, FRESH)
    assert refused(applied(stored(PENDING), ops), ops)


def test_a_write_that_does_not_ask_for_life_is_taken_by_a_claim_that_is_going() -> None:
    going = make_bound_claim(deleting=True, finalizers=["orphan"])
    ops = patches.whole_status(going, {"phase": "Released"}, alive=False)
    assert "/metadata/deletionTimestamp" not in _tested(ops)
    assert not refused(stored(going), ops)


@pytest.mark.parametrize("claim", [PENDING, make_claim(), make_bound_claim()])
def test_the_first_operation_names_the_claim_since_its_one_writer_is_found_by_it(claim: Claim) -> None:
    for ops in (patches.whole_status(claim, FRESH), patches.queue_place(claim, {"position": 1})):
        assert ops[0] == {"op": "test", "path": "/metadata/uid", "value": claim.uid}


# ---- the place in the queue


def test_a_place_is_written_alone() -> None:
    after = applied(stored(PENDING), patches.queue_place(PENDING, {"position": 4}))
    assert after["status"].pop("queue") == {"position": 4}
    assert after == stored(PENDING)


@pytest.mark.parametrize(("change", "guard"), CLAIM_CHANGES)
def test_a_place_is_not_written_onto_a_claim_that_is(change: Change, guard: str) -> None:
    seen = _changed(stored(PENDING), change)
    ops = patches.queue_place(PENDING, {"position": 4})
    with pytest.raises(Refused) as caught:
        applied(seen, ops)
    assert caught.value.op["path"] == guard
    assert not refused(seen, _without(ops, guard))


# ---- pointers and times


@given(key=st.text("ab/~01.", min_size=1))
def test_any_key_can_be_pointed_at(key: str) -> None:
    claim = make_claim(labels={key: "v"})
    after = applied(stored(VM), patches.hand_over(VM, claim))
    assert after["metadata"]["labels"][key] == "v"


def test_times_are_written_in_whole_seconds_of_utc() -> None:
    assert patches.timestamp(NOW) == "2026-01-01T12:00:00Z"
    assert patches.timestamp(NOW + 0.999) == "2026-01-01T12:00:00Z"


def test_owner_references_are_tested_as_they_are_stored() -> None:
    assert patches.owner_references(VM) == stored(VM)["metadata"]["ownerReferences"]
