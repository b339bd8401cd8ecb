import json
from typing import Any

import pytest

from controller.kube import errors
from controller.kube.errors import ApiError, TooManyRequests, classify

PATCH_REFUSED = "the server rejected our request due to an error in our request"


def status(reason: str, message: str, details: dict[str, Any] | None = None) -> bytes:
    return json.dumps(
        {"kind": "Status", "reason": reason, "message": message, "details": details or {}}
    ).encode()


CASES: list[tuple[str, int, bytes, type[ApiError]]] = [
    ("a failed test of a JSON patch", 422, status("Invalid", PATCH_REFUSED), errors.TestFailed),
    (
        "a value the schema refuses",
        422,
        status("Invalid", "spec.x: Required value", {"causes": [{"field": "spec.x"}]}),
        errors.Invalid,
    ),
    (
        "a webhook's denial",
        403,
        status("Forbidden", 'admission webhook "w.x" denied the request: no'),
        errors.WebhookDenied,
    ),
    (
        "a webhook's denial with a code of its own and causes",
        422,
        status(
            "Invalid", 'admission webhook "w.x" denied the request: spec.y', {"causes": [{"field": "spec.y"}]}
        ),
        errors.WebhookDenied,
    ),
    (
        "a webhook's denial that pretends to be an error inside",
        500,
        status("InternalError", 'admission webhook "w.x" denied the request: no'),
        errors.WebhookDenied,
    ),
    (
        "an admission policy's denial",
        422,
        status(
            "Invalid",
            "things \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
        ),
        errors.WebhookDenied,
    ),
    (
        "a webhook that cannot be reached",
        500,
        status("InternalError", 'Internal error occurred: failed calling webhook "w.x": refused'),
        errors.WebhookUnavailable,
    ),
    (
        "a used-up quota",
        403,
        status("Forbidden", 'pods "a" is forbidden: exceeded quota: q, requested: x'),
        errors.QuotaExceeded,
    ),
    (
        "a quota that nobody has counted yet",
        403,
        status("Forbidden", 'vm "a" is forbidden: status unknown for quota: q, resources: x'),
        errors.QuotaExceeded,
    ),
    ("a missing permission", 403, status("Forbidden", 'user "x" cannot list'), errors.Forbidden),
    ("a name in use", 409, status("AlreadyExists", 'things "a" already exists'), errors.AlreadyExists),
    ("a failed precondition", 409, status("Conflict", "Precondition failed: UID"), errors.Conflict),
    ("an old version", 410, status("Expired", "too old resource version"), errors.Gone),
    ("a missing object", 404, status("NotFound", 'things "a" not found'), errors.NotFound),
    ("a kind that is not there", 404, b"404 page not found\n", errors.NotServed),
    ("a kind that is being removed", 405, status("MethodNotAllowed", "create not allowed"), errors.NotServed),
    ("a rotated token", 401, status("Unauthorized", "Unauthorized"), errors.Unauthorized),
    ("a body that is no JSON", 400, status("BadRequest", "decode failed"), errors.BadRequest),
    ("a body that is too large", 413, status("RequestEntityTooLarge", "limit"), errors.BadRequest),
    ("a deadline that passed", 504, status("Timeout", "request timed out"), errors.UnknownOutcome),
    ("an error inside", 500, status("InternalError", "etcdserver: leader changed"), errors.UnknownOutcome),
    ("a balancer without a back end", 503, b"<html>no server</html>", errors.UnknownOutcome),
]


@pytest.mark.parametrize(
    ("code", "body", "kind"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_an_answer_gets_the_class_that_says_what_it_means(
    code: int, body: bytes, kind: type[ApiError]
) -> None:
    error = classify(code, body)
    assert type(error) is kind
    assert error.status == code
    assert str(error)


def test_what_a_webhook_says_reaches_the_reader_whole() -> None:
    said = 'admission webhook "w.x" denied the request: spec.template is odd'
    error = classify(400, status("BadRequest", said))
    assert error.message == said
    assert said in str(error)


def test_the_causes_of_an_invalid_object_are_kept() -> None:
    causes = [{"field": "metadata.labels", "message": "must be no more than 63 characters"}]
    assert classify(422, status("Invalid", "m", {"causes": causes})).details["causes"] == causes


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("3", {}, 3.0),
        (None, {"retryAfterSeconds": 7}, 7.0),
        (None, {}, 1.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", {}, 1.0),
        ("-4", {}, 0.0),
    ],
)
def test_too_many_requests_says_when_to_come_back(
    header: str | None, details: dict[str, Any], seconds: float
) -> None:
    error = classify(429, status("TooManyRequests", "m", details), header)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == seconds


def tree(kind: type[ApiError]) -> list[type[ApiError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in tree(below))]


@pytest.mark.parametrize("kind", tree(ApiError)[1:])
def test_every_error_is_drawn_in_the_tree_and_has_a_reason_of_its_own(kind: type[ApiError]) -> None:
    assert f"── {kind.__name__}" in (errors.__doc__ or "")
    others = {other.condition_reason for other in tree(ApiError) if other is not kind}
    assert kind.condition_reason not in others


def test_only_what_is_known_not_to_need_a_new_decision_may_be_repeated_as_it_is() -> None:
    repeatable = {kind.__name__ for kind in tree(ApiError) if kind.retry}
    assert repeatable == {
        "NotSent",
        "QuotaExceeded",
        "TooManyRequests",
        "Unauthorized",
        "UnknownOutcome",
        "WebhookUnavailable",
    }


def test_an_answer_that_is_no_status_reads_well_in_a_sentence() -> None:
    assert str(errors.classify(404, b"404 page not found\n")) == "404 page not found (404)"
