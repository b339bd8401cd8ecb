"""A claim's status in each phase: what it names, what it says, and what does not change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controller.claims import status
from controller.claims.objects import Claim, ClaimStatus
from controller.claims.status import Terms
from controller.machines.objects import Condition, VirtualMachineInstance
from crds import names
from crds.claim import VirtualMachineClaim
from crds.conditions import ClaimCondition, ClaimReason, Truth
from statemachines.base import IllegalTransition
from statemachines.claim import Trigger
from tests.support.builders import (
    NOW,
    at,
    make_bound_claim,
    make_bound_vm,
    make_claim,
    make_condition,
    make_vm,
    make_vmi,
)

Json = dict[str, Any]
VM = make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid")
TERMS = Terms("pool", "pool-uid", NOW, waited=1.25)


def _condition(found: Json, kind: str) -> Json:
    (condition,) = (each for each in found["conditions"] if each["type"] == kind)
    assert isinstance(condition, dict)
    return condition


def _says(found: Json, kind: str) -> tuple[str, str]:
    condition = _condition(found, kind)
    return condition["status"], condition["reason"]


def _after(claim: Claim, written: Json) -> Claim:
    """The claim with this status written to it."""
    return Claim(claim.metadata, claim.spec, msgspec.convert(written, ClaimStatus))


def _valid(written: Json) -> Json:
    VirtualMachineClaim.model_validate(
        {"metadata": {}, "spec": {"poolRef": {"name": "pool"}}, "status": written}
    )
    return written


# ---- bound


def test_a_bind_records_everything_about_the_hand_over() -> None:
    found = _valid(status.bound(make_claim(), VM, make_vmi(), TERMS))
    assert {key: value for key, value in found.items() if key != "conditions"} == {
        "phase": "Bound",
        "pool": "pool",
        "poolUID": "pool-uid",
        "releasePolicy": "Delete",
        "virtualMachines": [
            {
                "name": "pool-aaaaa",
                "uid": "pool-aaaaa-uid",
                "vmiUID": "pool-aaaaa-guest",
                "node": "node-1",
                "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
                "warm": True,
            }
        ],
        "boundAt": at(),
        "waited": "1s250ms",
    }


def test_bound_and_ready_come_together() -> None:
    found = status.bound(make_claim(), VM, make_vmi(), TERMS)
    assert _says(found, "Bound") == ("True", "HandedOver")
    assert _says(found, "Ready") == ("True", "Usable")
    assert "10.0.0.7" in _condition(found, "Ready")["message"]


@pytest.mark.parametrize(
    ("guest", "reason"),
    [
        pytest.param(None, "DeadOnArrival", id="has no guest any more"),
        pytest.param(make_vmi(phase="Failed"), "DeadOnArrival", id="has a guest that died"),
        pytest.param(make_vmi(phase="Succeeded"), "DeadOnArrival", id="has a guest that shut down"),
        pytest.param(make_vmi(ready=False), "NotReady", id="has a guest that is not ready"),
        pytest.param(make_vmi(ready=None), "NotReady", id="has a guest that does not say"),
        pytest.param(make_vmi(deleting=True), "NotReady", id="has a guest that is shutting down"),
        pytest.param(make_vmi(addresses=[]), "NoAddress", id="has no address"),
    ],
)
def test_a_bound_claim_is_not_ready_when_its_vm(guest: VirtualMachineInstance | None, reason: str) -> None:
    found = _valid(status.bound(make_claim(), VM, guest, TERMS))
    assert _says(found, "Bound") == ("True", "HandedOver")
    assert _says(found, "Ready") == ("False", reason)


def test_a_vm_without_a_guest_is_named_all_the_same() -> None:
    found = status.bound(make_claim(), VM, None, TERMS)
    assert found["virtualMachines"] == [{"name": "pool-aaaaa", "uid": "pool-aaaaa-uid", "warm": True}]


@pytest.mark.parametrize(
    ("wish", "default", "bound", "lifetime"),
    [
        (None, None, None, None),
        ("1h", None, None, 3600.0),
        (None, 60.0, None, 60.0),
        ("1h", 60.0, None, 3600.0),
        ("1h", None, 600.0, 600.0),
        ("5m", None, 600.0, 300.0),
        (None, 60.0, 600.0, 60.0),
        (None, 900.0, 600.0, 600.0),
        (None, None, 600.0, 600.0),
    ],
)
def test_a_lifetime_is_the_wish_or_the_default_within_the_bound(
    wish: str | None, default: float | None, bound: float | None, lifetime: float | None
) -> None:
    claim = make_claim(lifetime=wish)
    terms = Terms("pool", "uid", NOW, 0.0, lifetime_default=default, lifetime_max=bound)
    assert status.bounded_lifetime(claim, default, bound) == lifetime
    expires = status.bound(claim, VM, None, terms).get("expiresAt")
    assert expires == (None if lifetime is None else at(lifetime))


def test_a_claim_expires_so_long_after_the_time_that_is_written_as_its_bind() -> None:
    terms = Terms("pool", "uid", NOW + 0.9, 0.0, lifetime_default=60.0)
    found = status.bound(make_claim(), VM, None, terms)
    assert (found["boundAt"], found["expiresAt"]) == (at(), at(60))


def test_terms_that_come_late_say_how_long_it_took() -> None:
    late = TERMS.at(NOW + 3)
    assert (late.now, late.waited) == (NOW + 3, 4.25)
    assert TERMS.at(NOW - 1) is TERMS


def test_a_clock_that_was_set_back_makes_no_negative_wait() -> None:
    assert status.bound(make_claim(), VM, None, Terms("p", "u", NOW, -5.0))["waited"] == "0s"


# ---- conditions


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param([], 0.0, id="is new"),
        pytest.param([make_condition("Bound", "False", since=-50)], -50.0, id="stays what it was"),
        pytest.param([make_condition("Bound", "True", since=-50)], 0.0, id="turns"),
        pytest.param([make_condition("Bound", "Unknown", since=-50)], 0.0, id="was unknown"),
        pytest.param([make_condition("Bound", "False", since=None)], 0.0, id="had no time"),
        pytest.param([make_condition("Ready", "False", since=-50)], 0.0, id="is another one"),
    ],
)
def test_the_transition_time_of_a_condition_that(before: list[Condition], since: float) -> None:
    claim = make_claim(phase="Pending", conditions=before)
    found = status.condition(claim, ClaimCondition.BOUND, Truth.FALSE, ClaimReason.QUEUED, "new words", NOW)
    assert found["lastTransitionTime"] == at(since)
    assert found["message"] == "new words"


def test_a_condition_says_for_which_generation_it_was_found() -> None:
    def found(claim: Claim) -> Json:
        return status.condition(claim, ClaimCondition.BOUND, Truth.FALSE, ClaimReason.QUEUED, "", NOW)

    assert found(make_claim(generation=7))["observedGeneration"] == 7
    assert "observedGeneration" not in found(make_claim(generation=0))


def test_a_message_is_cut_to_what_the_api_server_takes() -> None:
    found = status.condition(
        make_claim(), ClaimCondition.BOUND, Truth.FALSE, ClaimReason.QUEUED, "x" * 5000, NOW
    )
    assert len(found["message"]) == 1024


# ---- waiting


def test_a_waiting_claim_says_why_in_both_conditions_and_where_it_stands() -> None:
    place = status.place(3, NOW + 20)
    found = _valid(status.waiting(make_claim(), ClaimReason.QUEUED, "in line", NOW, place))
    assert found["phase"] == "Pending"
    assert found["queue"] == {"position": 3, "estimatedReadyTime": at(20)}
    assert _says(found, "Bound") == _says(found, "Ready") == ("False", "Queued")


def test_a_claim_on_a_missing_pool_has_no_place() -> None:
    found = _valid(status.waiting(make_claim(), ClaimReason.POOL_NOT_FOUND, "none", NOW, None))
    assert "queue" not in found
    assert _says(found, "Ready") == ("False", "PoolNotFound")


def test_a_place_of_which_nothing_is_known_promises_no_time() -> None:
    assert status.place(3, None) == {"position": 3}


# ---- ended

QUEUED = _after(
    make_claim(),
    {
        "phase": "Pending",
        "queue": {"position": 3},
        "conditions": [
            {"type": "Bound", "status": "False", "reason": "Queued", "lastTransitionTime": at(-50)}
        ],
    },
)


@pytest.mark.parametrize(
    ("claim", "trigger", "phase", "finished"),
    [
        (QUEUED, Trigger.TIME_OUT, "Expired", True),
        (QUEUED, Trigger.REFUSE, "Failed", True),
        (make_bound_claim(), Trigger.RELEASE, "Releasing", False),
        (make_bound_claim(), Trigger.LOSE, "Lost", True),
        (make_bound_claim(phase="Releasing"), Trigger.FINISH, "Released", True),
    ],
)
def test_an_end_says_the_same_reason_everywhere(
    claim: Claim,
    trigger: Trigger,
    phase: str,
    finished: bool,  # noqa: FBT001 - a table's column
) -> None:
    found = _valid(status.ended(claim, trigger, ClaimReason.LOST, "why", NOW))
    assert found["phase"] == phase
    assert "queue" not in found
    reason = "Failed" if phase == "Failed" else "Lost"  # what exactly failed, Bound says
    assert _says(found, "Ready") == ("False", reason)
    kinds = [each["type"] for each in found["conditions"]]
    assert ("Finished" in kinds) is finished
    if finished:
        assert _says(found, "Finished") == ("True", reason)


def test_a_claim_that_was_never_served_says_so_in_bound_as_well() -> None:
    found = status.ended(QUEUED, Trigger.TIME_OUT, ClaimReason.EXPIRED, "why", NOW)
    assert _says(found, "Bound") == ("False", "Expired")
    assert _condition(found, "Bound")["lastTransitionTime"] == at(-50)


def test_an_end_keeps_all_that_was_recorded_at_the_bind() -> None:
    claim = make_bound_claim(expires=99)
    before, found = status.kept(claim), status.ended(claim, Trigger.LOSE, ClaimReason.LOST, "why", NOW)
    for key in before.keys() - {"phase", "conditions"}:
        assert found[key] == before[key]
    assert _condition(found, "Bound") == _condition(before, "Bound")


@pytest.mark.parametrize(
    ("claim", "trigger"),
    [
        (make_bound_claim(), Trigger.TIME_OUT),
        (make_claim(phase="Lost"), Trigger.RELEASE),
        (make_claim(phase="Pending"), Trigger.LOSE),
        (make_claim(), Trigger.FINISH),
    ],
)
def test_an_end_that_the_machine_does_not_have_is_not_written(claim: Claim, trigger: Trigger) -> None:
    with pytest.raises(IllegalTransition):
        status.ended(claim, trigger, ClaimReason.LOST, "why", NOW)


# ---- refreshed


def test_a_refresh_of_what_is_as_it_was_changes_nothing() -> None:
    claim = make_bound_claim()
    assert status.refreshed(claim, VM, make_vmi(), NOW) == status.kept(claim)


@pytest.mark.parametrize(
    "guest",
    [
        None,
        make_vmi(addresses=["10.9.9.9"]),
        make_vmi(uid="new-guest", node="node-2"),
        make_vmi(ready=False),
        make_vmi(addresses=[]),
    ],
)
def test_what_a_status_names_never_changes(guest: VirtualMachineInstance | None) -> None:
    claim = make_bound_claim(expires=99)
    before, found = status.kept(claim), _valid(status.refreshed(claim, VM, guest, NOW))
    (old,), (new,) = before["virtualMachines"], found["virtualMachines"]
    assert (new["name"], new["uid"], new["warm"]) == (old["name"], old["uid"], old["warm"])
    for key in before.keys() - {"virtualMachines", "conditions"}:
        assert found[key] == before[key]
    assert _condition(found, "Bound") == _condition(before, "Bound")


def test_a_refresh_follows_the_guests_address_and_node() -> None:
    found = status.refreshed(make_bound_claim(), VM, make_vmi(addresses=["a", "b"], node="node-2"), NOW)
    (vm,) = found["virtualMachines"]
    assert [each["address"] for each in vm["addresses"]] == ["a", "b"]
    assert vm["node"] == "node-2"
    assert _condition(found, "Ready")["lastTransitionTime"] == at(-30)


def test_a_guest_that_is_gone_leaves_its_last_address_and_is_not_ready() -> None:
    claim = make_bound_claim()
    found = status.refreshed(claim, VM, None, NOW)
    assert found["virtualMachines"] == status.kept(claim)["virtualMachines"]
    assert _says(found, "Ready") == ("False", "NotReady")
    assert _condition(found, "Ready")["lastTransitionTime"] == at()


def test_a_restarted_guest_is_disrupted_and_stays_so() -> None:
    claim = make_bound_claim()
    found = status.refreshed(claim, VM, make_vmi(uid="new-guest"), NOW)
    assert _says(found, "Disrupted") == ("True", "GuestRestarted")
    assert found["virtualMachines"][0]["vmiUID"] == "new-guest"
    later = _after(claim, found)
    again = status.refreshed(later, VM, make_vmi(uid="new-guest"), NOW + 60)
    assert again == status.kept(later)
    assert _condition(again, "Disrupted")["lastTransitionTime"] == at()


def test_a_claim_whose_guest_was_dead_heals_without_having_been_disrupted() -> None:
    dead = _after(make_claim(), status.bound(make_claim(), VM, None, TERMS))
    found = status.refreshed(dead, VM, make_vmi(uid="new-guest"), NOW + 20)
    assert _says(found, "Ready") == ("True", "Usable")
    assert "Disrupted" not in [each["type"] for each in found["conditions"]]
    assert found["virtualMachines"][0]["vmiUID"] == "new-guest"


def test_a_vm_under_deletion_is_not_ready_however_well_its_guest_is() -> None:
    going = make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid", deleting=True)
    found = status.refreshed(make_bound_claim(), going, make_vmi(), NOW)
    assert _says(found, "Ready") == ("False", "NotReady")


def test_a_claim_that_names_nothing_has_nothing_to_refresh() -> None:
    assert status.refreshed(make_claim(), VM, make_vmi(), NOW) == {}
    bare = make_claim(phase="Bound")
    assert status.refreshed(bare, VM, make_vmi(), NOW) == status.kept(bare)


# ---- expiry, comparison, the rest


def test_an_expiry_is_set_moved_and_taken_away() -> None:
    assert status.with_expiry(make_bound_claim(), NOW + 5)["expiresAt"] == at(5)
    assert status.with_expiry(make_bound_claim(expires=9), NOW + 5)["expiresAt"] == at(5)
    assert "expiresAt" not in status.with_expiry(make_bound_claim(expires=9), None)


def test_what_is_kept_is_what_was_written() -> None:
    written = status.bound(make_claim(lifetime="1h"), VM, make_vmi(), TERMS)
    assert status.kept(_after(make_claim(), written)) == written
    assert status.kept(make_claim()) == {}


def test_a_place_in_line_is_kept() -> None:
    assert status.kept(QUEUED)["queue"] == {"position": 3}


def test_conditions_that_nobody_names_here_are_kept_behind_ours() -> None:
    foreign = make_condition("example.com/Approved", since=-5)
    claim = make_bound_claim(conditions=[foreign, make_condition("Ready", since=-30)])
    found = status.ended(claim, Trigger.LOSE, ClaimReason.LOST, "why", NOW)
    assert [each["type"] for each in found["conditions"]] == ["Ready", "Finished", "example.com/Approved"]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"observedGeneration": 9}, True, id="a condition's generation alone"),
        pytest.param({"message": "other"}, False, id="a message"),
        pytest.param({"reason": "Other"}, False, id="a reason"),
        pytest.param({"status": "False"}, False, id="a status"),
    ],
)
def test_whether_a_write_would_change_anything_for(change: Json, same: bool) -> None:  # noqa: FBT001 - a table's column
    before = status.kept(make_bound_claim())
    after = {**before, "conditions": [{**each, **change} for each in before["conditions"]]}
    assert status.same(before, after) is same
    assert not status.same(before, {**after, "expiresAt": at(5)})


def test_a_claim_finished_when_its_condition_says() -> None:
    assert status.finished_at(
        make_claim(phase="Lost", conditions=[make_condition("Finished", since=-5)])
    ) == at(-5)
    assert (
        status.finished_at(make_claim(phase="Lost", conditions=[make_condition("Finished", "False")])) is None
    )
    assert status.finished_at(make_claim()) is None


def test_every_phase_that_is_written_is_taken_by_the_schema() -> None:
    bound = make_bound_claim(vms=[make_bound_vm(node="", addresses=[])], expires=60)
    for found in (
        status.refreshed(bound, VM, make_vmi(uid="new"), NOW),
        status.with_expiry(bound, NOW + 60),
        status.ended(bound, Trigger.RELEASE, ClaimReason.LIFETIME_OVER, "over", NOW),
    ):
        assert _valid(found)
