"""Why a command could not do its work, in a sentence: never a traceback, and an exit code of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import aiohttp
import typer

from auditor.cluster import NoClusterError
from auditor.connection import Refused
from auditor.events import NoEventError
from auditor.looking import NoSuchNamespaceError

COULD_NOT_LOOK = 3
"""Exit code. 0 and 1 are verdicts, 2 is a wrong option."""


class CouldNotLookError(Exception):
    """Why, in a sentence that says what to do."""


@contextmanager
def told(server: str = "the API server") -> Iterator[None]:
    """What goes wrong in the block is said on standard error and ends the command."""
    try:
        yield
    except (
        NoClusterError,
        NoSuchNamespaceError,
        Refused,
        aiohttp.ClientError,
        OSError,
        NoEventError,
        CouldNotLookError,
    ) as error:
        typer.echo(f"could not look: {sentence(error, server)}", err=True)
        raise typer.Exit(COULD_NOT_LOOK) from error


def sentence(error: Exception, server: str) -> str:
    """What it means, and what to do."""
    match error:
        case Refused(status=HTTPStatus.UNAUTHORIZED):
            return f"{server} does not know who you are: log in anew, or choose another --context"
        case Refused(status=HTTPStatus.FORBIDDEN):
            return f"{error.message}; docs/audit.md lists the rights that are needed, all of them to read"
        case Refused(status=HTTPStatus.NOT_FOUND):
            return f"{server} does not know {error.what}: are Bullpen's definitions and KubeVirt installed?"
        case Refused():
            return f"{server} answered {error}"
        case aiohttp.ClientConnectorError():
            why = os.strerror(error.os_error.errno) if error.os_error.errno else str(error)
            return f"{server} can't be reached: {why}"
        case TimeoutError():
            return f"{server} did not answer in time"
        case OSError(strerror=str(why), filename=str(name)):
            return f"{name}: {why.lower()}"
        case _:
            return str(error) or type(error).__name__
