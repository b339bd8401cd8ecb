"""What is to be done about one claim: each rule, and the times to the second."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controller.claims.objects import Claim, ClaimStatus
from controller.claims.plan import (
    KEEP_EMPTIED,
    SETTLE,
    WRITE_INTERVAL,
    CheckLost,
    Expire,
    GiveBack,
    GiveUp,
    PlaceOrder,
    Plan,
    Refresh,
    RemoveClaim,
    View,
    plan,
)
from controller.claims.status import kept
from controller.kube.timeline import Timeline
from crds import names
from statemachines.claim import State
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

VM = make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid")
GOING = make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid", deleting=True)
NOTHING = Plan()


def _plan(claim: Claim, **seen: Any) -> Plan:
    settings: dict[str, Any] = {"vm": VM, "vmi": make_vmi()} if claim.status else {}
    return plan(View(claim, **{"now": NOW, **settings, **seen}))


def _condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in status["conditions"] if each["type"] == kind)
    return found


# ---- waiting


def test_a_claim_that_may_wait_for_ever_needs_nothing() -> None:
    assert _plan(make_claim(age=1e6)) == NOTHING
    assert _plan(make_claim(phase="Pending", age=1e6)) == NOTHING


def test_a_claim_with_a_timeout_is_looked_at_again_when_it_ends() -> None:
    assert _plan(make_claim(timeout="1m", age=10)) == Plan(None, NOW + 50)


@pytest.mark.parametrize(("age", "over"), [(59, False), (60, True), (600, True)])
def test_a_claim_gives_up_when_its_timeout_is_over_and_not_before(age: float, over: bool) -> None:  # noqa: FBT001 - a table's column
    assert isinstance(_plan(make_claim(timeout="1m", age=age)).action, GiveUp) is over


def test_a_claim_that_gave_up_says_expired_everywhere() -> None:
    action = _plan(make_claim(timeout="1m", age=60, phase="Pending")).action
    assert isinstance(action, GiveUp)
    assert action.status["phase"] == "Expired"
    assert {each["reason"] for each in action.status["conditions"]} == {"Expired"}
    assert "spec.timeout (1m)" in _condition(action.status, "Finished")["message"]


def test_a_claim_whose_pool_never_came_has_failed_rather_than_expired() -> None:
    action = _plan(make_claim(timeout="1m", age=60, pool="nowhere"), pool_known=False).action
    assert isinstance(action, GiveUp)
    assert action.status["phase"] == "Failed"
    assert _condition(action.status, "Ready")["reason"] == "Failed"
    assert _condition(action.status, "Bound")["reason"] == "PoolNotFound"
    assert "pool nowhere did not exist" in _condition(action.status, "Finished")["message"]


def test_a_claim_whose_pool_is_missing_waits_as_long_as_its_timeout_lets_it() -> None:
    assert _plan(make_claim(timeout="1m", age=59), pool_known=False) == Plan(None, NOW + 1)
    assert _plan(make_claim(age=1e6), pool_known=False) == NOTHING


def test_a_waiting_claim_that_is_going_needs_nothing() -> None:
    assert _plan(make_claim(timeout="1m", age=600, deleting=True)) == NOTHING


@pytest.mark.parametrize("policy", ["Order", "Wait", "Fail"])
def test_no_other_policy_places_its_order_later(policy: str) -> None:
    assert _plan(make_claim(when_empty=policy, age=600)) == NOTHING


def test_order_after_is_patient_for_as_long_as_it_says() -> None:
    claim = make_claim(when_empty="OrderAfter", after="30s", age=10)
    assert _plan(claim) == Plan(None, NOW + 20)
    assert _plan(claim, now=NOW + 19.9) == Plan(None, NOW + 20)
    assert _plan(claim, now=NOW + 20) == Plan(PlaceOrder())


def test_order_after_without_a_time_orders_at_once() -> None:
    assert _plan(make_claim(when_empty="OrderAfter", age=0)) == Plan(PlaceOrder())
    assert _plan(make_claim(when_empty="OrderAfter", after="0s", age=0)) == Plan(PlaceOrder())


def test_order_after_and_a_timeout_are_both_kept_in_mind() -> None:
    soon = make_claim(when_empty="OrderAfter", after="30s", timeout="1m", age=10)
    assert _plan(soon) == Plan(None, NOW + 20)
    assert _plan(soon, now=NOW + 20) == Plan(PlaceOrder(), NOW + 50)
    short = make_claim(when_empty="OrderAfter", after="30s", timeout="15s", age=10)
    assert _plan(short) == Plan(None, NOW + 5)


def test_a_timeout_that_is_over_comes_before_an_order() -> None:
    claim = make_claim(when_empty="OrderAfter", after="30s", timeout="30s", age=30)
    assert isinstance(_plan(claim).action, GiveUp)


# ---- bound


def test_a_bound_claim_as_it_is_written_needs_nothing() -> None:
    assert _plan(make_bound_claim()) == NOTHING


def test_a_bound_claim_with_a_lifetime_is_looked_at_again_when_it_ends() -> None:
    assert _plan(make_bound_claim(lifetime="1m", expires=30)) == Plan(None, NOW + 30)


def test_a_lifetime_that_is_over_says_releasing_and_names_its_vm_still() -> None:
    action = _plan(make_bound_claim(lifetime="30s", expires=0)).action
    assert isinstance(action, Expire)
    assert action.status["phase"] == "Releasing"
    assert action.status["virtualMachines"][0]["uid"] == "pool-aaaaa-uid"
    assert _condition(action.status, "Ready")["reason"] == "LifetimeOver"
    assert at(0) in _condition(action.status, "Ready")["message"]


def test_a_lifetime_is_over_at_its_second_and_not_before() -> None:
    claim = make_bound_claim(lifetime="30s", expires=0)
    assert _plan(claim, now=NOW - 0.1) == Plan(None, NOW)
    assert isinstance(_plan(claim, now=NOW).action, Expire)


SET_FORWARD = Timeline().heard(NOW, 0.0).heard(NOW + 3600.0, 10.0)
HOST_BEHIND = Timeline(Timeline().heard(NOW, 0.0).stretches, host=NOW - 3600.0)
HOST_AHEAD = Timeline(Timeline().heard(NOW, 0.0).stretches, host=NOW + 3600.0)


@pytest.mark.parametrize(
    ("clock", "later"),
    [
        pytest.param(SET_FORWARD, 3600.0, id="the server's was set forward: by as much"),
        pytest.param(HOST_BEHIND, 3600.0, id="the host's is behind: the later of the two counts"),
        pytest.param(HOST_AHEAD, 0.0, id="the host's is ahead: nothing ends by it"),
    ],
)
@pytest.mark.parametrize(
    ("claim", "ends"),
    [
        pytest.param(make_bound_claim(lifetime="30s", expires=0), 0.0, id="a lifetime"),
        pytest.param(make_claim(age=3700.0, timeout="3690s"), -10.0, id="a claim's patience"),
        pytest.param(
            make_claim(age=3700.0, when_empty="OrderAfter", after="3690s"), -10.0, id="when it orders"
        ),
    ],
)
def test_a_clock_that_is_set_hastens_nothing(
    claim: Claim, ends: float, clock: Timeline, later: float
) -> None:
    due = NOW + ends + later
    assert _plan(claim, now=due - 0.1, timeline=clock).action is None
    assert _plan(claim, now=due - 0.1, timeline=clock).look_again == due
    assert _plan(claim, now=due, timeline=clock).action is not None


def test_a_vm_under_deletion_is_not_told_to_be_stuck_because_the_clock_was_set_forward() -> None:
    claim, hour = make_bound_claim(phase="Releasing"), 3600.0
    seen = {"vm": GOING, "stuck_after": 60.0, "timeline": SET_FORWARD}
    assert _plan(claim, now=NOW + hour, **seen) == Plan(None, NOW + hour + 59)
    assert isinstance(_plan(claim, now=NOW + hour + 59, **seen).action, Refresh)


def test_a_vm_that_went_with_its_pool_is_told_to_have_though_the_clock_was_set_forward() -> None:
    seen = {"vm": None, "pool_swept": True, "now": NOW + 3600, "timeline": SET_FORWARD}
    action = _plan(make_bound_claim(bound=-30), **seen).action
    assert isinstance(action, CheckLost)
    assert _condition(action.status, "Ready")["reason"] == "PoolDeleted"


@pytest.mark.parametrize(
    ("claim", "bounds", "expires"),
    [
        pytest.param({"lifetime": "1h"}, {}, 3570.0, id="the claim's wish"),
        pytest.param({}, {"lifetime_default": 60.0}, 30.0, id="the pool's default"),
        pytest.param({"lifetime": "1h"}, {"lifetime_max": 60.0}, 30.0, id="the wish within the bound"),
        pytest.param({}, {"lifetime_max": 60.0}, 30.0, id="the bound alone"),
        pytest.param({"expires": 99}, {}, None, id="none any more"),
    ],
)
def test_an_expiry_that_is_not_what_it_should_be_is_written(
    claim: dict[str, Any], bounds: dict[str, float], expires: float | None
) -> None:
    action = _plan(make_bound_claim(**claim), **bounds).action
    assert isinstance(action, Refresh)
    assert action.status.get("expiresAt") == (None if expires is None else at(expires))


def test_a_lifetime_that_was_extended_is_written_before_anything_expires() -> None:
    action = _plan(make_bound_claim(lifetime="1h", expires=-5)).action
    assert isinstance(action, Refresh)
    assert action.status["expiresAt"] == at(3570)


def test_a_lifetime_with_milliseconds_comes_to_rest() -> None:
    claim = make_bound_claim(lifetime="60s500ms", expires=30)
    assert _plan(claim) == Plan(None, NOW + 30)


def test_without_its_pool_what_was_promised_stands() -> None:
    assert _plan(make_bound_claim(expires=30), pool_known=False) == Plan(None, NOW + 30)
    assert isinstance(_plan(make_bound_claim(expires=0), pool_known=False).action, Expire)
    assert _plan(make_bound_claim(lifetime="1h"), pool_known=False) == NOTHING


@pytest.mark.parametrize("pool_known", [True, False])
def test_a_claim_without_a_lifetime_never_expires(pool_known: bool) -> None:  # noqa: FBT001 - a table's column
    assert _plan(make_bound_claim(), now=NOW + 1e9, pool_known=pool_known) == NOTHING


# ---- bound, and deleted


def test_a_bound_claim_that_is_going_gives_its_vm_back_and_says_nothing() -> None:
    assert _plan(make_bound_claim(deleting=True)) == Plan(GiveBack("pool-aaaaa", "pool-aaaaa-uid", None))


@pytest.mark.parametrize("vm", [None, GOING])
def test_a_vm_that_is_gone_or_going_needs_no_giving_back(vm: Any) -> None:
    assert _plan(make_bound_claim(deleting=True), vm=vm) == NOTHING


@pytest.mark.parametrize("phase", ["Bound", "Releasing"])
def test_a_claim_that_orphans_its_vm_releases_nothing(phase: str) -> None:
    claim = make_bound_claim(phase=phase, deleting=True, finalizers=["orphan"], lifetime="1s", expires=-5)
    assert _plan(claim) == NOTHING


@pytest.mark.parametrize("phase", ["Bound", "Releasing"])
def test_a_vm_that_was_orphaned_stays_though_its_claim_is_deleted_once_more_in_the_foreground(
    phase: str,
) -> None:
    """The second deletion took the place of the first one, and the user's own VM was destroyed."""
    claim = make_bound_claim(phase=phase, deleting=True, finalizers=["foregroundDeletion"])
    orphaned = make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid", owner=None)
    assert _plan(claim, vm=orphaned) == NOTHING
    assert isinstance(_plan(claim, vm=VM).action, GiveBack)


def test_an_orphan_finalizer_on_a_living_claim_means_nothing_yet() -> None:
    claim = make_bound_claim(finalizers=["orphan"], lifetime="30s", expires=0)
    assert isinstance(_plan(claim).action, Expire)


# ---- bound, and its VM is not to be seen


def test_a_vm_that_is_not_to_be_seen_is_looked_for_before_anything_is_said() -> None:
    action = _plan(make_bound_claim(), vm=None, vmi=None).action
    assert isinstance(action, CheckLost)
    assert (action.vm_name, action.vm_uid) == ("pool-aaaaa", "pool-aaaaa-uid")
    assert action.status["phase"] == "Lost"
    message = _condition(action.status, "Finished")["message"]
    assert "pool-aaaaa" in message
    assert at(0) in message


def test_a_missing_vm_comes_before_an_expiry() -> None:
    assert isinstance(_plan(make_bound_claim(lifetime="30s", expires=0), vm=None).action, CheckLost)


def test_a_bound_claim_that_names_nothing_is_left_alone() -> None:
    assert _plan(make_claim(phase="Bound"), vm=None) == NOTHING


# ---- bound, and its guest changed


def test_a_change_of_the_guest_is_written_when_it_has_settled() -> None:
    moved = make_vmi(addresses=["10.0.0.8"])
    claim = make_bound_claim()
    assert _plan(claim, vmi=moved, guest_changed=NOW) == Plan(None, NOW + SETTLE)
    action = _plan(claim, vmi=moved, guest_changed=NOW - SETTLE).action
    assert isinstance(action, Refresh)
    assert action.status["virtualMachines"][0]["addresses"] == [{"type": "InternalIP", "address": "10.0.0.8"}]


def test_an_emptied_address_is_kept_for_a_while() -> None:
    emptied = make_vmi(addresses=[])
    assert _plan(make_bound_claim(), vmi=emptied, guest_changed=NOW) == Plan(None, NOW + KEEP_EMPTIED)
    action = _plan(make_bound_claim(), vmi=emptied, guest_changed=NOW - KEEP_EMPTIED).action
    assert isinstance(action, Refresh)
    assert "addresses" not in action.status["virtualMachines"][0]
    assert _condition(action.status, "Ready")["reason"] == "NoAddress"


def test_a_new_guest_without_an_address_is_told_without_waiting_so_long() -> None:
    restarted = make_vmi(uid="new-guest", addresses=[])
    assert _plan(make_bound_claim(), vmi=restarted, guest_changed=NOW) == Plan(None, NOW + SETTLE)


def test_a_claim_is_refreshed_at_most_once_in_five_seconds() -> None:
    moved = make_vmi(addresses=["10.0.0.8"])
    seen = {"vmi": moved, "guest_changed": NOW - 10}
    assert _plan(make_bound_claim(), **seen, refreshed_at=NOW - 2) == Plan(None, NOW - 2 + WRITE_INTERVAL)
    assert isinstance(_plan(make_bound_claim(), **seen, refreshed_at=NOW - 5).action, Refresh)


def test_an_expiry_is_not_forgotten_while_a_guest_settles() -> None:
    claim = make_bound_claim(lifetime="31s", expires=1)
    emptied = make_vmi(addresses=[])
    assert _plan(claim, vmi=emptied, guest_changed=NOW) == Plan(None, NOW + 1)
    moved = _plan(claim, vmi=make_vmi(addresses=["10.0.0.8"]), guest_changed=NOW - 10)
    assert isinstance(moved.action, Refresh)
    assert moved.look_again == NOW + 1


def test_a_vm_that_a_person_deletes_is_not_ready_any_more() -> None:
    action = _plan(make_bound_claim(), vm=GOING, guest_changed=NOW - 60).action
    assert isinstance(action, Refresh)
    assert action.status["phase"] == "Bound"
    assert "is being deleted" in _condition(action.status, "Ready")["message"]


def test_a_refresh_that_was_written_asks_for_no_second_one() -> None:
    claim = make_bound_claim()
    for guest in (make_vmi(), make_vmi(addresses=["10.0.0.8"]), make_vmi(uid="new-guest"), None):
        first = _plan(claim, vmi=guest, guest_changed=NOW - 60).action
        if isinstance(first, Refresh):
            claim = _written(claim, first.status)
        assert _plan(claim, vmi=guest, guest_changed=NOW - 60, now=NOW + 100) == NOTHING


def _written(claim: Claim, status: dict[str, Any]) -> Claim:
    written = msgspec.convert(status, ClaimStatus)
    after = Claim(claim.metadata, claim.spec, written)
    assert kept(after) == status
    return after


# ---- releasing and finished


def test_a_releasing_claim_gives_its_vm_back_and_then_says_released() -> None:
    action = _plan(make_bound_claim(phase="Releasing")).action
    assert isinstance(action, GiveBack)
    assert (action.vm_name, action.vm_uid) == ("pool-aaaaa", "pool-aaaaa-uid")
    assert action.status is not None
    assert action.status["phase"] == "Released"
    assert action.status["virtualMachines"][0]["uid"] == "pool-aaaaa-uid"
    assert _condition(action.status, "Finished")["reason"] == "Released"


def test_a_releasing_claim_whose_vm_is_gone_says_so_too() -> None:
    assert isinstance(_plan(make_bound_claim(phase="Releasing"), vm=None).action, GiveBack)


def test_a_releasing_claim_waits_for_a_vm_that_is_going() -> None:
    """Its end is an event; until it counts as one that does not go, there is nothing to say."""
    assert _plan(make_bound_claim(phase="Releasing"), vm=GOING, stuck_after=60.0) == Plan(None, NOW + 59)


def test_a_releasing_claim_whose_vm_does_not_go_says_so_once_and_what_holds_it() -> None:
    held = msgspec.structs.replace(
        GOING, metadata=msgspec.structs.replace(GOING.metadata, finalizers=["kubevirt.io/vm"])
    )
    told = _plan(make_bound_claim(phase="Releasing"), vm=held, stuck_after=0.5).action
    assert isinstance(told, Refresh)
    ready = _condition(told.status, "Ready")
    said = f"VM pool-aaaaa has been under deletion since {at(-1)} and does not go"
    assert ready["message"] == f"{said}: its finalizers are kubevirt.io/vm"
    again = make_condition("Ready", "False", reason=ready["reason"], message=ready["message"])
    bound = make_condition("Bound", since=-30, reason="HandedOver", message="VM pool-aaaaa was handed over")
    claim = make_bound_claim(phase="Releasing", conditions=[bound, again])
    assert _plan(claim, vm=held, stuck_after=0.5) == NOTHING


def test_a_releasing_claim_that_is_going_writes_no_last_status() -> None:
    action = _plan(make_bound_claim(phase="Releasing", deleting=True)).action
    assert action == GiveBack("pool-aaaaa", "pool-aaaaa-uid", None)


FINISHED = [State.RELEASED, State.EXPIRED, State.FAILED, State.LOST]


@pytest.mark.parametrize("phase", FINISHED)
def test_a_finished_claim_is_removed_when_its_time_is_over(phase: State) -> None:
    claim = make_claim(phase=phase.value, ttl=60, conditions=[make_condition("Finished", since=-50)])
    assert _plan(claim, vm=None) == Plan(None, NOW + 10)
    assert _plan(claim, vm=None, now=NOW + 10) == Plan(RemoveClaim())


@pytest.mark.parametrize("phase", FINISHED)
def test_a_finished_claim_without_that_stays(phase: State) -> None:
    claim = make_claim(phase=phase.value, conditions=[make_condition("Finished", since=-1e6)])
    assert _plan(claim, vm=None) == NOTHING


def test_a_ttl_of_nothing_removes_a_finished_claim_at_once() -> None:
    claim = make_claim(phase="Lost", ttl=0, conditions=[make_condition("Finished", since=0)])
    assert _plan(claim, vm=None) == Plan(RemoveClaim())


def test_a_finished_claim_that_is_going_or_does_not_say_since_when_is_left() -> None:
    conditions = [make_condition("Finished")]
    assert _plan(make_claim(phase="Lost", ttl=0, deleting=True, conditions=conditions), vm=None) == NOTHING
    assert _plan(make_claim(phase="Lost", ttl=0), vm=None) == NOTHING


# ---- level-triggered


@pytest.mark.parametrize(
    "claim",
    [
        make_claim(timeout="1m", when_empty="OrderAfter", after="2m"),
        make_bound_claim(lifetime="1m", expires=30),
        make_claim(phase="Lost", ttl=60, conditions=[make_condition("Finished", since=0)]),
    ],
)
def test_when_it_asks_to_be_looked_at_again_something_is_to_be_done_then(claim: Claim) -> None:
    vm = VM if claim.status and claim.status.virtual_machines else None
    waits = _plan(claim, vm=vm)
    assert waits.action is None
    assert waits.look_again is not None
    assert waits.look_again > NOW
    assert _plan(claim, vm=vm, now=waits.look_again).action is not None


def test_the_same_claim_seen_again_gets_the_same_answer() -> None:
    for claim in (make_claim(timeout="1s"), make_bound_claim(vms=[make_bound_vm(node="node-2")])):
        assert _plan(claim) == _plan(claim)


# ---- without KubeVirt


MISSING = "the API server serves no virtualmachines"


def test_while_kubevirt_is_missing_a_bound_claim_says_so_once_and_is_not_lost() -> None:
    told = _plan(make_bound_claim(), missing=MISSING, vm=None, vmi=None)
    assert isinstance(told.action, Refresh)
    ready = _condition(told.action.status, "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "KubeVirtMissing", MISSING)
    assert told.action.status["virtualMachines"] == kept(make_bound_claim())["virtualMachines"]
    again = make_bound_claim(
        conditions=[make_condition("Ready", "False", reason="KubeVirtMissing", message=MISSING)]
    )
    assert _plan(again, missing=MISSING, vm=None, vmi=None) == NOTHING


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(make_bound_claim(expires=-60.0), id="expired"),
        pytest.param(make_bound_claim(deleting=True), id="going"),
        pytest.param(make_bound_claim(phase="Releasing"), id="releasing"),
    ],
)
def test_while_kubevirt_is_missing_nothing_is_given_back(claim: Claim) -> None:
    found = _plan(claim, missing=MISSING)
    assert found == NOTHING or isinstance(found.action, Refresh)
