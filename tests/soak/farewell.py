"""What must be left when everything was deleted: no namespace, and no entry in a controller's tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from simulator.api import ApiError
from tests.soak.vitals import held
from tests.support.controller import Controller
from tests.trials.stage import Stage, TrialError, scrape

_GONE = 120.0  # seconds for a namespace to be removed
_FORGOTTEN = 30.0  # seconds for a controller to hear of it


async def namespace_gone(stage: Stage, name: str) -> None:
    """Delete it and wait: a finalizer of ours that is left anywhere keeps it.

    Raises:
        TrialError: it stays.
    """
    path = f"/api/v1/namespaces/{name}"
    await stage.api.delete(path)
    deadline = time.monotonic() + _GONE
    while time.monotonic() < deadline:
        try:
            await stage.api.get(path)
        except ApiError as error:
            if error.status == 404:
                return
            raise
        await asyncio.sleep(0.5)
    raise TrialError(f"namespace {name} is not gone {_GONE:g} s after its deletion")


async def tables_empty(controllers: Iterable[Controller]) -> None:
    """Wait until nobody remembers anything.

    Raises:
        TrialError: somebody does; the text says in which tables.
    """
    there = list(controllers)
    deadline = time.monotonic() + _FORGOTTEN
    while left := [tables for each in there if (tables := await _left(each))]:
        if time.monotonic() > deadline:
            raise TrialError(f"controllers remember what is gone: {left}")
        await asyncio.sleep(1.0)


async def _left(controller: Controller) -> dict[str, float]:
    tables = held(await asyncio.to_thread(scrape, controller.listen))
    return {table: number for table, number in tables.items() if number}
