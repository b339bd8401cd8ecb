"""The books at rest: balanced ones are left alone, and each way of not balancing has a sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from crds.names import LABEL_CLAIM_UID, LABEL_STATE
from tests.trials.accounts import complaints, running_out

Json = dict[str, Any]


def pooled(name: str, **metadata: Any) -> Json:
    meta = {
        "name": name,
        "uid": f"{name}-uid",
        "labels": {LABEL_STATE: "Pooled"},
        "ownerReferences": [{"kind": "VirtualMachinePool", "uid": "pool-uid"}],
    }
    return {"metadata": {**meta, **metadata}}


def claimed(name: str, claim: str = "claim-uid", **metadata: Any) -> Json:
    meta = {
        "labels": {LABEL_STATE: "Claimed", LABEL_CLAIM_UID: claim},
        "ownerReferences": [{"kind": "VirtualMachineClaim", "uid": claim}],
    }
    return pooled(name, **{**meta, **metadata})


def claim(phase: str, *vms: str, reason: str = "", **metadata: Any) -> Json:
    kind = "Bound" if phase in {"Bound", "Pending"} else "Finished"
    conditions = [{"type": kind, "status": "False", "reason": reason, "message": "so"}] if reason else []
    named = [{"name": each, "uid": f"{each}-uid"} for each in vms]
    return {
        "metadata": {"name": "claim", "uid": "claim-uid", **metadata},
        "status": {"phase": phase, "virtualMachines": named, "conditions": conditions},
    }


def test_a_warm_vm_and_a_bound_claim_with_its_vm_are_in_order() -> None:
    assert complaints([claim("Bound", "a")], [claimed("a"), pooled("b")], warm=1) == []


def test_a_claim_that_waits_with_a_reason_beside_no_free_vm_is_in_order() -> None:
    assert complaints([claim("Pending", reason="Queued")], [], warm=0) == []


def test_a_finished_claim_with_a_reason_is_in_order() -> None:
    assert complaints([claim("Expired", reason="Expired")], [pooled("b")], warm=1) == []


WRONG: dict[str, tuple[list[Json], list[Json], int, str]] = {
    "a leak": ([], [claimed("a")], 1, "is leaked"),
    "held for a claim that has another": (
        [claim("Bound", "b")],
        [claimed("a"), claimed("b")],
        1,
        "is leaked",
    ),
    "held for one that waits": ([claim("Pending", reason="Queued")], [claimed("a")], 1, "is leaked"),
    "too many": ([], [pooled("a"), pooled("b")], 1, "there are 2 VMs"),
    "too few": ([], [], 1, "there are 0 VMs"),
    "a bound claim without its VM": ([claim("Bound", "gone")], [], 0, "not to one VM that is there"),
    "no reason": ([claim("Pending")], [], 0, "does not say why"),
    "no reason at the end": ([claim("Failed")], [], 0, "does not say why"),
    "no status at all": ([{"metadata": {"name": "c", "uid": "c"}}], [], 0, "does not say why"),
    "beside a free VM": ([claim("Pending", reason="Queued")], [pooled("a")], 1, "wait beside 1 free"),
    "going": ([claim("Bound", "a", deletionTimestamp="t")], [claimed("a")], 0, "being deleted still"),
    "releasing": ([claim("Releasing", "a")], [claimed("a")], 1, "is Releasing still"),
    "a VM on its way out": ([], [pooled("a", deletionTimestamp="t")], 1, "is being deleted still"),
    "draining": ([], [pooled("a", labels={LABEL_STATE: "Draining"})], 1, "is Draining"),
    "stripped": ([], [pooled("a", labels={})], 1, "is None"),
    "pooled with a claim": (
        [],
        [pooled("a", labels={LABEL_STATE: "Pooled", LABEL_CLAIM_UID: "x"})],
        1,
        "is Pooled, has the claim UID x",
    ),
    "nobody's": ([], [pooled("a", ownerReferences=[])], 1, "is owned by []"),
    "the pool's still": (
        [claim("Bound", "a")],
        [claimed("a", ownerReferences=pooled("a")["metadata"]["ownerReferences"])],
        0,
        "is Claimed for claim-uid and is owned by [('VirtualMachinePool'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_balance_is_said(case: str) -> None:
    claims, vms, warm, sentence = WRONG[case]
    found = complaints(claims, vms, warm)
    assert any(sentence in each for each in found), found


NOW = 1_800_000_000.0


def at(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_clock(phase: str, age: float = 0.0, expires: str | None = None, **spec: Any) -> Json:
    ended = [{"type": "Finished", "status": "True", "reason": "Released", "lastTransitionTime": at(-age)}]
    made = claim(phase, creationTimestamp=at(-age))
    status = {**made["status"], "conditions": ended if phase == "Released" else [], "expiresAt": expires}
    return {**made, "spec": spec, "status": status}


PATIENT = {"policy": "OrderAfter", "after": "30s"}
CLOCKS = {
    "lifetime": (with_clock("Bound", expires=at(4)), with_clock("Bound", expires=at(6))),
    "timeout": (with_clock("Pending", 56, timeout="1m"), with_clock("Pending", 54, timeout="1m")),
    "whenEmpty.after": (
        with_clock("Pending", 26, whenEmpty=PATIENT),
        with_clock("Pending", 24, whenEmpty=PATIENT),
    ),
    "ttlSecondsAfterFinished": (
        with_clock("Released", 6, ttlSecondsAfterFinished=10),
        with_clock("Released", 4, ttlSecondsAfterFinished=10),
    ),
}


@pytest.mark.parametrize("what", CLOCKS)
def test_a_claim_that_time_alone_changes_soon_is_not_at_rest(what: str) -> None:
    soon, late = CLOCKS[what]
    assert running_out([soon, late], NOW, 5) == [f"claim claim: its {what} is about to end"]


@pytest.mark.parametrize(
    "overdue",
    [
        with_clock("Bound", expires=at(-9)),
        with_clock("Pending", 99, timeout="1m"),
        with_clock("Released", 9, ttlSecondsAfterFinished=1),
    ],
    ids=["lifetime", "timeout", "ttlSecondsAfterFinished"],
)
def test_an_end_that_is_overdue_is_not_at_rest_either(overdue: Json) -> None:
    assert running_out([overdue], NOW, 5) != []


def test_a_claim_that_has_ordered_its_vm_or_has_no_clock_stays_as_it_is() -> None:
    still = [with_clock("Pending", 40, whenEmpty=PATIENT), with_clock("Bound"), with_clock("Released")]
    assert running_out(still, NOW, 3600) == []
