"""A connection that is closed already is no error of the loop; everything else is told."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from controller.kube.closing import report

# As uvloop said it when an API server stalled and requests timed out together.
CLOSED: dict[str, Any] = {
    "message": "Fatal error on SSL protocol",
    "exception": RuntimeError(
        "unable to perform operation on <TCPTransport closed=True reading=False 0x56546d640ba0>; "
        "the handler is closed"
    ),
    "protocol": "<uvloop.loop.SSLProtocol object>",
    "transport": "<TCPTransport closed=True>",
}


def told(context: dict[str, Any]) -> bool:
    loop = Mock(spec=asyncio.AbstractEventLoop)
    report(loop, context)
    return bool(loop.default_exception_handler.called)


def test_a_connection_that_is_closed_already_is_not_told() -> None:
    assert not told(CLOSED)


@pytest.mark.parametrize(
    "context",
    [
        pytest.param({**CLOSED, "exception": RuntimeError("something else")}, id="another error"),
        pytest.param({**CLOSED, "exception": ValueError("the handler is closed")}, id="of another kind"),
        pytest.param({"message": "x", "exception": CLOSED["exception"]}, id="of no connection"),
        pytest.param({"message": "Task was destroyed but it is pending!"}, id="no exception"),
    ],
)
def test_everything_else_is(context: dict[str, Any]) -> None:
    assert told(context)
