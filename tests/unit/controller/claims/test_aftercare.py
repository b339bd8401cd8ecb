"""What follows when an action on a claim was refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from controller.claims import release
from controller.claims.aftercare import AGAIN, ALIVE_AGAIN, Aftercare
from controller.claims.loop import Namespace
from controller.claims.plan import CheckLost, RemoveClaim
from controller.claims.protocol import Done
from controller.kube.errors import ApiError, Conflict, Forbidden, NotFound, UnknownOutcome
from tests.support.builders import make_claim

ANOTHER = "Precondition failed: UID in precondition: a, UID in object meta: b"
CHANGED = "Operation cannot be fulfilled on virtualmachineclaims: the object has been modified"


def _aftercare(answer: ApiError | None) -> Aftercare:
    async def delete(_path: str, **_: object) -> bytes:
        if answer is not None:
            raise answer
        return b"{}"

    return Aftercare(cast("Namespace", SimpleNamespace(name="ns", client=SimpleNamespace(delete=delete))))


@pytest.mark.parametrize(
    "answer", [None, NotFound(404), Conflict(409, message=ANOTHER)], ids=["done", "gone", "another"]
)
async def test_a_claim_that_is_gone_is_not_looked_at_again(answer: ApiError | None) -> None:
    assert await _aftercare(answer)._do(make_claim(), RemoveClaim()) is None


@pytest.mark.parametrize(
    "answer",
    [Conflict(409, message=CHANGED), UnknownOutcome(500), Forbidden(403)],
    ids=["changed", "unknown", "forbidden"],
)
async def test_a_claim_whose_removal_was_refused_is_removed_later(answer: ApiError) -> None:
    assert await _aftercare(answer)._do(make_claim(), RemoveClaim()) == AGAIN


@pytest.mark.parametrize(
    ("outcome", "again"),
    [
        (release.Outcome.DONE, None),
        (release.Outcome.ALIVE, ALIVE_AGAIN),
        (release.Outcome.GIVEN_UP, AGAIN),
        (release.Outcome.REFUSED, AGAIN),
    ],
)
async def test_a_claim_that_could_not_be_told_of_its_loss_is_looked_at_again(
    outcome: release.Outcome, again: float | None
) -> None:
    async def drive(work: release.Lost) -> tuple[release.Lost, Done]:
        return work, Done(outcome)

    space = SimpleNamespace(name="ns", executor=SimpleNamespace(drive=drive))
    action = CheckLost("vm", "vm-uid", {})
    assert await Aftercare(cast("Namespace", space))._do(make_claim(), action) == again
