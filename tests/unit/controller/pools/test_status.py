"""A pool's status: what it counts, each condition's each reason, and that nothing ticks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.pools.brake import BrakeState
from controller.pools.freshness import Revisions
from controller.pools.snapshot import Snapshot, Trouble
from controller.pools.status import (
    capacity_available,
    degraded,
    hindrance,
    progressing,
    ready,
    selector,
    status,
    stopped,
    warm,
)
from crds.pool import VirtualMachinePool
from statemachines.instance import State
from tests.support.builders import NOW, at, make_pool, make_snapshot

Json = dict[str, Any]
OPEN = BrakeState(4, NOW - 60, NOW + 20, 20.0)
TROUBLE = Trouble("TemplateInvalid", "interface b has a fixed macAddress")
FULL: Json = {"warm": 3}


def _conditions(found: Json) -> dict[str, Json]:
    return {each["type"]: each for each in found["conditions"]}


# ---- what it counts


def test_it_counts_every_vm_once() -> None:
    counts: Json = {
        "provisioning": 1, "warm": 2, "unready": 3, "claimed": 4, "draining": 5, "terminating": 6,
        "failed": 7,
    }  # fmt: skip
    found = status(make_snapshot(**counts), {})
    assert found["instances"] == counts
    assert found["total"] == sum(found["instances"].values())
    assert found["replicas"] == 1 + 2 + 3


def test_what_wakes_up_counts_as_booting() -> None:
    assert status(make_snapshot(waking=2), {})["instances"]["provisioning"] == 2


def test_it_says_how_warm_the_pool_is_and_who_decided() -> None:
    found = status(make_snapshot(warm=2, handing_over=1), {})["warm"]
    assert (found["ready"], found["target"], found["decidedBy"]) == (1, 3, "replicas")
    assert found["policies"] == [{"name": "replicas", "wants": 3, "because": "spec.warm.replicas is 3"}]


def test_it_never_says_that_less_than_none_are_ready() -> None:
    assert status(make_snapshot(warm=1, handing_over=2), {})["warm"]["ready"] == 0


def test_it_says_what_is_asked_of_the_pool() -> None:
    found = status(make_snapshot(pending=2, oldest_pending=NOW - 90, lead_time=(1.234, 5.678)), {})["demand"]
    assert found == {
        "pending": 2,
        "oldestPendingSince": at(-90),
        "leadTimeSeconds": {"p50": 1.23, "p95": 5.68},
    }
    assert status(make_snapshot(), {})["demand"] == {"pending": 0}


def test_it_says_how_the_brake_stands() -> None:
    assert status(make_snapshot(), {})["brake"] == {"failures": 0}
    assert status(make_snapshot(brake=OPEN), {})["brake"] == {
        "failures": 4,
        "openSince": at(-60),
        "nextProbeTime": at(20),
    }


def test_its_selector_finds_the_unclaimed_vms_also_when_there_are_none() -> None:
    assert selector("pool-uid") == "bullpen.dev/pool-uid=pool-uid,bullpen.dev/state=Pooled"
    assert status(make_snapshot(), {})["selector"] == selector("pool-uid")


def test_it_names_the_revision_and_how_many_have_it() -> None:
    found = status(make_snapshot(revisions=Revisions(updated=2)), {})
    assert (found["currentRevision"], found["updatedReplicas"], found["observedGeneration"]) == (
        "0123456789",
        2,
        1,
    )


@pytest.mark.parametrize(
    "seen",
    [
        make_snapshot(),
        make_snapshot(
            brake=OPEN, quota="used up", trouble=TROUBLE, pending=2, oldest_pending=NOW, lead_time=(1, 2)
        ),
        make_snapshot(make_pool(deleting=True), claimed=3, pending=1),
    ],
)
def test_the_schema_takes_it(seen: Snapshot) -> None:
    VirtualMachinePool.model_validate(
        {"metadata": {}, "spec": {"template": {"spec": {}}}, "status": status(seen, {})}
    )


# ---- each condition's each reason

GOING = make_pool(deleting=True)


@pytest.mark.parametrize(
    ("seen", "truth", "reason"),
    [
        pytest.param(make_snapshot(**FULL), "True", "Serving", id="nothing in its way"),
        pytest.param(make_snapshot(), "True", "Serving", id="nothing warm yet"),
        pytest.param(make_snapshot(GOING), "False", "Deleting", id="it goes"),
        pytest.param(
            make_snapshot(trouble=TROUBLE), "False", "TemplateInvalid", id="its template is refused"
        ),
        pytest.param(make_snapshot(brake=OPEN), "False", "BrakeOpen", id="its VMs fail"),
        pytest.param(
            make_snapshot(missing="no kubevirt", trouble=TROUBLE),
            "False",
            "KubeVirtMissing",
            id="no KubeVirt",
        ),
        pytest.param(make_snapshot(quota="used up"), "False", "QuotaRefused", id="a quota"),
        pytest.param(
            make_snapshot(denied="policy"), "False", "ApiRefused", id="admission refuses hand-overs"
        ),
        pytest.param(
            make_snapshot(GOING, trouble=TROUBLE, brake=OPEN), "False", "Deleting", id="it goes, and all else"
        ),
        pytest.param(
            make_snapshot(trouble=TROUBLE, brake=OPEN, quota="x"),
            "False",
            "TemplateInvalid",
            id="trouble first",
        ),
    ],
)
def test_ready(seen: Snapshot, truth: str, reason: str) -> None:
    assert ready(seen)[:2] == (truth, reason)


@pytest.mark.parametrize(
    ("seen", "truth", "reason"),
    [
        pytest.param(make_snapshot(**FULL), "True", "TargetReached", id="as many as aimed at"),
        pytest.param(make_snapshot(warm=9), "True", "TargetReached", id="more than aimed at"),
        pytest.param(make_snapshot(make_pool(warm=0)), "True", "TargetReached", id="none aimed at"),
        pytest.param(make_snapshot(warm=2), "True", "Filling", id="one short since just now"),
        pytest.param(make_snapshot(short_since=NOW - 60), "True", "Filling", id="short, no boot measured"),
        pytest.param(make_snapshot(short_since=NOW - 61), "False", "Short", id="short for over a minute"),
        pytest.param(
            make_snapshot(short_since=NOW - 100, lead_time=(20.0, 50.0)),
            "True",
            "Filling",
            id="twice the p95",
        ),
        pytest.param(
            make_snapshot(short_since=NOW - 101, lead_time=(20.0, 50.0)),
            "False",
            "Short",
            id="more than that",
        ),
        pytest.param(
            make_snapshot(short_since=NOW - 61, lead_time=(20.0, 50.0)), "True", "Filling", id="slow boots"
        ),
        pytest.param(make_snapshot(trouble=TROUBLE), "False", "Short", id="short, and nothing can be made"),
        pytest.param(make_snapshot(brake=OPEN), "False", "Short", id="short, and the brake is open"),
        pytest.param(make_snapshot(trouble=TROUBLE, **FULL), "True", "TargetReached", id="full all the same"),
        pytest.param(make_snapshot(GOING), "False", "Deleting", id="it goes"),
        pytest.param(make_snapshot(GOING, **FULL), "False", "Deleting", id="it goes, and is full still"),
    ],
)
def test_warm(seen: Snapshot, truth: str, reason: str) -> None:
    assert warm(seen)[:2] == (truth, reason)


@pytest.mark.parametrize(
    ("seen", "truth", "reason"),
    [
        pytest.param(make_snapshot(**FULL), "False", "TargetReached", id="all are there"),
        pytest.param(make_snapshot(warm=2), "True", "Filling", id="one is missing"),
        pytest.param(make_snapshot(warm=2, provisioning=1), "True", "Filling", id="one is booting"),
        pytest.param(make_snapshot(warm=5), "True", "Shrinking", id="two are too many"),
        pytest.param(make_snapshot(make_pool(suspend=True)), "False", "Suspended", id="suspended"),
        pytest.param(make_snapshot(GOING), "True", "Deleting", id="it goes"),
        pytest.param(
            make_snapshot(make_pool(suspend=True, deleting=True)),
            "True",
            "Deleting",
            id="suspended, and goes",
        ),
    ],
)
def test_progressing(seen: Snapshot, truth: str, reason: str) -> None:
    assert progressing(seen)[:2] == (truth, reason)


@pytest.mark.parametrize(
    ("seen", "truth", "reason", "says"),
    [
        pytest.param(make_snapshot(), "False", "AsExpected", "nothing", id="nothing"),
        pytest.param(
            make_snapshot(brake=OPEN, last_failure="crash"),
            "True",
            "BrakeOpen",
            "4 VMs failed in a row",
            id="brake",
        ),
        pytest.param(make_snapshot(denied="policy"), "True", "ApiRefused", "policy", id="admission"),
        pytest.param(
            make_snapshot(brake=BrakeState(1), last_failure="crash"),
            "True",
            "VMsFailed",
            "crash",
            id="one failed",
        ),
    ],
)
def test_degraded(seen: Snapshot, truth: str, reason: str, says: str) -> None:
    assert degraded(seen)[:2] == (truth, reason)
    assert says in degraded(seen)[2]


SMALL = make_pool(limits={"maxReplicas": 3})


@pytest.mark.parametrize(
    ("seen", "truth", "reason"),
    [
        pytest.param(make_snapshot(), "True", "BelowLimits", id="another may be made"),
        pytest.param(make_snapshot(quota="used up"), "False", "QuotaRefused", id="a quota"),
        pytest.param(make_snapshot(unschedulable=2), "False", "Unschedulable", id="no node"),
        pytest.param(make_snapshot(SMALL, claimed=3), "False", "MaxReplicasReached", id="its own limit"),
        pytest.param(make_snapshot(SMALL, warm=3), "True", "BelowLimits", id="full, and nothing is wanted"),
        pytest.param(make_snapshot(SMALL, warm=2), "True", "BelowLimits", id="one below its limit"),
    ],
)
def test_capacity_available(seen: Snapshot, truth: str, reason: str) -> None:
    assert capacity_available(seen)[:2] == (truth, reason)


def test_a_pool_that_goes_says_what_remains_and_who_waits() -> None:
    message = ready(make_snapshot(GOING, warm=2, failed=1, draining=1, claimed=4, pending=3))[2]
    assert "4 unclaimed VMs are to go first" in message
    assert "4 claimed VMs stay" in message
    assert "3 claims go on waiting" in message
    assert "claimed VMs stay" not in ready(make_snapshot(GOING))[2]


def test_an_open_brake_says_the_last_failure() -> None:
    assert "boom" in ready(make_snapshot(brake=OPEN, last_failure="boom"))[2]
    assert "see the events" in ready(make_snapshot(brake=OPEN))[2]


# ---- nothing ticks

SITUATIONS: list[Json] = [
    {},
    FULL,
    {"brake": OPEN},
    {"quota": "used up"},
    {"trouble": TROUBLE},
    {"pending": 3, "oldest_pending": NOW - 60, "lead_time": (12.0, 30.0), "short_since": NOW - 1000},
    {"unschedulable": 1, "provisioning": 1},
]


@pytest.mark.parametrize("seen", SITUATIONS)
@pytest.mark.parametrize("later", [1.0, 60.0, 86_400.0])
def test_the_same_pool_seen_later_has_the_same_status(seen: dict[str, Any], later: float) -> None:
    first = status(make_snapshot(**seen), {})
    assert status(make_snapshot(**seen, now=NOW + later), first) == first


@pytest.mark.parametrize("seen", SITUATIONS)
def test_it_holds_times_and_no_ages(seen: dict[str, Any]) -> None:
    """Nothing but the transition times of new conditions depends on the clock."""
    now, later = (status(make_snapshot(**seen, now=NOW + shift), {}) for shift in (0, 7))
    for found in (now, later):
        for condition in found["conditions"]:
            del condition["lastTransitionTime"]
    assert now == later


def test_a_condition_keeps_its_transition_time_until_its_status_changes() -> None:
    before = status(make_snapshot(now=NOW - 500), {})
    after = status(make_snapshot(quota="used up", **FULL), before)
    assert _conditions(after)["Ready"]["lastTransitionTime"] == at()
    assert _conditions(after)["Degraded"]["lastTransitionTime"] == at(-500)
    assert _conditions(after)["Warm"]["lastTransitionTime"] == at(-500)
    assert _conditions(after)["Warm"]["reason"] == "TargetReached"


def test_the_order_of_the_conditions_is_always_the_same() -> None:
    kinds = ["Ready", "Warm", "Progressing", "RolledOut", "Degraded", "CapacityAvailable"]
    assert [each["type"] for each in status(make_snapshot(), {})["conditions"]] == kinds
    assert [each["type"] for each in status(make_snapshot(brake=OPEN), {})["conditions"]] == kinds


def test_a_message_is_cut_to_what_the_api_server_takes() -> None:
    found = status(make_snapshot(trouble=Trouble("TemplateInvalid", "x" * 5000)), {})
    assert len(_conditions(found)["Ready"]["message"]) == 1024


# ---- after a clean stop


def test_a_stopped_controller_says_that_nobody_watches_and_changes_nothing_else() -> None:
    before = status(make_snapshot(now=NOW - 500, **FULL), {})
    found = stopped(before, "ns", "pool", NOW)
    said = _conditions(found)["Ready"]
    assert (said["status"], said["reason"], said["lastTransitionTime"]) == (
        "Unknown",
        "ControllerStopped",
        at(),
    )
    assert "kubectl delete virtualmachinepool/pool --namespace ns" in said["message"]
    for kind in ("Warm", "Progressing", "Degraded", "CapacityAvailable"):
        assert _conditions(found)[kind] == _conditions(before)[kind]
    assert {**found, "conditions": 0} == {**before, "conditions": 0}


def test_after_a_stop_the_pool_is_ready_again_from_then_on() -> None:
    before = stopped(status(make_snapshot(now=NOW - 500), {}), "ns", "pool", NOW - 100)
    said = _conditions(status(make_snapshot(), before))["Ready"]
    assert (said["status"], said["lastTransitionTime"]) == ("True", at())


def test_times_are_written_as_kubernetes_writes_them() -> None:
    found = status(make_snapshot(brake=OPEN), {})["brake"]["openSince"]
    assert datetime.fromisoformat(found) == datetime.fromtimestamp(NOW - 60, UTC)


def test_every_state_has_a_count() -> None:
    for state in State:
        one: Json = {state.value.lower(): 1}
        assert make_snapshot(**one).total == 1


# ---- why none is made


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (make_snapshot(make_pool(suspend=True)), "spec.suspend is true"),
        (make_snapshot(brake=OPEN), "one at a time"),
        (make_snapshot(missing="no KubeVirt"), "no KubeVirt"),
        (make_snapshot(quota="exceeded quota: vms"), "exceeded quota: vms"),
        (make_snapshot(make_pool(limits={"maxReplicas": 3}), claimed=3), "limits.maxReplicas (3) is reached"),
        (make_snapshot(**FULL), ""),
    ],
    ids=["suspended", "braked", "missing", "quota", "full", "fine"],
)
def test_claims_that_wait_hear_why_no_vm_is_made(seen: Snapshot, words: str) -> None:
    assert words in hindrance(seen)
    assert bool(hindrance(seen)) is bool(words)


def test_a_suspended_pool_that_is_short_does_not_say_that_it_fills() -> None:
    truth, reason, _ = warm(make_snapshot(make_pool(suspend=True), warm=1))
    assert (truth, reason) == ("False", "Short")


def test_a_pool_at_its_limit_does_not_say_that_it_fills() -> None:
    truth, reason, _ = progressing(make_snapshot(make_pool(limits={"maxReplicas": 3}), claimed=3))
    assert (truth, reason) == ("False", "MaxReplicasReached")


def test_a_pool_at_its_limit_that_a_quota_holds_up_as_well_says_one_reason_with_its_own_sentence() -> None:
    seen = make_snapshot(make_pool(limits={"maxReplicas": 3}), claimed=3, quota="used up")
    assert progressing(seen)[1:] == capacity_available(seen)[1:] == ("QuotaRefused", "used up")


@pytest.mark.parametrize(
    ("age", "wait", "boot", "short"),
    [
        ("110s", 0, 100.0, True),
        ("112s", 0, 100.0, False),
        ("130s", 20, 100.0, True),
        ("20s", 20, None, True),
        ("20s", 0, None, False),
        (None, 20, 100.0, False),
    ],
    ids=["a tenth earlier", "just longer", "it waits", "not measured", "not known", "any age"],
)
def test_an_age_that_vms_have_when_they_become_warm_is_a_persons_to_see(
    age: str | None,
    wait: int,
    boot: float | None,
    short: bool,  # noqa: FBT001 - pytest gives it by name
) -> None:
    pool = make_pool(max_warm_age=age, readiness={"minReadySeconds": wait})
    found = degraded(make_snapshot(pool, lead_time=(boot, boot)))
    assert found[:2] == (("True", "WarmAgeTooShort") if short else ("False", "AsExpected"))


def test_it_says_which_age_to_write() -> None:
    found = degraded(make_snapshot(make_pool(max_warm_age="1m"), lead_time=(89.5, 120.0)))
    assert "maxWarmAge is 1m and half of the VMs need 1m30s or longer" in found[2]
    assert "much longer, like 30m, or leave it out" in found[2]
