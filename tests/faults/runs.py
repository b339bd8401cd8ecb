"""One run: a scenario with its faults in a lane, and whether all was well afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from simulator.api import ApiError
from tests.faults.addresses import Nature
from tests.faults.kinds import LANDING_LAST, Fault
from tests.faults.lane import Lane
from tests.faults.ledger import Ledger
from tests.faults.people import PATIENCE, People
from tests.faults.scenarios import Scenario

_ACT = 120.0  # seconds for a whole story
_SETTLE = 30.0


@dataclass(frozen=True)
class Run:
    """What is to be tried: `faults` beside those that the scenario provokes by itself."""

    scenario: str
    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        return f"{self.scenario}: {', '.join(map(str, self.faults)) or 'undisturbed'}"


@dataclass(frozen=True)
class Report:
    """What came of it. `failure` is empty when all was well; `undisturbed` counts up to the last fault."""

    run: Run
    fired: tuple[Fault, ...]
    came: Mapping[str, int]
    undisturbed: Mapping[str, int]
    natures: Mapping[str, Nature]
    took: float
    rested: float
    restarts: int = 0
    errors: tuple[str, ...] = field(default=())
    failure: str = ""

    @property
    def all_fired(self) -> bool:
        return set(self.run.faults) <= set(self.fired)


async def perform(lane: Lane, scenario: Scenario, run: Run, number: int) -> Report:
    """Do it, wait for rest, judge. Never raises for what the controller did: that is the report's failure."""
    name = f"{scenario.name}-{number}"
    people, ledger = lane.people, Ledger(run.faults, scenario.provoked)
    restarts, began = lane.restarts, monotonic()
    before = len(lane.auditor.violations)
    lane.proxy.ledger = ledger
    acted, failure = began, ""
    if scenario.meanwhile is not None:
        act = scenario.meanwhile
        lane.while_nobody_leads = lambda: act(people, name)
    try:
        async with asyncio.timeout(_ACT):
            await scenario.act(people, name)
            acted = monotonic()
            await _rest(lane, ledger, before)
    except (AssertionError, ApiError, TimeoutError) as error:
        failure = str(error) or type(error).__name__
    return Report(
        run,
        tuple(ledger.fired),
        dict(ledger.came),
        dict(ledger.undisturbed),
        dict(ledger.natures),
        monotonic() - began,
        monotonic() - acted,
        lane.restarts - restarts,
        tuple(lane.complaints),
        failure,
    )


async def _rest(lane: Lane, ledger: Ledger, before: int) -> None:
    """All comes to rest, and the auditor has nothing to say. Raises AssertionError."""
    people = lane.people
    await lane.alive()
    if any(each.kind in LANDING_LAST for each in ledger.fired):
        await people.until_rest()
        await people.give_all_back()
        await lane.proxy.land()
    deadline = monotonic() + PATIENCE
    while True:
        await people.until_rest()
        await lane.alive()
        found = (await lane.auditor.settled(_SETTLE))[before:]
        assert not found, "the auditor says: " + "; ".join(map(str, found[:6]))
        if not (left := await people.unrest()):
            return
        # A pool's status may be a second old: it said so before it had seen what was done last.
        assert monotonic() < deadline, f"at rest, and then not any more: {'; '.join(left[:6])}"


async def prepare(lane: Lane, scenario: Scenario) -> None:
    """Before a scenario's first run, and between two: no claims, and the pool as the scenario wants it."""
    people: People = lane.people
    lane.proxy.ledger = Ledger()
    lane.while_nobody_leads = None
    await people.give_all_back()
    for name in [name for name in people.warm if name != "pool"]:
        await people.delete_pool(name)
    if scenario.warm and "pool" not in people.warm:
        await people.make_pool("pool", scenario.warm)
    elif "pool" in people.warm and not scenario.warm:
        await people.delete_pool("pool")
    elif scenario.warm and people.warm["pool"] != scenario.warm:
        await people.scale(scenario.warm)
    await people.until_rest()
