# ruff: noqa: N818 - they are named after the answers they stand for, as callers catch them
"""What the API server's refusals mean, and which of them say nothing about the outcome.

    ApiError
    ├── NotLeading           refused here, never sent: the lease may run out before the write would
    ├── TestFailed           422: a test of a JSON patch (or the patch itself) does not fit the object
    ├── Invalid              422 with causes: what we sent is at fault
    ├── WebhookDenied        an admission webhook or policy said no
    │   └── WebhookUnavailable   it could not be asked, and its failurePolicy is Fail: not applied
    ├── Unauthorized         401
    ├── Forbidden            403
    │   └── QuotaExceeded
    ├── NotFound             404: of this name there is no object
    ├── NotServed            404, 405: there is no such kind (any more): it says nothing about any object
    ├── AlreadyExists        409 of a create
    ├── Conflict             409: a precondition (resourceVersion, uid) does not hold
    ├── Gone                 410: a resourceVersion or continue token is too old
    ├── TooManyRequests      429: not applied; `retry_after` seconds
    ├── BadRequest           any other 4xx
    └── UnknownOutcome       5xx, a cut connection, a time-out: it may have been applied
        └── NotSent          the connection could not be opened: it was not

`retry` says whether sending the very same request again later can be right without deciding anew.
`condition_reason` is the reason that a condition shows when this error ends an attempt.
Nothing here decides what to do about an error.
"""

from http import HTTPStatus
from typing import Any, ClassVar

import msgspec


class ApiError(Exception):
    """A request that did not succeed; `status` is the HTTP status, 0 if there was no answer."""

    retry: ClassVar[bool] = False
    condition_reason: ClassVar[str] = "ApiError"

    def __init__(
        self, status: int = 0, reason: str = "", message: str = "", details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}

    def __str__(self) -> str:
        return f"{self.message or self.reason or 'no answer'} ({self.status or type(self).__name__})"


class NotLeading(ApiError):
    condition_reason = "NotLeading"


class TestFailed(ApiError):
    condition_reason = "Changed"
    __test__ = False  # pytest would take the name for a test class


class Invalid(ApiError):
    condition_reason = "Invalid"


class WebhookDenied(ApiError):
    condition_reason = "WebhookDenied"


class WebhookUnavailable(WebhookDenied):
    retry = True
    condition_reason = "WebhookUnavailable"


class Unauthorized(ApiError):
    retry = True  # the token may just have been rotated
    condition_reason = "Unauthorized"


class Forbidden(ApiError):
    condition_reason = "Forbidden"


class QuotaExceeded(Forbidden):
    retry = True
    condition_reason = "QuotaExceeded"


class NotFound(ApiError):
    condition_reason = "NotFound"


class NotServed(ApiError):
    """No such kind: its definition is missing or on its way out. It says nothing about any object."""

    condition_reason = "NotServed"


class AlreadyExists(ApiError):
    condition_reason = "AlreadyExists"


class Conflict(ApiError):
    condition_reason = "Conflict"

    @property
    def another_has_the_name(self) -> bool:
        """The precondition on the UID failed: what was meant is gone. Any other conflict passes."""
        return "UID in" in self.message


class Gone(ApiError):
    condition_reason = "Gone"


class BadRequest(ApiError):
    condition_reason = "BadRequest"


class TooManyRequests(ApiError):
    """Not applied; `retry_after` is in seconds."""

    retry = True
    condition_reason = "TooManyRequests"

    def __init__(
        self,
        status: int = HTTPStatus.TOO_MANY_REQUESTS,
        reason: str = "TooManyRequests",
        message: str = "",
        details: dict[str, Any] | None = None,
        *,
        retry_after: float = 1.0,
    ) -> None:
        super().__init__(status, reason, message, details)
        self.retry_after = retry_after


class UnknownOutcome(ApiError):
    retry = True
    condition_reason = "ApiServerUnavailable"


class NotSent(UnknownOutcome):
    condition_reason = "ApiServerUnreachable"


class _Status(msgspec.Struct):
    message: str | None = None
    reason: str | None = None
    details: dict[str, Any] | None = None


_STATUS = msgspec.json.Decoder(_Status)


def classify(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error for an answer of 400 or above; `retry_after` is the header of that name."""
    try:
        answer = _STATUS.decode(body)
    except msgspec.MsgspecError:  # not from the API server itself, or cut: keep what is readable
        answer = _Status(message=body[:500].decode(errors="replace").strip())
    reason, message, details = answer.reason or "", answer.message or "", answer.details or {}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        delay = _seconds(retry_after, details)
        return TooManyRequests(status, reason, message, details, retry_after=delay)
    return _kind(status, reason, message, details)(status, reason, message, details)


def _kind(status: int, reason: str, message: str, details: dict[str, Any]) -> type[ApiError]:
    rules: tuple[tuple[bool, type[ApiError]], ...] = (  # the first one that holds counts
        ("failed calling webhook" in message, WebhookUnavailable),  # a 500, but before storage: not applied
        (_is_denial(message), WebhookDenied),  # whatever its code: a webhook chooses it
        (status >= HTTPStatus.INTERNAL_SERVER_ERROR, UnknownOutcome),
        (status == HTTPStatus.UNPROCESSABLE_ENTITY and bool(details.get("causes")), Invalid),
        (status == HTTPStatus.UNPROCESSABLE_ENTITY, TestFailed),
        (status == HTTPStatus.CONFLICT and reason == "AlreadyExists", AlreadyExists),
        (status == HTTPStatus.CONFLICT, Conflict),
        (status == HTTPStatus.FORBIDDEN and _is_about_quota(message), QuotaExceeded),
        (status == HTTPStatus.FORBIDDEN, Forbidden),
        (status == HTTPStatus.UNAUTHORIZED, Unauthorized),
        (status == HTTPStatus.NOT_FOUND and reason == "NotFound", NotFound),
        (status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}, NotServed),
        (status == HTTPStatus.GONE, Gone),
        (True, BadRequest),
    )
    return next(kind for holds, kind in rules if holds)


def _is_about_quota(message: str) -> bool:
    """Used up, or not counted yet: a new quota, or a kind that the quota controller has just learned of."""
    return "exceeded quota" in message or "status unknown for quota" in message


def _is_denial(message: str) -> bool:
    webhook = message.startswith("admission webhook ") and " denied the request" in message
    policy = "ValidatingAdmissionPolicy '" in message and " denied request" in message
    return webhook or policy


def _seconds(header: str | None, details: dict[str, Any]) -> float:
    for value in (header, details.get("retryAfterSeconds")):
        try:
            return max(0.0, float(value))  # type: ignore[arg-type]  # None and dates end in the except
        except (TypeError, ValueError):
            continue
    return 1.0
