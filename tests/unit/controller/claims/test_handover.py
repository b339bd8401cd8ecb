"""The hand-over, driven through all answers at all stages."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from controller.claims import patches
from controller.claims.handover import HandOver, Outcome, Stage
from controller.claims.protocol import (
    Accepted,
    Answer,
    Denied,
    Done,
    FoundClaim,
    FoundVM,
    Invalid,
    Missing,
    NotApplied,
    PatchClaimStatus,
    PatchVM,
    ReadClaim,
    ReadVM,
    TestRefused,
    Unknown,
)
from controller.claims.status import Terms
from crds import names
from tests.support.builders import (
    NOW,
    at,
    make_bound_claim,
    make_bound_vm,
    make_claim,
    make_vm,
    make_vmi,
    read_claim,
    read_vm,
    stored,
)
from tests.support.patching import applied
from tests.support.walking import UNCERTAIN, Graph, explore
from tests.unit.controller.claims.answers import all_answers

VM = make_vm()
CLAIM = make_claim(labels={"team": "a"})
TERMS = Terms("pool", "pool-uid", NOW, waited=2.0)
START = HandOver(CLAIM, VM, make_vmi(), TERMS)
OURS = read_vm(applied(stored(VM), patches.hand_over(VM, CLAIM)))
VMS = [
    VM,
    OURS,
    make_vm(labels={"team": "b"}),
    make_vm(state=names.Mark.CLAIMED, claim_uid="rival-uid"),
    make_vm(state=names.Mark.DRAINING),
    make_vm(state=names.Mark.POOLED, claim_uid=CLAIM.uid),
    make_vm(state=names.Mark.CLAIMED, claim_uid=CLAIM.uid, uid="namesake-uid"),
    make_vm(owner=None),
]
CLAIMS = [
    CLAIM,
    make_claim(labels={"team": "a"}, phase="Pending"),
    make_bound_claim(),
    make_bound_claim(vms=[make_bound_vm("pool-other")]),
    make_claim(deleting=True),
    make_claim(phase="Expired"),
    make_claim(uid="namesake-uid"),
]


@pytest.fixture(scope="module")
def graph() -> Graph[HandOver]:
    return explore(START, all_answers(VMS, CLAIMS))


def _driven(*answers: Answer, start: HandOver = START) -> HandOver:
    for answer in answers:
        assert not isinstance(start.next(), Done)
        start = start.observe(answer)
    return start


def _outcome(*answers: Answer) -> Any:
    end = _driven(*answers).next()
    assert isinstance(end, Done)
    return end.outcome


def _bound(work: HandOver) -> FoundClaim:
    step = work.next()
    assert isinstance(step, PatchClaimStatus)
    return FoundClaim(read_claim(applied(stored(work.claim), step.ops)))


# ---- over all paths


def test_it_comes_to_an_end_from_every_state(graph: Graph[HandOver]) -> None:
    assert graph.from_every_state_an_end_is_reached()


def test_every_outcome_is_reached(graph: Graph[HandOver]) -> None:
    assert {done.outcome for _, done in graph.ends()} == set(Outcome)


def test_it_goes_in_circles_only_while_answers_are_uncertain_or_the_world_changes(
    graph: Graph[HandOver],
) -> None:
    assert graph.circles_without(*UNCERTAIN, TestRefused, Missing) == []


def test_it_never_touches_another_vm_or_claim(graph: Graph[HandOver]) -> None:
    for step in graph.steps():
        if isinstance(step, PatchVM | ReadVM):
            assert step.name == VM.metadata.name
        else:
            assert step.name == CLAIM.name
        if isinstance(step, PatchVM | PatchClaimStatus):
            uid = VM.metadata.uid if isinstance(step, PatchVM) else CLAIM.uid
            assert step.ops[0] == patches.test("/metadata/uid", uid)


def test_write_1_is_the_very_same_patch_each_time(graph: Graph[HandOver]) -> None:
    writes = [step.ops for step in graph.steps() if isinstance(step, PatchVM)]
    assert writes
    assert all(ops == patches.hand_over(VM, CLAIM) for ops in writes)


def test_it_publishes_only_a_vm_that_was_seen_to_carry_the_claims_uid(graph: Graph[HandOver]) -> None:
    publishing = [node for node in graph.nodes if isinstance(node.next(), PatchClaimStatus)]
    assert publishing
    for node in publishing:
        labels = node.vm.metadata.labels
        assert node.vm.metadata.uid == VM.metadata.uid
        assert labels[names.LABEL_CLAIM_UID] == CLAIM.uid
        assert labels[names.LABEL_STATE] == names.Mark.CLAIMED


def test_it_says_bound_only_when_the_claim_names_this_vm(graph: Graph[HandOver]) -> None:
    bound = [node for node, done in graph.ends() if done.outcome == Outcome.BOUND]
    assert bound
    for node in bound:
        assert node.claim.names(VM.metadata.uid)
        assert node.claim.uid == CLAIM.uid


def test_after_an_unknown_write_1_it_never_ends_on_a_refusals_word_alone(graph: Graph[HandOver]) -> None:
    for source, answer, dest in graph.edges:
        before, end = graph.nodes[source], graph.nodes[dest].next()
        if before.stage is Stage.WRITE_VM and before.doubt:
            assert not isinstance(end, Done), f"believed {answer}"


def test_doubt_is_never_forgotten(graph: Graph[HandOver]) -> None:
    for source, _, dest in graph.edges:
        assert graph.nodes[dest].doubt >= graph.nodes[source].doubt


def test_a_vm_that_may_be_held_is_never_called_free(graph: Graph[HandOver]) -> None:
    """Once the VM was seen to carry the UID, only the claim's answers can end it, as bound or held."""
    for source, _, dest in graph.edges:
        end = graph.nodes[dest].next()
        if graph.nodes[source].stage in {Stage.WRITE_CLAIM, Stage.READ_CLAIM} and isinstance(end, Done):
            assert end.outcome in {Outcome.BOUND, Outcome.HELD}


def test_write_2_is_always_guarded(graph: Graph[HandOver]) -> None:
    for step in graph.steps():
        if isinstance(step, PatchClaimStatus):
            tested = [op["path"] for op in step.ops if op["op"] == "test"]
            assert tested[:2] == ["/metadata/uid", "/metadata/deletionTimestamp"]
            assert tested[2] in {"/status", "/status/phase"}


# ---- the ways, one by one


def test_two_writes_and_the_vm_is_the_claims() -> None:
    wrote = _driven(FoundVM(OURS))
    ended = _driven(_bound(wrote), start=wrote)
    assert ended.next() == Done(Outcome.BOUND)
    assert ended.claim.phase == "Bound"


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        pytest.param([NotApplied()], Outcome.NOT_APPLIED, id="429: the same claim, later"),
        pytest.param([Invalid("bad label")], Outcome.METADATA_REFUSED, id="the claim's metadata is at fault"),
        pytest.param([Denied("policy")], Outcome.DENIED, id="admission says no"),
        pytest.param([TestRefused(), FoundVM(VMS[3])], Outcome.VM_TAKEN, id="a rival got it"),
        pytest.param([TestRefused(), FoundVM(VMS[4])], Outcome.VM_TAKEN, id="it is draining"),
        pytest.param([TestRefused(), FoundVM(VMS[6])], Outcome.VM_TAKEN, id="a namesake stands there"),
        pytest.param([TestRefused(), FoundVM(VMS[7])], Outcome.VM_TAKEN, id="somebody took its owner off"),
        pytest.param([TestRefused(), Missing()], Outcome.VM_TAKEN, id="it is gone"),
        pytest.param([Missing(), Missing()], Outcome.VM_TAKEN, id="it was gone before"),
        pytest.param([TestRefused(), FoundVM(VMS[2])], Outcome.METADATA_REFUSED, id="it has the key already"),
        pytest.param([TestRefused(), Denied("rbac")], Outcome.DENIED, id="we may not even look"),
        pytest.param([Unknown(), TestRefused(), Missing()], Outcome.VM_TAKEN, id="unknown, and then gone"),
        pytest.param([Unknown(), Denied("no"), FoundVM(VM)], Outcome.DENIED, id="unknown, then denied"),
        pytest.param([Unknown(), Invalid("x"), FoundVM(VM)], Outcome.METADATA_REFUSED, id="then invalid"),
        pytest.param([Unknown(), Denied("x"), FoundVM(VMS[3])], Outcome.VM_TAKEN, id="then a rival's"),
    ],
)
def test_refused_because(answers: list[Answer], outcome: Outcome) -> None:
    assert _outcome(*answers) == outcome


@pytest.mark.parametrize("refusal", [NotApplied(), Unknown()])
def test_after_an_unknown_answer_the_same_patch_is_sent_until_the_answer_is_definite(refusal: Answer) -> None:
    again = _driven(Unknown(), refusal, refusal)
    assert again.next() == START.next()
    assert again.doubt


@pytest.mark.parametrize("refusal", [TestRefused(), Missing(), Invalid("x"), Denied("x")])
def test_after_an_unknown_answer_a_refusal_is_looked_into(refusal: Answer) -> None:
    assert isinstance(_driven(Unknown(), refusal).next(), ReadVM)


@pytest.mark.parametrize("refusal", [TestRefused(), Denied("x"), Invalid("x")])
def test_a_late_write_of_our_own_that_landed_is_published(refusal: Answer) -> None:
    assert isinstance(_driven(Unknown(), refusal, FoundVM(OURS)).next(), PatchClaimStatus)


@pytest.mark.parametrize("silence", [NotApplied(), Unknown()])
def test_a_read_that_does_not_answer_is_repeated(silence: Answer) -> None:
    assert isinstance(_driven(TestRefused(), silence, silence).next(), ReadVM)
    assert isinstance(_driven(FoundVM(OURS), TestRefused(), silence, silence).next(), ReadClaim)


@pytest.mark.parametrize("silence", [NotApplied(), Unknown()])
def test_write_2_is_sent_until_it_is_answered(silence: Answer) -> None:
    wrote = _driven(FoundVM(OURS))
    assert _driven(silence, silence, start=wrote).next() == wrote.next()


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        pytest.param(FoundClaim(CLAIMS[2]), Outcome.BOUND, id="our own earlier write 2: bound"),
        pytest.param(FoundClaim(CLAIMS[3]), Outcome.HELD, id="bound to another VM: held, for repair"),
        pytest.param(FoundClaim(CLAIMS[4]), Outcome.HELD, id="going: held, for repair"),
        pytest.param(FoundClaim(CLAIMS[5]), Outcome.HELD, id="expired: held, for repair"),
        pytest.param(FoundClaim(CLAIMS[6]), Outcome.HELD, id="a namesake: held, for repair"),
        pytest.param(Missing(), Outcome.HELD, id="gone: held, for repair"),
        pytest.param(Denied("rbac"), Outcome.HELD, id="unreadable: held, for repair"),
    ],
)
def test_a_refused_write_2_is_looked_into(found: Answer, outcome: Outcome) -> None:
    assert _outcome(FoundVM(OURS), TestRefused(), found) == outcome


def test_a_claim_that_waits_still_gets_write_2_as_it_is_now() -> None:
    work = _driven(FoundVM(OURS), TestRefused(), FoundClaim(CLAIMS[1]))
    assert _outcome(FoundVM(OURS), TestRefused(), FoundClaim(CLAIMS[1]), _bound(work)) == Outcome.BOUND


@pytest.mark.parametrize("refusal", [Invalid("schema"), Denied("policy")])
def test_a_write_2_that_is_refused_for_good_leaves_the_vm_to_repair_with_the_reason(refusal: Answer) -> None:
    ended = _driven(FoundVM(OURS), refusal).next()
    assert isinstance(ended, Done)
    assert ended.outcome == Outcome.HELD
    assert ended.message in {"schema", "policy"}


def test_the_key_that_the_vm_has_already_is_named() -> None:
    ended = _driven(TestRefused(), FoundVM(VMS[2])).next()
    assert isinstance(ended, Done)
    assert "team" in ended.message


# ---- what is recorded


def test_the_bind_is_recorded_at_the_time_at_which_the_vm_was_the_claims() -> None:
    work = _driven(Unknown(), TestRefused(), FoundVM(OURS, NOW + 40))
    status = _bound(work).claim.status
    assert status is not None
    assert status.bound_at == at(40)
    assert status.waited == "42s"


def test_an_answer_that_bears_no_time_leaves_the_terms_as_they_were() -> None:
    status = _bound(_driven(FoundVM(OURS))).claim.status
    assert status is not None
    assert (status.bound_at, status.waited) == (at(), "2s")


def test_it_is_a_value_that_no_step_changes() -> None:
    before = repr(START)
    steps = [START.next() for _ in range(3)]
    START.observe(Unknown())
    assert repr(START) == before
    assert all(one == other for one, other in pairwise(steps))


def test_an_answer_that_belongs_to_no_step_publishes_nothing() -> None:
    assert isinstance(_driven(Accepted()).next(), ReadVM)
