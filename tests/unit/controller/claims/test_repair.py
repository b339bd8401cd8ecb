"""Repair, driven through all answers at all stages."""

from __future__ import annotations

import pytest

from controller.claims import patches
from controller.claims.decide import Verdict, decide
from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
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
    Step,
    TestRefused,
    Unknown,
)
from controller.claims.repair import Outcome, Repair, claim_name
from controller.claims.status import Terms
from controller.machines.objects import VirtualMachine
from crds import names
from tests.support.builders import (
    NOW,
    claim_owner,
    make_bound_claim,
    make_bound_vm,
    make_claim,
    make_vm,
    make_vmi,
    pool_owner,
    read_claim,
    read_vm,
    stored,
)
from tests.support.patching import applied, refused
from tests.support.walking import UNCERTAIN, Graph, explore
from tests.unit.controller.claims.answers import all_answers

CLAIMED = names.Mark.CLAIMED
HELD = make_vm(state=CLAIMED, claim_uid="claim-uid")
STRAY = make_vm(state=names.Mark.POOLED, claim_uid="claim-uid")
START = Repair("pool-aaaaa", "pool-aaaaa-uid", Terms("pool", "pool-uid", NOW, waited=2.0), make_vmi())
VMS = [
    HELD,
    STRAY,
    make_vm(),
    make_vm(state=CLAIMED, claim_uid="claim-uid", owner=None),
    make_vm(state=CLAIMED, claim_uid="claim-uid", deleting=True),
    make_vm(state=names.Mark.DRAINING, claim_uid="claim-uid"),
    make_vm(state=CLAIMED, claim_uid="claim-uid", uid="namesake-uid"),
]
CLAIMS = [
    make_claim(),
    make_claim(phase="Pending"),
    make_bound_claim(),
    make_bound_claim(vms=[make_bound_vm("pool-other")]),
    make_bound_claim(deleting=True, finalizers=["orphan"]),
    make_bound_claim(phase="Releasing"),
    make_claim(deleting=True),
    make_claim(phase="Expired"),
    make_claim(uid="namesake-uid"),
]


@pytest.fixture(scope="module")
def graph() -> Graph[Repair]:
    return explore(START, all_answers(VMS, CLAIMS))


def _driven(*answers: Answer) -> Repair:
    work = START
    for answer in answers:
        assert not isinstance(work.next(), Done)
        work = work.observe(answer)
    return work


def _step(*answers: Answer) -> Step:
    step = _driven(*answers).next()
    assert not isinstance(step, Done)
    return step


def _outcome(*answers: Answer) -> str:
    end = _driven(*answers).next()
    assert isinstance(end, Done)
    return end.outcome


# ---- over all paths


def test_it_comes_to_an_end_from_every_state(graph: Graph[Repair]) -> None:
    assert graph.from_every_state_an_end_is_reached()
    assert {done.outcome for _, done in graph.ends()} == set(Outcome)


def test_it_goes_in_circles_only_while_answers_are_uncertain_or_the_world_changes(
    graph: Graph[Repair],
) -> None:
    assert graph.circles_without(*UNCERTAIN, TestRefused, Missing) == []


def test_nothing_is_written_before_the_vm_was_read(graph: Graph[Repair]) -> None:
    for node in graph.nodes:
        if isinstance(node.next(), PatchVM | PatchClaimStatus | DeleteVM):
            assert node.vm is not None
            assert node.vm.metadata.uid == START.uid


def test_a_vm_is_destroyed_only_by_its_uid_and_by_the_tables_word(graph: Graph[Repair]) -> None:
    destroying = [node for node in graph.nodes if isinstance(node.next(), DeleteVM)]
    assert destroying
    for node in destroying:
        step = node.next()
        assert isinstance(step, DeleteVM)
        assert (step.name, step.uid) == (START.name, START.uid)
        assert node.vm is not None
        assert decide(node.vm, node.claim) in {Verdict.RELEASE, Verdict.DESTROY}


def test_a_vm_that_its_claim_waits_for_is_never_destroyed(graph: Graph[Repair]) -> None:
    for node in graph.nodes:
        if isinstance(node.next(), DeleteVM):
            assert node.claim is None or not node.claim.waiting


def test_it_publishes_only_a_vm_that_was_read_to_carry_the_claims_uid(graph: Graph[Repair]) -> None:
    publishing = [node for node in graph.nodes if isinstance(node.next(), PatchClaimStatus)]
    assert publishing
    for node in publishing:
        assert node.vm is not None
        assert node.claim is not None
        assert node.vm.metadata.labels[names.LABEL_CLAIM_UID] == node.claim.uid
        assert node.vm.metadata.labels[names.LABEL_STATE] == CLAIMED
        assert node.claim.waiting


def test_a_claim_of_another_uid_counts_as_gone(graph: Graph[Repair]) -> None:
    for node in graph.nodes:
        assert node.claim is None or node.claim.uid == "claim-uid"


# ---- what the VM's read says


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(Missing(), id="gone"),
        pytest.param(FoundVM(make_vm(uid="namesake-uid", state=CLAIMED)), id="a namesake"),
        pytest.param(FoundVM(make_vm()), id="a VM that carries no claim any more"),
        pytest.param(FoundVM(make_vm(state=CLAIMED, claim_uid="claim-uid", deleting=True)), id="going"),
        *(
            pytest.param(FoundVM(make_vm(state=mark, claim_uid="claim-uid")), id=f"marked {mark}")
            for mark in (names.Mark.DRAINING, names.Mark.RECYCLING, names.Mark.RETAINED)
        ),
    ],
)
def test_nothing_is_done_about_a_vm_that_is(found: Answer) -> None:
    assert _outcome(found) == Outcome.NOTHING


@pytest.mark.parametrize("label", [names.Mark.POOLED, None, "anything"])
def test_a_label_that_a_person_set_back_is_put_right_first(label: str | None) -> None:
    stray = make_vm(state=label, claim_uid="claim-uid")
    step = _step(FoundVM(stray))
    assert isinstance(step, PatchVM)
    assert step.ops == patches.relabel_claimed(stray)
    assert isinstance(_step(FoundVM(stray), FoundVM(HELD)), ReadClaim)


def test_a_relabelling_that_was_refused_looks_again() -> None:
    assert isinstance(_step(FoundVM(STRAY), TestRefused()), ReadVM)


def test_a_vm_with_neither_owner_nor_note_is_left_since_there_is_nobody_to_ask() -> None:
    bare = make_vm(state=CLAIMED, claim_uid="claim-uid", owner=None, annotations={names.ANNOTATION_CLAIM: ""})
    assert _outcome(FoundVM(bare)) == Outcome.LEFT


# ---- what the claim's read says


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        pytest.param(FoundClaim(make_bound_claim()), Outcome.NOTHING, id="all is well"),
        pytest.param(FoundClaim(CLAIMS[4]), Outcome.LEFT, id="orphaned by its user"),
        pytest.param(Denied("rbac"), Outcome.GIVEN_UP, id="unreadable"),
    ],
)
def test_the_vm_is_left_as_it_is_when_the_claim_is(found: Answer, outcome: Outcome) -> None:
    assert _outcome(FoundVM(HELD), found) == outcome


@pytest.mark.parametrize("claim", CLAIMS[:2])
def test_a_claim_that_waits_gets_the_vm_that_it_holds(claim: object) -> None:
    assert isinstance(claim, type(CLAIMS[0]))
    step = _step(FoundVM(HELD), FoundClaim(claim))
    assert isinstance(step, PatchClaimStatus)
    done = read_claim(applied(stored(claim), step.ops))
    assert done.names(HELD.metadata.uid)
    assert _outcome(FoundVM(HELD), FoundClaim(claim), FoundClaim(done)) == Outcome.PUBLISHED


@pytest.mark.parametrize(
    "so_far",
    [
        *([FoundClaim(CLAIMS[each])] for each in (3, 5, 6, 7)),
        [Missing(), FoundVM(HELD)],
        [FoundClaim(CLAIMS[8]), FoundVM(HELD)],
    ],
    ids=["bound to another", "releasing", "going", "expired", "gone", "a namesake"],
)
def test_the_vm_is_destroyed_when_the_claim_is(so_far: list[Answer]) -> None:
    step = _step(FoundVM(HELD), *so_far)
    assert isinstance(step, DeleteVM)
    assert _outcome(FoundVM(HELD), *so_far, Accepted()) == Outcome.DESTROYED
    assert _outcome(FoundVM(HELD), *so_far, Missing()) == Outcome.DESTROYED


@pytest.mark.parametrize("claim", [Missing(), FoundClaim(CLAIMS[8])], ids=["gone", "a namesake"])
@pytest.mark.parametrize(
    ("again", "outcome"),
    [
        pytest.param(FoundVM(VMS[3]), Outcome.LEFT, id="it was orphaned between the two looks"),
        pytest.param(FoundVM(VMS[6]), Outcome.NOTHING, id="a namesake"),
        pytest.param(Missing(), Outcome.NOTHING, id="gone"),
        pytest.param(Denied("no"), Outcome.GIVEN_UP, id="unreadable"),
    ],
)
def test_a_vm_whose_claim_is_gone_is_looked_at_once_more_and_not_destroyed_if(
    claim: Answer, again: Answer, outcome: Outcome
) -> None:
    assert _outcome(FoundVM(HELD), claim, again) == outcome


def test_a_vm_that_a_person_orphaned_is_left_when_its_claim_is_gone() -> None:
    assert _outcome(FoundVM(VMS[3]), Missing()) == Outcome.LEFT


# ---- uncertain and refused


@pytest.mark.parametrize("silence", [Unknown(), NotApplied()])
@pytest.mark.parametrize(
    "so_far",
    [
        [],
        [FoundVM(STRAY)],
        [FoundVM(HELD)],
        [FoundVM(HELD), FoundClaim(CLAIMS[0])],
        [FoundVM(HELD), Missing()],
        [FoundVM(HELD), Missing(), FoundVM(HELD)],
    ],
    ids=["reading the VM", "relabelling", "reading the claim", "publishing", "confirming", "destroying"],
)
def test_an_uncertain_answer_repeats_the_step_when(so_far: list[Answer], silence: Answer) -> None:
    assert _step(*so_far, silence, silence) == _step(*so_far)


@pytest.mark.parametrize("change", [TestRefused(), Missing()])
def test_a_refused_publication_begins_anew_with_the_vm(change: Answer) -> None:
    assert isinstance(_step(FoundVM(HELD), FoundClaim(CLAIMS[0]), change), ReadVM)


@pytest.mark.parametrize("refusal", [Denied("no"), Invalid("no")])
@pytest.mark.parametrize(
    "so_far",
    [
        [],
        [FoundVM(STRAY)],
        [FoundVM(HELD), FoundClaim(CLAIMS[0])],
        [FoundVM(HELD), Missing(), FoundVM(HELD)],
    ],
    ids=["reading the VM", "relabelling", "publishing", "destroying"],
)
def test_a_refusal_for_good_is_left_to_the_next_pass_when(so_far: list[Answer], refusal: Answer) -> None:
    assert _outcome(*so_far, refusal) == Outcome.GIVEN_UP


# ---- whose it is


@pytest.mark.parametrize(
    ("vm", "name"),
    [
        pytest.param(HELD, "claim", id="its owner"),
        pytest.param(
            make_vm(state=CLAIMED, claim_uid="claim-uid", owner=claim_owner(name="renamed")),
            "renamed",
            id="its owner, before the note",
        ),
        pytest.param(
            make_vm(state=CLAIMED, claim_uid="claim-uid", owner=None), "claim", id="the note, without owner"
        ),
        pytest.param(
            make_vm(state=CLAIMED, claim_uid="claim-uid", owner=claim_owner("other-uid", "other")),
            "claim",
            id="the note, when another claim owns it",
        ),
        pytest.param(
            make_vm(state=CLAIMED, claim_uid="claim-uid", owner=pool_owner()),
            "claim",
            id="the note, when the pool owns it",
        ),
        pytest.param(make_vm(), "", id="nobody, for a VM that was never claimed"),
    ],
)
def test_the_claims_name_is_that_of(vm: VirtualMachine, name: str) -> None:
    assert claim_name(vm) == name


def test_a_vm_that_a_person_marked_claimed_is_its_pools_again_and_nothing_else_happens() -> None:
    marked = make_vm(state="Claimed", owner=pool_owner())
    step = _step(FoundVM(marked))
    assert isinstance(step, PatchVM)
    after = applied(stored(marked), step.ops)
    assert after["metadata"]["labels"][names.LABEL_STATE] == "Pooled"
    assert refused(stored(make_vm(state="Claimed", claim_uid="claim-uid")), step.ops)
    assert _outcome(FoundVM(marked), FoundVM(make_vm())) == Outcome.NOTHING


@pytest.mark.parametrize("state", ["Pooled", "Claimed"])
def test_a_vm_on_which_a_person_wrote_a_claims_uid_is_chosen_for_removal(state: str) -> None:
    given = make_vm(state=state, claim_uid="claim-uid", owner=pool_owner())
    step = _step(FoundVM(given))
    assert isinstance(step, PatchVM)
    after = applied(stored(given), step.ops)
    assert after["metadata"]["labels"][names.LABEL_STATE] == "Draining"
    assert refused(stored(make_vm()), step.ops)
    assert refused(stored(HELD), step.ops)
    assert _outcome(FoundVM(given), FoundVM(read_vm(after))) == Outcome.NOTHING
