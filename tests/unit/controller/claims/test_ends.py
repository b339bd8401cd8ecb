"""Release, loss, expiry and drain, driven through all answers at all stages."""

from __future__ import annotations

from typing import Any

import pytest

from controller.claims import drain, patches, release, status
from controller.claims.drain import Drain
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
    Procedure,
    ReadVM,
    StepName,
    TestRefused,
    Unknown,
)
from controller.claims.release import Lost, Release, StatusWrite
from crds import names
from crds.conditions import ClaimReason
from statemachines.claim import Trigger
from tests.support.builders import NOW, make_bound_claim, make_claim, make_vm, read_claim, read_vm, stored
from tests.support.patching import Refused, applied
from tests.support.walking import UNCERTAIN, explore
from tests.unit.controller.claims.answers import all_answers

VM = make_vm()
MARKED = make_vm(state=names.Mark.DRAINING)
BOUND = make_bound_claim(lifetime="1h")
LOST = status.ended(BOUND, Trigger.LOSE, ClaimReason.LOST, "gone", NOW)
RELEASING = status.ended(BOUND, Trigger.RELEASE, ClaimReason.LIFETIME_OVER, "over", NOW)
VMS = [VM, MARKED, make_vm(uid="namesake-uid"), make_vm(state=names.Mark.CLAIMED)]
CLAIMS = [BOUND, make_bound_claim(phase="Lost"), make_claim()]
WRITE = StatusWrite(StepName.CLAIM_STATUS, BOUND, patches.whole_status(BOUND, LOST))
PROCEDURES: list[Any] = [
    pytest.param(Release("pool-aaaaa", "pool-aaaaa-uid"), id="release"),
    pytest.param(WRITE, id="status write"),
    pytest.param(release.expire(BOUND, RELEASING), id="expiry"),
    pytest.param(Lost(BOUND, "pool-aaaaa", "pool-aaaaa-uid", LOST), id="loss"),
    pytest.param(Drain.of(VM), id="drain"),
    pytest.param(Drain.of(MARKED), id="drain of one that is marked"),
]


def _driven(work: Any, *answers: Answer) -> Any:
    for answer in answers:
        assert not isinstance(work.next(), Done)
        work = work.observe(answer)
    return work


def _outcome(work: Any, *answers: Answer) -> Any:
    end = _driven(work, *answers).next()
    assert isinstance(end, Done)
    return end.outcome


# ---- over all paths


@pytest.mark.parametrize("work", PROCEDURES)
def test_it_comes_to_an_end_from_every_state_and_never_spins(work: Procedure) -> None:
    graph = explore(work, all_answers(VMS, CLAIMS))
    assert graph.from_every_state_an_end_is_reached()
    assert graph.circles_without(*UNCERTAIN) == []


@pytest.mark.parametrize("work", PROCEDURES)
def test_it_destroys_only_the_vm_that_was_meant(work: Procedure) -> None:
    for step in explore(work, all_answers(VMS, CLAIMS)).steps():
        if isinstance(step, DeleteVM):
            assert (step.name, step.uid) == ("pool-aaaaa", "pool-aaaaa-uid")


@pytest.mark.parametrize("work", PROCEDURES)
@pytest.mark.parametrize("silence", [Unknown(), NotApplied()])
def test_an_uncertain_answer_repeats_the_very_same_step(work: Procedure, silence: Answer) -> None:
    for node in explore(work, all_answers(VMS, CLAIMS)).nodes:
        step = node.next()
        if not isinstance(step, Done):
            assert node.observe(silence).next() == step


@pytest.mark.parametrize("work", PROCEDURES)
@pytest.mark.parametrize("refusal", [Denied("why"), Invalid("why")])
def test_a_refusal_for_good_is_given_up(work: Procedure, refusal: Answer) -> None:
    assert _outcome(work, refusal) == "given-up"


# ---- release


def test_a_release_deletes_by_uid_and_says_whether_the_vm_was_there() -> None:
    work = Release("pool-aaaaa", "pool-aaaaa-uid")
    assert work.next() == DeleteVM(StepName.RELEASE_DELETE, "pool-aaaaa", "pool-aaaaa-uid")
    taken, gone = _driven(work, Accepted()), _driven(work, Unknown(), Missing())
    assert (taken.next(), taken.gone) == (Done(release.Outcome.DONE), False)
    assert (gone.next(), gone.gone) == (Done(release.Outcome.DONE), True)


# ---- a guarded write of a status


def test_a_status_write_keeps_what_the_api_server_made_of_it() -> None:
    after = read_claim(applied(stored(BOUND), WRITE.ops))
    work = _driven(WRITE, FoundClaim(after))
    assert work.next() == Done(release.Outcome.DONE)
    assert work.result == after


@pytest.mark.parametrize("change", [TestRefused(), Missing()])
def test_a_claim_that_changed_meanwhile_is_decided_anew(change: Answer) -> None:
    assert _outcome(WRITE, change) == release.Outcome.REFUSED


@pytest.mark.parametrize("refusal", [Denied("policy"), Invalid("policy")])
def test_a_refused_status_says_why(refusal: Answer) -> None:
    assert _driven(WRITE, refusal).next().message == "policy"


# ---- expiry


def _expire() -> StatusWrite:
    return release.expire(BOUND, RELEASING)


def test_an_expiry_writes_releasing() -> None:
    after = applied(stored(BOUND), _expire().ops)
    assert after["status"]["phase"] == "Releasing"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param({"lifetime": "2h"}, "/spec/lifetime", id="extended"),
        pytest.param({"lifetime": None}, "/spec/lifetime", id="taken away"),
        pytest.param({"phase": "Lost"}, "/status/phase", id="over already"),
        pytest.param({"uid": "other-uid"}, "/metadata/uid", id="of a namesake"),
        pytest.param({"deleting": True}, "/metadata/deletionTimestamp", id="of a claim that is going"),
    ],
)
def test_an_expiry_is_refused_when_the_lifetime_is(change: dict[str, Any], path: str) -> None:
    seen = stored(make_bound_claim(**{"lifetime": "1h", **change}))
    with pytest.raises(Refused) as caught:
        applied(seen, _expire().ops)
    assert caught.value.op["path"] == path


def test_an_expiry_by_the_pools_lifetime_is_refused_when_the_claim_got_one_of_its_own() -> None:
    bare = make_bound_claim()
    ops = release.expire(bare, RELEASING).ops
    assert applied(stored(bare), ops)["status"]["phase"] == "Releasing"
    with pytest.raises(Refused):
        applied(stored(BOUND), ops)


def test_an_expiry_goes_through_the_claims_one_writer_which_is_found_by_the_first_test() -> None:
    assert _expire().ops[0]["value"] == BOUND.uid


# ---- loss


def _lost() -> Lost:
    return Lost(BOUND, "pool-aaaaa", "pool-aaaaa-uid", LOST)


def test_a_claim_is_lost_only_after_a_read_without_the_cache() -> None:
    graph = explore(_lost(), all_answers(VMS, CLAIMS))
    for source, answer, dest in graph.edges:
        before, after = graph.nodes[source].next(), graph.nodes[dest].next()
        if isinstance(before, ReadVM) and isinstance(after, PatchClaimStatus):
            gone = isinstance(answer, Missing)
            assert gone or (isinstance(answer, FoundVM) and answer.vm.metadata.uid != "pool-aaaaa-uid")


@pytest.mark.parametrize(
    "found", [Missing(), FoundVM(make_vm(uid="namesake-uid"))], ids=["is gone", "is another of that name"]
)
def test_a_claim_is_lost_when_its_vm(found: Answer) -> None:
    work = _driven(_lost(), found)
    step = work.next()
    assert isinstance(step, PatchClaimStatus)
    after = read_claim(applied(stored(BOUND), step.ops))
    assert after.phase == "Lost"
    assert after.names("pool-aaaaa-uid")
    assert _outcome(work, FoundClaim(after)) == release.Outcome.DONE


def test_a_claim_whose_vm_lives_is_not_lost() -> None:
    assert _outcome(_lost(), FoundVM(make_vm(state=names.Mark.CLAIMED))) == release.Outcome.ALIVE


@pytest.mark.parametrize("change", [TestRefused(), Missing()])
def test_a_claim_that_changed_while_its_vm_was_looked_for_is_decided_anew(change: Answer) -> None:
    assert _outcome(_lost(), Missing(), change) == release.Outcome.REFUSED


# ---- drain


def test_a_drain_marks_and_then_deletes() -> None:
    work = Drain.of(VM)
    step = work.next()
    assert isinstance(step, PatchVM)
    assert step.ops == patches.drain(VM)
    marked = _driven(work, FoundVM(read_vm(applied(stored(VM), step.ops))))
    assert isinstance(marked.next(), DeleteVM)
    assert _outcome(marked, Accepted()) == drain.Outcome.GONE


def test_a_vm_is_never_deleted_before_it_is_marked() -> None:
    for node in explore(Drain.of(VM), all_answers(VMS, CLAIMS)).nodes:
        if isinstance(node.next(), DeleteVM):
            assert node.vm.metadata.labels[names.LABEL_STATE] == names.Mark.DRAINING


def test_one_that_is_marked_already_needs_its_deletion_alone() -> None:
    assert isinstance(Drain.of(MARKED).next(), DeleteVM)


def test_a_vm_that_was_claimed_meanwhile_is_left() -> None:
    assert _outcome(Drain.of(VM), TestRefused()) == drain.Outcome.REFUSED
    assert _outcome(Drain.of(VM), Unknown(), TestRefused()) == drain.Outcome.REFUSED


def test_a_vm_that_is_gone_is_what_was_wanted() -> None:
    assert _outcome(Drain.of(VM), Missing()) == drain.Outcome.GONE
    assert _outcome(Drain.of(MARKED), Missing()) == drain.Outcome.GONE
