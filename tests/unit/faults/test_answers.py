"""The refusals mean to the controller what they are named for."""

from __future__ import annotations

import orjson
import pytest

from controller.kube import errors
from tests.faults.addresses import Asked
from tests.faults.answers import expired_event, refusal
from tests.faults.kinds import Kind

VM = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines"
PATCH = Asked("PATCH", f"{VM}/a", "", "hand-over/vm")
CREATE = Asked("POST", VM, "", "pool/create")


@pytest.mark.parametrize(
    ("kind", "asked", "error"),
    [
        (Kind.CONFLICT, PATCH, errors.Conflict),
        (Kind.CONFLICT, CREATE, errors.AlreadyExists),
        (Kind.TEST_FAILED, PATCH, errors.TestFailed),
        (Kind.INVALID, PATCH, errors.Invalid),
        (Kind.TOO_MANY, PATCH, errors.TooManyRequests),
        (Kind.UNAUTHORIZED, PATCH, errors.Unauthorized),
        (Kind.FORBIDDEN, PATCH, errors.Forbidden),
        (Kind.INTERNAL, PATCH, errors.UnknownOutcome),
        (Kind.UNAVAILABLE, PATCH, errors.UnknownOutcome),
        (Kind.NO_WEBHOOK, PATCH, errors.WebhookUnavailable),
        (Kind.EXPIRED, Asked("GET", VM, "continue=x", "list"), errors.Gone),
    ],
)
def test_a_refusal_is_what_it_is_named_for(kind: Kind, asked: Asked, error: type[errors.ApiError]) -> None:
    answer = refusal(kind, asked)
    found = errors.classify(answer.status, answer.body, answer.headers.get("Retry-After"))
    assert type(found) is error
    assert found.message


def test_too_many_requests_say_when_to_come_back() -> None:
    answer = refusal(Kind.TOO_MANY, PATCH)
    found = errors.classify(answer.status, answer.body, answer.headers["Retry-After"])
    assert isinstance(found, errors.TooManyRequests)
    assert found.retry_after == 1.0


def test_a_status_is_refused_by_the_name_of_its_object() -> None:
    answer = refusal(Kind.CONFLICT, Asked("PATCH", "/apis/x/virtualmachineclaims/mine/status", "", "x"))
    assert '"mine"' in orjson.loads(answer.body)["message"]


def test_an_expired_watch_ends_with_an_error_of_410() -> None:
    event = orjson.loads(expired_event())
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def test_what_is_not_answered_has_no_answer() -> None:
    with pytest.raises(KeyError):
        refusal(Kind.CUT_BEFORE, PATCH)
