"""The soak itself: chapter after chapter, rest after each, and at the end nothing is left.

A chapter that does not come to rest ends it: what comes after would only bury what went wrong.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from random import Random

from auditor import Auditor, Rule
from crds.durations import seconds
from simulator.api import ApiError
from tests.soak.agenda import Act, Chapter, Entry, agenda
from tests.soak.court import Court, Seat
from tests.soak.farewell import namespace_gone, tables_empty
from tests.soak.flatness import SHORTEST, bounds, course, creeping, unjudged
from tests.soak.people import People
from tests.soak.summary import Summary, tally
from tests.soak.vitals import Vitals
from tests.trials.absences import kill_api_server
from tests.trials.stage import Scene, Stage, TrialError, idling

PLACES = 3  # namespaces
LEASE = "12s"  # longer than that of the trials: a lease that is lost for no reason is a finding
FAILING = ("crash-loop=0.01", "image=0.01", "hang=0.01")  # of all guests, at any time
_REST = 150.0  # seconds: brakes with their pauses, deadlines of VMs that never boot
_IDLE = 45.0  # seconds until neither controller has anything to do
_OUTAGE = (0.5, 4.0)  # seconds without an API server
_KILLS = frozenset({Act.KILL, Act.STOP, Act.FREEZE})


def flags() -> list[str]:
    """Of the stand-in: a few guests fail by themselves."""
    return [flag for share in FAILING for flag in ("--fail", share)] + ["--back-off", "1s"]


class Soak:
    """One run on a stage of its own."""

    def __init__(self, stage: Stage, auditor: Auditor, scenes: list[Scene], court: Court, seed: int) -> None:
        self.found = Summary(seed)
        self._stage = stage
        self._auditor = auditor
        self._scenes = scenes
        self._court = court
        self._acts: Counter[str] = Counter()
        self._people = [People(scene, self._acts) for scene in scenes]
        self._vitals = Vitals(court)
        self._away = asyncio.Lock()
        self._known = 0  # violations that were dealt with
        self._calm_since = 0.0

    async def run(self, chapters: list[Chapter]) -> None:
        """All of it. What went wrong is in `found.findings`."""
        began = time.monotonic()
        self._court.open()
        watching = [asyncio.create_task(work) for work in (self._court.hold(), self._vitals.watch())]
        try:
            await self._rest()
            for chapter in chapters:
                if chapter.calm and not self._calm_since:
                    self._calm_since = time.monotonic()
                await self._play(chapter)
            self._weigh()
            await self._leave()
        except (TrialError, AssertionError) as failure:
            self.found.findings.append(str(failure))
            await self._dump()
        finally:
            for task in watching:
                task.cancel()
            ended = await asyncio.gather(*watching, return_exceptions=True)
            self.found.findings += [repr(each) for each in ended if isinstance(each, Exception)]
            self._court.judge()
            self._conclude(time.monotonic() - began)

    # ---- a chapter

    async def _play(self, chapter: Chapter) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as acts:
            for entry in chapter.entries:
                await asyncio.sleep(began + entry.at - time.monotonic())
                acts.create_task(self._do(entry))
            await asyncio.sleep(began + chapter.seconds - time.monotonic())
        took, last = await self._rest(gaps=chapter.outages > 0)
        self.found.rests.append(took)
        self._stage.say(
            f"chapter {chapter.number}{' (calm)' if chapter.calm else ''}: {chapter.seconds:.0f} s, "
            f"at rest after {took:.1f} s{last}; {self._auditor.seen}"
        )

    async def _do(self, entry: Entry) -> None:
        if entry.act in _KILLS:
            await self._court.end_one(entry.act, Random(entry.seed))
        elif entry.act is Act.OUTAGE:
            await self._outage(Random(entry.seed).uniform(*_OUTAGE))
        else:
            await self._people[entry.place].do(entry)

    async def _outage(self, length: float) -> None:
        async with self._away:
            self.found.outages += 1
            self._court.excuse()
            again = await asyncio.to_thread(kill_api_server, self._stage)
            await asyncio.sleep(length)
            self._stage.plane.processes.start("apiserver", again)
            self._court.excuse()

    # ---- rest

    async def _rest(self, *, gaps: bool = False) -> tuple[float, str]:
        """Put right what people broke, and wait until the books balance; the seconds, and for what at last.

        Raises:
            TrialError: they don't, somebody spins, or the auditor has found something.
        """
        leader = await self._court.leader()
        for people in self._people:
            await people.mend()
        began = time.monotonic()
        last = [what for scene in self._scenes for what in await scene.balanced(_REST)]
        took = time.monotonic() - began
        await self._auditor.settled(30)
        for scene in self._scenes:
            await scene.balanced(0.0, soon=0.0)
        self._hear(gaps=gaps)
        await self._idle(leader)
        return took, f", at last: {'; '.join(last[:6])}" if last else ""

    def _hear(self, *, gaps: bool) -> None:
        violations = self._auditor.violations
        fresh, self._known = violations[self._known :], len(violations)
        broken = [each for each in fresh if not (gaps and each.rule is Rule.GAP)]
        self.found.gaps += len(fresh) - len(broken)
        if broken:
            raise TrialError("the auditor says: " + "; ".join(map(str, broken[:8])))

    async def _idle(self, leader: Seat) -> None:
        """Neither of them is busy, sooner or later: claims that expire just now are work, and no spinning."""
        seats = [each for each in self._court.seats if each is leader or each.free]
        deadline = time.monotonic() + _IDLE
        while busy := await _busy(seats):
            if time.monotonic() > deadline:
                raise TrialError(f"spinning at rest: {'; '.join(busy)}")

    # ---- the end

    def _weigh(self) -> None:
        """Whether what should be flat was, of those who lived through the calm."""
        lives = self._vitals.since(self._calm_since)
        self.found.findings += creeping(lives, bounds())
        if time.monotonic() - self._calm_since > 2 * SHORTEST:
            leaders = [figures for name, figures in lives.items() if self._vitals.lives[name].led]
            self.found.findings += filter(None, [unjudged(leaders, bounds())])
        for name, figures in lives.items():
            role = "leader" if self._vitals.lives[name].led else "standby"
            courses = {
                bound.figure: course(figures.get(bound.figure, ()), bound.warm_up) for bound in bounds()
            }
            self.found.vitals[f"{role}, {name}"] = {
                figure: str(each) for figure, each in courses.items() if each is not None
            }

    async def _leave(self) -> None:
        """Delete everything; nothing of ours is left on the cluster or in a controller's tables."""
        for people in self._people:
            await people.leave()
        await self._auditor.settled(30)
        self._hear(gaps=False)
        for scene in self._scenes:
            await namespace_gone(self._stage, scene.namespace)
        await tables_empty([seat.controller for seat in self._court.seats])

    async def _dump(self) -> None:
        """What was there when it went wrong, beside the logs."""
        for scene in self._scenes:
            try:
                await scene.dump(self._stage.directory / f"{scene.namespace}.json")
            except ApiError as error:
                self._stage.say(f"no dump of {scene.namespace}: {error}")

    def _conclude(self, took: float) -> None:
        found = self.found
        found.minutes = took / 60.0
        found.findings += self._court.findings
        found.acts, found.ends = dict(self._acts), dict(self._court.ends)
        found.claims = tally(
            life for scene in self._scenes for life in (*scene.crowd.past, *scene.crowd.lives.values())
        )
        found.judged = self._auditor.judged
        found.remembered = self._auditor.remembered


async def _busy(seats: list[Seat]) -> list[str]:
    """Who is, watched for a moment."""
    found = await asyncio.gather(*(idling(each.controller) for each in seats))
    return [f"{seat.name}: {idle}" for seat, idle in zip(seats, found, strict=True) if idle.spins]


@asynccontextmanager
async def _set(stage: Stage, places: int) -> AsyncIterator[tuple[Auditor, list[Scene]]]:
    """One auditor for the whole cluster, and so many namespaces."""
    mark = secrets.token_hex(3)
    async with stage.auditor(f"soak-{mark}") as auditor, AsyncExitStack() as scenes:
        entering = (stage.scene_before(auditor, f"soak-{mark}-{each}") for each in range(places))
        yield auditor, [await scenes.enter_async_context(scene) for scene in entering]


async def soak(
    stage: Stage, *, minutes: float, seed: int, places: int = PLACES, lease: str = LEASE
) -> Summary:
    """Run it; whether it passed is for the summary to say."""
    async with _set(stage, places) as (auditor, scenes):
        with ExitStack() as living:
            court = Court(lambda: scenes[0].controller(duration=lease), living, seconds(lease))
            run = Soak(stage, auditor, scenes, court, seed)
            await run.run(agenda(minutes, seed, places))
        return run.found
