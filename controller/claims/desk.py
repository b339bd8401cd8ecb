"""What all namespaces share: whether anything may be done at all, how much at once, and what is under way."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


class Desk:
    """`active` while this process leads and its lists are complete; `room`: hand-overs that may start."""

    def __init__(self, max_hand_overs: int) -> None:
        self.active = False
        self.room = max_hand_overs
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task of ours; a failure is logged and ends nothing else."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed", error=repr(error), exc_info=error)
