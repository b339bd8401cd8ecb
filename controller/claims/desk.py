"""What all namespaces share: whether anything may be done at all, how much at once, and what is under way."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


class Desk:
    """`active` while this process leads and its lists are complete; `room`: hand-overs that may start.

    `stuck_after`: seconds after which a VM under deletion counts as one that does not go.
    `thinking`: held by what reckons beside the event loop, one at a time: it takes the loop's core.
    `led_until`: when whoever led before this process last did, in epoch seconds; 0: nobody is known of.
    `missing` is why nothing can be done to any VM: KubeVirt's kinds are not served.
    """

    def __init__(self, max_hand_overs: int) -> None:
        self.active = False
        self.stuck_after = 300.0
        self.missing = ""
        self.led_until = 0.0
        self.room = max_hand_overs
        self.thinking = asyncio.Lock()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._waiting: dict[str, Callable[[], None]] = {}

    def wait_for_room(self, namespace: str, wake: Callable[[], None]) -> None:
        """This namespace has more to hand over than there is room for; `wake` is called when there is."""
        self._waiting.setdefault(namespace, wake)

    def give_back(self) -> None:
        """A hand-over ended. Whoever waits is woken, and who was woken first is last the next time."""
        self.room += 1
        waiting, self._waiting = self._waiting, {}
        for namespace in [*waiting][1:]:
            self._waiting[namespace] = waiting[namespace]
        for wake in waiting.values():
            wake()

    def start(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        """Run a task of ours; a failure is logged and ends nothing else."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed", error=repr(error), exc_info=error)
