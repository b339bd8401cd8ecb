"""Two controllers: one leads, one stands by, and whoever ends is followed by a new one.

It knows why a controller may end. One that ends for no reason, or says something alarming, is a finding.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from tests.soak.agenda import Act
from tests.soak.logs import complaints
from tests.support.controller import Controller
from tests.trials.stage import TrialError, scrape

SEATS = 2
LOST_LEASE = 3  # the exit code of a controller that has lost its lease
_LOOK = 0.2  # seconds
_FROZEN = (1.2, 2.0)  # times the lease
_PATIENCE = 60.0  # seconds until somebody leads
_EXCUSE = 3.0  # times the lease, after an outage in which it may be lost


class Ending(StrEnum):
    """Why a controller ended."""

    MADE_TO = "made to"
    IN_AN_OUTAGE = "lease lost in an outage"
    FOR_NO_REASON = "for no reason"


def judged(code: int | None, expected: Collection[int], *, excused: bool, begun: bool = True) -> Ending:
    """By its exit code, those that were to be expected of it, and whether the API server was away just now.

    What was done to it does not excuse another code: one that is told to stop and crashes is a finding.
    Before it has said a word, it is Python that is told to stop.
    """
    if code == -signal.SIGTERM and not begun:
        code = 0
    if code in expected:
        return Ending.MADE_TO
    return Ending.IN_AN_OUTAGE if excused and code == LOST_LEASE else Ending.FOR_NO_REASON


@dataclass
class Seat:
    """One running controller and the exit codes by which it may end."""

    controller: Controller
    name: str
    since: float = field(default_factory=time.monotonic)
    expected: set[int] = field(default_factory=set)
    frozen: bool = False

    @property
    def free(self) -> bool:
        """Whether nobody has done anything to it yet."""
        return not self.expected and self.controller.process.poll() is None


class Court:
    """`start` gives a context with a new controller on a lease of so many seconds; `ends` counts ends."""

    def __init__(
        self, start: Callable[[], AbstractContextManager[Controller]], living: ExitStack, lease: float
    ) -> None:
        self.ends: Counter[str] = Counter()
        self.findings: list[str] = []
        self.seats: list[Seat] = []
        self._start = start
        self._living = living
        self._lease = lease
        self._number = 0
        self._excused_until = 0.0

    def open(self) -> None:
        while len(self.seats) < SEATS:
            self._number += 1
            self.seats.append(Seat(self._living.enter_context(self._start()), f"controller {self._number}"))

    async def hold(self) -> None:
        """For ever: let nobody's seat be empty."""
        while True:
            for seat in [each for each in self.seats if each.controller.process.poll() is not None]:
                self._ended(seat)
            self.open()
            await asyncio.sleep(_LOOK)

    def excuse(self) -> None:
        """The API server is away: for a while a lease may be lost."""
        self._excused_until = time.monotonic() + _EXCUSE * self._lease

    async def end_one(self, how: Act, random: Random) -> None:
        """Do this to one of them that nothing was done to."""
        seats = [each for each in self.seats if each.free]
        if not seats:
            return
        seat = random.choice(seats)
        self.ends[how.value] += 1
        process = seat.controller.process
        match how:
            case Act.KILL:
                seat.expected = {-signal.SIGKILL}
                process.kill()
            case Act.STOP:
                seat.expected = {0}
                process.send_signal(signal.SIGTERM)
            case _:
                await self._freeze(seat, random.uniform(*_FROZEN) * self._lease)

    async def _freeze(self, seat: Seat, length: float) -> None:
        """A leader ends when it wakes up; one that stood by goes on."""
        seat.expected, seat.frozen = {LOST_LEASE}, True
        seat.controller.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(length)
        seat.controller.process.send_signal(signal.SIGCONT)
        seat.frozen = False
        await asyncio.sleep(self._lease)
        seat.expected = set() if seat.controller.process.poll() is None else seat.expected

    async def leader(self) -> Seat:
        """Wait until one of them leads and has read the cluster.

        Raises:
            TrialError: nobody does.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            for seat in self.seats:
                if seat.free and '"event": "ready"' in seat.controller.said and await _leads(seat.controller):
                    return seat
            if time.monotonic() > deadline:
                raise TrialError(f"nobody leads after {_PATIENCE:g} s")
            await asyncio.sleep(_LOOK)

    def judge(self) -> None:
        """Read the logs of those who are there."""
        for seat in self.seats:
            self._read(seat)

    def _ended(self, seat: Seat) -> None:
        self.seats.remove(seat)
        code = seat.controller.process.poll()
        excused = time.monotonic() < self._excused_until
        match judged(code, seat.expected, excused=excused, begun=bool(seat.controller.said)):
            case Ending.FOR_NO_REASON:
                self.findings.append(f"{seat.name} ended with {code}: {seat.controller.said[-1000:]}")
            case Ending.IN_AN_OUTAGE:
                self.ends[Ending.IN_AN_OUTAGE.value] += 1
        self._read(seat, lost_its_lease=code == LOST_LEASE)

    def _read(self, seat: Seat, *, lost_its_lease: bool = False) -> None:
        said = complaints(seat.controller.said, lost_its_lease=lost_its_lease)
        self.findings += [f"{seat.name} ({seat.controller.log.name}) said: {line[:600]}" for line in said]


async def _leads(controller: Controller) -> bool:
    try:
        text = await asyncio.to_thread(scrape, controller.listen)
    except OSError:
        return False
    return "bullpen_leading 1.0" in text
