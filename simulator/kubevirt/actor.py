"""One VM's actor: sees, plans, plays a script, and looks again; it has a task only while there is work.

Must never die of an odd object, and never loop without either a change or a pause.
"""

import asyncio
import logging
from collections.abc import Callable
from random import uniform
from typing import Final

from simulator.api import ApiError
from simulator.kubevirt.hands import CreateRefusedError, Hands, OffCourseError
from simulator.kubevirt.planner import Plan, Planner
from simulator.kubevirt.script import due
from simulator.kubevirt.sight import Sight

log = logging.getLogger(__name__)
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0


class Actor:
    """`on_idle` is called whenever its task has ended."""

    __slots__ = ("_hands", "_on_idle", "_pause", "_planner", "_wake", "sight", "task")

    def __init__(
        self, sight: Sight, planner: Planner, hands: Hands, on_idle: Callable[["Actor"], None]
    ) -> None:
        self.sight = sight
        self.task: asyncio.Task[None] | None = None
        self._planner = planner
        self._hands = hands
        self._on_idle = on_idle
        self._wake: asyncio.Future[None] | None = None
        self._pause = _FIRST_PAUSE

    def poke(self) -> None:
        """Something was seen: wake the script that runs, or begin one."""
        if self._wake is not None:
            _set(self._wake)
        elif self.task is None and (plan := self._plan()) is not None:
            self.task = asyncio.get_running_loop().create_task(self._run(plan))

    async def _run(self, plan: Plan | None) -> None:
        try:
            while plan is not None:
                before = self.sight.versions
                await self._attempt(plan)
                if self.sight.versions != before:
                    self._pause = _FIRST_PAUSE
                else:
                    await self._hold()
                plan = self._plan()
        finally:
            self.task = None
            self.sight.raw = None
            self._on_idle(self)

    def _plan(self) -> Plan | None:
        try:
            return self._planner.plan(asyncio.get_running_loop().time())
        except Exception:
            log.exception("%s: left alone until it changes", self.sight)
            return None

    async def _attempt(self, plan: Plan) -> None:
        try:
            await self._play(plan)
        except OffCourseError:
            pass
        except CreateRefusedError as refusal:
            now = asyncio.get_running_loop().time()
            told = self._planner.refused(plan, str(refusal), now)
            if told is not None:
                await self._attempt(told)
        except ApiError as error:
            log.debug("%s: %s", self.sight, error)
            await self._hold()
            await self._hands.refresh(self.sight)
        except Exception:
            log.exception("%s: going on after a pause", self.sight)
            self._pause = _LONGEST_PAUSE
            await self._hold()

    async def _hold(self) -> None:
        """Nothing came of what we did: wait, longer each time."""
        await asyncio.sleep(self._pause * uniform(0.5, 1.0))
        self._pause = min(_LONGEST_PAUSE, self._pause * 2)

    async def _play(self, plan: Plan) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        index = 0
        while index < len(plan.script):
            if not await self._wait_until(begin + plan.script[index].at, plan):
                return
            index = due(plan.script, index, loop.time() - begin)
            await self._hands.perform(plan.script[index], self.sight)
            index += 1
        self._planner.played(plan, loop.time())

    async def _wait_until(self, moment: float, plan: Plan) -> bool:
        """Wait, but not past the point where the script has lost its ground."""
        loop = asyncio.get_running_loop()
        while self._planner.holds(plan):
            if loop.time() >= moment:
                return True
            self._wake = loop.create_future()
            timer = loop.call_at(moment, _set, self._wake)
            try:
                await self._wake
            finally:
                timer.cancel()
                self._wake = None
        return False


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
