"""What each API error says about a step's outcome, and which step goes first."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import orjson
import pytest

from controller.claims.execute import Executor, answer_of, priority_of
from controller.claims.protocol import (
    Answer,
    DeleteVM,
    Denied,
    Done,
    FoundVM,
    Invalid,
    Missing,
    NotApplied,
    PatchClaimStatus,
    PatchVM,
    ReadClaim,
    ReadVM,
    Step,
    StepName,
    TestRefused,
    Unknown,
)
from controller.kube import errors
from controller.kube.client import Priority
from controller.kube.store import Store
from controller.machines.objects import VirtualMachine
from crds import names
from tests.support.builders import make_vm, stored

PATCH: Step = PatchVM(StepName.HAND_OVER_VM, "vm", ())
DELETE: Step = DeleteVM(StepName.RELEASE_DELETE, "vm", "vm-uid")
READ: Step = ReadClaim(StepName.REPAIR_READ_CLAIM, "claim")


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (errors.TestFailed(422), TestRefused()),
        (errors.Invalid(422, message="bad label"), Invalid("bad label")),
        (errors.NotFound(404), Missing()),
        (errors.Conflict(409, message="the object has been modified"), NotApplied()),
        (errors.TooManyRequests(message="busy"), NotApplied("busy")),
        (errors.NotSent(), NotApplied()),
        (
            errors.WebhookUnavailable(500, message="failed calling webhook"),
            NotApplied("failed calling webhook"),
        ),
        (errors.Unauthorized(401), NotApplied()),
        (errors.UnknownOutcome(503), Unknown()),
        (errors.UnknownOutcome(), Unknown()),
        (errors.WebhookDenied(400, message="admission webhook denied"), Denied("admission webhook denied")),
        (errors.Forbidden(403, message="rbac"), Denied("rbac")),
        (errors.QuotaExceeded(403, message="exceeded quota"), Denied("exceeded quota")),
        (errors.BadRequest(400, message="what?"), Denied("what?")),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("step", [PATCH, DELETE, READ], ids=["patch", "delete", "read"])
def test_an_error_is_an_answer(step: Step, error: errors.ApiError, answer: Answer) -> None:
    assert answer_of(step, error) == answer


@pytest.mark.parametrize(
    "message",
    [
        'cannot be fulfilled on virtualmachines "vm": the UID in the precondition (a) does not match',
        "StorageError: invalid object: Precondition failed: UID in precondition: a, UID in object meta: b",
    ],
)
def test_a_delete_whose_uid_does_not_fit_found_the_vm_gone(message: str) -> None:
    assert answer_of(DELETE, errors.Conflict(409, message=message)) == Missing()
    assert answer_of(PATCH, errors.Conflict(409, message=message)) == NotApplied()


def test_a_vm_whose_name_has_those_letters_is_not_taken_for_gone() -> None:
    message = 'Operation cannot be fulfilled on virtualmachines.kubevirt.io "liquid-abcde": it was modified'
    assert answer_of(DELETE, errors.Conflict(409, message=message)) == NotApplied()


def test_an_error_that_may_have_been_applied_is_never_called_definite() -> None:
    kinds: list[type[errors.ApiError]] = [errors.UnknownOutcome, *errors.UnknownOutcome.__subclasses__()]
    for kind in kinds:
        expected = NotApplied() if kind is errors.NotSent else Unknown()
        assert answer_of(PATCH, kind(504)) == expected


def test_a_refusal_without_words_says_something() -> None:
    answer = answer_of(PATCH, errors.Forbidden(403))
    assert isinstance(answer, Denied)
    assert "403" in answer.message


@pytest.mark.parametrize(
    ("step", "priority"),
    [
        (StepName.HAND_OVER_VM, Priority.HAND_OVER),
        (StepName.HAND_OVER_CLAIM, Priority.HAND_OVER),
        (StepName.REPAIR_PUBLISH, Priority.HAND_OVER),
        (StepName.RELEASE_DELETE, Priority.RELEASE),
        (StepName.REPAIR_DESTROY, Priority.RELEASE),
        (StepName.DRAIN_DELETE, Priority.RELEASE),
        (StepName.CLAIM_QUEUE, Priority.STATUS),
        (StepName.CLAIM_STATUS, Priority.STATUS),
        (StepName.LOST_STATUS, Priority.STATUS),
    ],
)
def test_a_hand_over_goes_before_a_release_and_that_before_a_status(
    step: StepName, priority: Priority
) -> None:
    assert priority_of(step) is priority


@dataclass(frozen=True)
class _Stubborn:
    """A procedure that wants the same step until it was refused so many times."""

    step: Step
    left: int = 20

    def next(self) -> Step | Done:
        return self.step if self.left else Done("done")

    def observe(self, _: Answer) -> _Stubborn:
        return replace(self, left=self.left - 1)


@pytest.mark.parametrize(
    ("step", "longest"),
    [
        pytest.param(PATCH, 5.0, id="a hand-over's write: its claim waits"),
        pytest.param(ReadVM(StepName.HAND_OVER_READ_VM, "vm"), 5.0, id="a hand-over's read of its VM"),
        pytest.param(ReadClaim(StepName.HAND_OVER_READ_CLAIM, "claim"), 5.0, id="and of its claim"),
        pytest.param(DELETE, 30.0, id="a release: nobody waits"),
        pytest.param(PatchClaimStatus(StepName.CLAIM_STATUS, "claim", ()), 30.0, id="a status"),
    ],
)
async def test_between_refusals_it_pauses_ever_longer_but_not_for_long_where_a_claim_waits(
    step: Step, longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def refused(_: Step) -> Answer:
        return Unknown()

    async def sleep(pause: float) -> None:
        pauses.append(pause)

    executor = Executor(cast("Any", None), "ns", Store(), Store(), lambda _: contextlib.nullcontext())
    monkeypatch.setattr(executor, "perform", refused)
    monkeypatch.setattr("controller.claims.execute.asyncio.sleep", sleep)
    monkeypatch.setattr("controller.claims.execute.random.uniform", lambda _, most: most)
    await executor.drive(_Stubborn(step))
    assert (pauses[0], pauses[-1]) == (0.1, longest)
    assert pauses == sorted(pauses)


class _Client:
    """Answers each read with one VM."""

    def __init__(self, vm: VirtualMachine) -> None:
        self._body = orjson.dumps(stored(vm))

    async def get(self, *_: Any, **__: Any) -> bytes:
        return self._body

    def server_time(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


async def _read(vm: VirtualMachine) -> tuple[Answer, Store[VirtualMachine]]:
    vms: Store[VirtualMachine] = Store()
    client: Any = _Client(vm)
    executor = Executor(client, "ns", vms, Store(), lambda _: contextlib.nullcontext())
    return await executor.perform(ReadVM(StepName.LOST_READ_VM, vm.metadata.name)), vms


async def test_what_a_read_shows_is_known_at_once() -> None:
    vm = make_vm()
    answer, vms = await _read(vm)
    assert isinstance(answer, FoundVM)
    assert vms.get(vm.metadata.uid) == vm


async def test_a_vm_that_no_watch_covers_is_not_kept_since_nobody_would_tell_when_it_goes() -> None:
    answer, vms = await _read(make_vm(labels={names.LABEL_POOL_UID: None}))
    assert isinstance(answer, FoundVM)
    assert len(vms) == 0
