"""What people do while something goes wrong: short stories, each ending in a state in which all must rest.

A story waits for what comes of each of its steps, whatever that is: with a fault on its way a claim may be
bound late, refused with a reason, or gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.faults.kinds import Fault, Kind
from tests.faults.people import People

Act = Callable[[People, str], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """A story. `warm` is the size of the pool that is there before it, 0 for none.

    `provoked` goes wrong in every run: steps that only a fault leads to. `meanwhile` happens while nobody
    leads, after a kill. Names of what it makes begin with the run's own name.
    """

    name: str
    title: str
    act: Act
    warm: int = 1
    provoked: tuple[Fault, ...] = ()
    meanwhile: Act | None = None


async def _bind(people: People, run: str) -> None:
    await people.claim(run)
    await people.until_answered(run)


async def _burst(people: People, run: str) -> None:
    names = [f"{run}-{number}" for number in range(4)]
    for name in names:
        await people.claim(name)
    await people.until_answered(*names)


async def _release(people: People, run: str) -> None:
    await _bind(people, run)
    await people.give_back(run)


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("bind", "a claim, a warm VM", _bind),
        Scenario("burst", "four claims at once, two warm VMs", _burst, warm=2),
        Scenario("release", "a bound claim is deleted", _release),
        Scenario(
            "reply-1-lost",
            "the reply to write 1 is lost, and more goes wrong",
            _bind,
            provoked=(Fault("hand-over/vm", 1, Kind.CUT_AFTER),),
        ),
        Scenario(
            "reply-2-lost",
            "the reply to write 2 is lost, and more goes wrong",
            _bind,
            provoked=(Fault("hand-over/claim", 1, Kind.CUT_AFTER),),
        ),
        Scenario(
            "dead-between",
            "killed between the two writes: repair publishes",
            _bind,
            provoked=(Fault("hand-over/vm", 1, Kind.KILL_AFTER),),
        ),
    )
}
