"""Refusals word for word as the API server gives them; a test compares them with a real one's.

Only what the controller reads is as it would be there; names and UIDs are those of the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson

from tests.faults.addresses import Asked, Nature
from tests.faults.kinds import Kind

RETRY_AFTER = 1  # seconds
_TEST_FAILED = "the server rejected our request due to an error in our request"
_TOO_MANY = "too many requests, please try again later"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer: its status, its body as JSON, and headers beside the usual ones."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(kind: Kind, asked: Asked) -> Refusal:
    """What the API server answers when this goes wrong with that request.

    Raises:
        KeyError: it is no fault that is answered.
    """
    code, reason, message, details = _WORDS[kind](asked)
    headers = {"Retry-After": str(RETRY_AFTER)} if kind is Kind.TOO_MANY else {}
    return Refusal(code, orjson.dumps(status(code, reason, message, details)), headers)


def status(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """A v1 Status object."""
    found = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return {**found, "reason": reason, "details": details or {}, "code": code}


def expired_event(version: str = "1") -> bytes:
    """The last line of a watch that can't go on."""
    message = f"too old resource version: {version} (2)"
    return orjson.dumps({"type": "ERROR", "object": status(HTTPStatus.GONE, "Expired", message)})


Words = tuple[int, str, str, dict[str, Any] | None]


def _name(asked: Asked) -> str:
    return asked.path.removesuffix("/status").rstrip("/").rsplit("/", 1)[-1]


def _conflict(asked: Asked) -> Words:
    name = _name(asked)
    if asked.nature is Nature.CREATE:
        return (
            HTTPStatus.CONFLICT,
            "AlreadyExists",
            f'virtualmachines "{name}" already exists',
            {"name": name},
        )
    message = (
        f'Operation cannot be fulfilled on virtualmachines "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return HTTPStatus.CONFLICT, "Conflict", message, {"name": name}


def _invalid(asked: Asked) -> Words:
    what = "metadata.labels: Invalid value"
    cause = {"reason": "FieldValueInvalid", "message": "Invalid value: refused", "field": "metadata.labels"}
    message = f'VirtualMachine.kubevirt.io "{_name(asked)}" is invalid: {what}: refused'
    return HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, {"name": _name(asked), "causes": [cause]}


def _forbidden(asked: Asked) -> Words:
    verb = asked.method.lower()
    message = f'virtualmachines "{_name(asked)}" is forbidden: User "bullpen" cannot {verb} resource'
    return HTTPStatus.FORBIDDEN, "Forbidden", message, {"name": _name(asked)}


def _no_webhook(_: Asked) -> Words:
    message = (
        'Internal error occurred: failed calling webhook "virtualmachine-validator.kubevirt.io": '
        "failed to call webhook: context deadline exceeded"
    )
    return HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message, {"causes": [{"message": message}]}


def _always(code: int, reason: str, message: str) -> Any:
    def words(_: Asked) -> Words:
        return code, reason, message, None

    return words


_WORDS = {
    Kind.CONFLICT: _conflict,
    Kind.TEST_FAILED: _always(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", _TEST_FAILED),
    Kind.INVALID: _invalid,
    Kind.TOO_MANY: _always(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", _TOO_MANY),
    Kind.UNAUTHORIZED: _always(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized"),
    Kind.FORBIDDEN: _forbidden,
    Kind.INTERNAL: _always(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", "Internal error occurred"),
    Kind.NO_WEBHOOK: _no_webhook,
    Kind.UNAVAILABLE: _always(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", "not ready"),
    Kind.EXPIRED: _always(HTTPStatus.GONE, "Expired", "The provided continue parameter is too old"),
}
