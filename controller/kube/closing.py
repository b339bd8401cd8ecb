"""What the event loop says of connections that are closed already.

uvloop reports a fatal error, with a traceback for each connection, when something is still read from one that
was given up: requests that timed out together, an API server that died. Whoever used it hears of it by an
error of its own.
"""

import asyncio
from typing import Any

_CLOSED = "the handler is closed"


def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An exception handler for the loop: everything is told as ever, that one thing is not."""
    error = context.get("exception")
    if not (isinstance(error, RuntimeError) and _CLOSED in str(error) and "protocol" in context):
        loop.default_exception_handler(context)
