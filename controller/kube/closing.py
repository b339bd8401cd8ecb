"""What the event loop says of connections that were closed by the other side first.

uvloop reports it as a fatal error, with a traceback for each connection, when an API server dies whose last
bytes are still to be read. Whoever used the connection hears of it by an error of its own.
"""

import asyncio
from typing import Any

_CLOSED = "the handler is closed"


def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An exception handler for the loop: everything is told as ever, that one thing is not."""
    error = context.get("exception")
    if not (isinstance(error, RuntimeError) and _CLOSED in str(error) and "protocol" in context):
        loop.default_exception_handler(context)
