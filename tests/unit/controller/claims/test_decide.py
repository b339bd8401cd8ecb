"""The repair table, row by row."""

from __future__ import annotations

import pytest

from controller.claims.decide import Verdict, decide
from controller.claims.objects import Claim
from controller.machines.objects import VirtualMachine
from crds import names
from statemachines.claim import State
from tests.support.builders import make_bound_claim, make_bound_vm, make_claim, make_vm

HELD = make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid")
OTHER = [make_bound_vm("pool-other")]
FINISHED = [State.RELEASED, State.EXPIRED, State.FAILED, State.LOST]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        pytest.param(make_bound_claim(), Verdict.PUBLISHED, id="names it, Bound"),
        pytest.param(
            make_bound_claim(deleting=True, finalizers=["foregroundDeletion"]),
            Verdict.RELEASE,
            id="names it, is going in the foreground",
        ),
        pytest.param(make_bound_claim(deleting=True), Verdict.RELEASE, id="names it, is going"),
        pytest.param(make_bound_claim(phase="Releasing"), Verdict.RELEASE, id="names it, Releasing"),
        pytest.param(
            make_bound_claim(deleting=True, finalizers=["orphan"]), Verdict.LEAVE, id="names it, orphans it"
        ),
        pytest.param(
            make_bound_claim(phase="Releasing", deleting=True, finalizers=["orphan"]),
            Verdict.LEAVE,
            id="names it, Releasing, orphans it",
        ),
        pytest.param(make_claim(), Verdict.PUBLISH, id="without a status yet"),
        pytest.param(make_claim(phase="Pending"), Verdict.PUBLISH, id="Pending"),
        pytest.param(make_claim(phase="Pending", age=1e6), Verdict.PUBLISH, id="Pending for days"),
        pytest.param(make_claim(deleting=True), Verdict.DESTROY, id="Pending and going: never published"),
        pytest.param(
            make_claim(deleting=True, finalizers=["orphan"]),
            Verdict.DESTROY,
            id="Pending, going, orphaning what it never had",
        ),
        pytest.param(make_bound_claim(vms=OTHER), Verdict.DESTROY, id="Bound to another VM"),
        pytest.param(
            make_bound_claim(vms=OTHER, phase="Releasing"), Verdict.DESTROY, id="Releasing another VM"
        ),
        pytest.param(None, Verdict.DESTROY, id="gone, and the VM has its owner still"),
    ],
)
def test_a_vm_whose_claim_is(claim: Claim | None, verdict: Verdict) -> None:
    assert decide(HELD, claim) is verdict


@pytest.mark.parametrize("phase", FINISHED)
def test_a_vm_that_a_finished_claim_names_is_released(phase: State) -> None:
    assert decide(HELD, make_bound_claim(phase=phase.value)) is Verdict.RELEASE


@pytest.mark.parametrize("phase", FINISHED)
def test_a_vm_that_a_finished_claim_does_not_name_is_destroyed(phase: State) -> None:
    assert decide(HELD, make_claim(phase=phase.value)) is Verdict.DESTROY


@pytest.mark.parametrize("vm", [make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid", owner=None)])
def test_a_vm_without_owner_whose_claim_is_gone_is_a_persons(vm: VirtualMachine) -> None:
    assert decide(vm, None) is Verdict.LEAVE


def test_pending_is_never_a_reason_to_destroy() -> None:
    for age in (0, 1e3, 1e8):
        for phase in (None, "", "Pending"):
            assert decide(HELD, make_claim(phase=phase, age=age)) is Verdict.PUBLISH
