"""Leader election in virtual time, over a lease with the API server's rules."""

import asyncio
import heapq
import json
import re
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from controller.kube.client import ApiClient
from controller.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound, UnknownOutcome
from controller.kube.lease import LeaderElection

pytestmark = pytest.mark.filterwarnings("error")


class Time:
    """Time that passes only when everybody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self.now + seconds, self._count, woken))
        await woken.wait()

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    async def pass_(self, seconds: float) -> None:
        end = self.now + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self.now = max(self.now, at)
            woken.set()
            await self.settle()
        self.now = end


class Server:
    """One lease, with optimistic locking. `trip` is the time of a request in virtual seconds."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.trip = 0.0
        self.broken: ApiError | None = None
        self.swallow = False  # apply, and lose the answer
        self.held: list[tuple[str, bytes | None]] | None = (
            None  # given up by who sent them, and applied later
        )
        self.writes: list[tuple[str, float]] = []

    def store(self, spec: dict[str, Any]) -> bytes:
        self.version += 1
        self.lease = {"metadata": {"resourceVersion": str(self.version)}, "spec": spec}
        self.writes.append((spec["holderIdentity"], self.time.now))
        return json.dumps(self.lease).encode()

    def answer(self, method: str, body: bytes | None) -> bytes:
        if method == "GET":
            if self.lease is None:
                raise NotFound(404)
            return json.dumps(self.lease).encode()
        obj = json.loads(body or b"{}")
        if method == "POST":
            if self.lease is not None:
                raise AlreadyExists(409)
            return self.store(obj["spec"])
        if self.lease is None:
            raise NotFound(404)
        if obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict(409)
        return self.store(obj["spec"])


class Client:
    """What a LeaderElection needs of an ApiClient; `skew` is how wrong this machine's wall clock is."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cut_off = False

    def server_time(self) -> datetime:
        return datetime.fromtimestamp(1_900_000_000 + self.server.time.now, UTC)

    async def send(self, method: str, _: str, body: bytes | None = None, **__: object) -> bytes:
        if self.server.trip:
            await self.server.time.sleep(self.server.trip)
        if self.server.held is not None and method != "GET":
            self.server.held.append((method, body))
            raise UnknownOutcome
        if self.cut_off:
            raise UnknownOutcome
        if self.server.broken is not None:
            raise self.server.broken
        answer = self.server.answer(method, body)
        if self.server.swallow and method != "GET":
            raise UnknownOutcome
        return answer


class Machine:
    """A process that wants to lead; its boot-time clock started at another time than the others'."""

    def __init__(self, server: Server, identity: str, *, booted: float = 0.0) -> None:
        self.client = Client(server)
        time = server.time
        client: ApiClient = self.client  # type: ignore[assignment]  # all that a lease needs of one
        self.election = LeaderElection(
            client, "n", "bullpen", identity, clock=lambda: time.now - booted, sleep=time.sleep
        )
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, run: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(run))
        return self.tasks[-1]

    async def run(self) -> None:
        await self.election.acquire()
        await self.election.hold()

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()

    @property
    def leads(self) -> bool:
        return self.election.time_left() > 0


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def server(time: Time) -> Server:
    return Server(time)


@pytest.fixture
def one(server: Server) -> Machine:
    return Machine(server, "one")


@pytest.fixture
def two(server: Server) -> Machine:
    return Machine(server, "two", booted=777.0)


async def lead(machine: Machine) -> asyncio.Task[None]:
    await machine.election.acquire()
    return machine.start(machine.election.hold())


async def test_a_free_lease_is_taken_at_once(server: Server, one: Machine) -> None:
    await one.election.acquire()
    assert one.election.time_left() == 15.0
    assert server.lease is not None
    spec = server.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("one", 15, 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec["renewTime"])


async def test_time_is_counted_from_before_the_request_was_sent(
    time: Time, server: Server, one: Machine
) -> None:
    server.trip = 2.0
    task = one.start(one.election.acquire())
    await time.pass_(4.0)
    await task
    assert one.election.time_left() == 13.0


async def test_a_lease_that_is_renewed_lasts(time: Time, server: Server, one: Machine) -> None:
    holding = await lead(one)
    lowest = 15.0
    for _ in range(300):
        await time.pass_(1.0)
        lowest = min(lowest, one.election.time_left())
    assert lowest >= 9.9
    assert 58 <= len(server.writes) <= 64
    holding.cancel()


async def test_the_second_one_waits_while_the_first_one_renews(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    await lead(one)
    waiting = two.start(two.election.acquire())
    await time.pass_(120.0)
    assert not waiting.done()
    assert {holder for holder, _ in server.writes} == {"one"}
    one.stop()
    two.stop()


async def test_the_second_one_takes_over_when_the_first_one_died(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    await lead(one)
    waiting = two.start(two.election.acquire())
    await time.pass_(30.0)
    one.stop()
    died = server.writes[-1][1]
    await time.pass_(14.0)
    assert not waiting.done()
    await time.pass_(4.0)
    assert waiting.done()
    assert server.writes[-1][0] == "two"
    assert 15.0 < server.writes[-1][1] - died < 18.0


async def test_a_new_one_gives_an_old_looking_lease_its_full_time(
    time: Time, server: Server, two: Machine
) -> None:
    server.store(
        {"holderIdentity": "one", "leaseDurationSeconds": 20, "renewTime": "1999-01-01T00:00:00.000000Z"}
    )
    waiting = two.start(two.election.acquire())
    await time.pass_(19.5)
    assert not waiting.done(), "the holder's wall clock says nothing"
    await time.pass_(3.0)
    assert waiting.done()


async def test_never_do_two_lead_at_once_when_the_first_one_is_cut_off(
    time: Time, one: Machine, two: Machine
) -> None:
    holding = await lead(one)
    two.start(two.run())
    await time.pass_(7.0)
    one.client.cut_off = True
    both = []
    for _ in range(400):
        await time.pass_(0.1)
        both.append(one.leads and two.leads)
    assert not any(both)
    assert two.leads
    assert holding.done()
    two.stop()


async def test_a_machine_that_slept_wakes_up_without_the_lease(time: Time, one: Machine) -> None:
    holding = await lead(one)
    await time.settle()
    time.now += 60.0  # nobody was woken meanwhile
    assert one.election.time_left() == 0.0
    await time.pass_(6.0)
    assert holding.done()
    assert not one.leads


async def test_a_released_lease_is_taken_within_two_seconds(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    holding = await lead(one)
    waiting = two.start(two.election.acquire())
    await time.pass_(33.3)
    await one.election.release()
    assert one.election.time_left() == 0.0
    await time.pass_(2.0)
    assert waiting.done()
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 2
    await time.pass_(6.0)
    assert holding.done()


async def test_a_renewal_whose_answer_was_lost_costs_nothing(
    time: Time, server: Server, one: Machine
) -> None:
    holding = await lead(one)
    await time.pass_(4.9)
    server.swallow = True
    await time.pass_(0.2)
    server.swallow = False
    assert one.election.time_left() < 10.0, "it is not known to be renewed"
    await time.pass_(2.0)
    assert one.election.time_left() > 12.0
    assert not holding.done()
    holding.cancel()


async def test_a_taking_whose_answer_was_lost_is_recognised(time: Time, server: Server, one: Machine) -> None:
    server.swallow = True
    waiting = one.start(one.election.acquire())
    await time.settle()
    server.swallow = False
    await time.pass_(1.4)
    assert waiting.done()


async def test_a_namesake_is_somebody_else(time: Time, server: Server, one: Machine) -> None:
    await lead(one)
    namesake = Machine(server, "one")
    waiting = namesake.start(namesake.election.acquire())
    await time.pass_(60.0)
    assert not waiting.done()
    namesake.stop()
    one.stop()


async def test_a_person_who_labels_the_lease_does_not_end_a_leadership(
    time: Time, server: Server, one: Machine
) -> None:
    holding = await lead(one)
    for _ in range(10):
        assert server.lease is not None
        server.version += 1
        server.lease["metadata"]["resourceVersion"] = str(server.version)
        await time.pass_(5.0)
    assert one.leads
    assert not holding.done()
    holding.cancel()


@pytest.mark.parametrize("how", ["taken", "deleted"])
async def test_a_lease_that_was_taken_away_ends_a_leadership_at_the_next_renewal(
    time: Time, server: Server, one: Machine, how: str
) -> None:
    holding = await lead(one)
    if how == "taken":
        server.store({"holderIdentity": "two", "leaseDurationSeconds": 15, "renewTime": "x"})
    else:
        server.lease = None
    await time.pass_(7.0)
    assert holding.done()
    assert not one.leads


async def test_short_troubles_do_not_end_a_leadership(time: Time, server: Server, one: Machine) -> None:
    holding = await lead(one)
    await time.pass_(4.0)
    server.broken = UnknownOutcome(503)
    await time.pass_(9.0)
    assert one.leads
    server.broken = None
    await time.pass_(2.0)
    assert one.election.time_left() > 12.0
    assert not holding.done()
    holding.cancel()


async def test_a_release_after_a_renewal_of_unknown_outcome_still_frees_the_lease(
    time: Time, server: Server, one: Machine
) -> None:
    holding = await lead(one)
    server.swallow = True
    await time.pass_(5.1)
    server.swallow = False
    holding.cancel()
    await one.election.release()
    assert server.writes[-1][0] == ""


async def test_a_release_that_fails_is_no_error(server: Server, one: Machine) -> None:
    await one.election.acquire()
    server.broken = UnknownOutcome(503)
    await one.election.release()
    await one.election.release()
    assert not one.leads


async def test_of_many_contenders_one_leads(time: Time, server: Server) -> None:
    machines = [Machine(server, f"m{number}", booted=number * 31.0) for number in range(6)]
    for machine in machines:
        machine.start(machine.election.acquire())
    await time.pass_(10.0)
    assert sum(machine.leads for machine in machines) == 1
    for machine in machines:
        machine.stop()


async def test_one_that_may_not_ask_for_the_lease_says_so_until_it_may(
    time: Time, server: Server, one: Machine
) -> None:
    assert one.election.trouble == ""
    server.broken = Forbidden(403, "Forbidden", "leases are none of your business")
    one.start(one.run())
    await time.pass_(5)
    assert "leases are none of your business" in one.election.trouble
    server.broken = None
    await time.pass_(5)
    assert one.election.trouble == ""
    assert one.leads
    one.stop()


async def test_a_standby_has_no_trouble(time: Time, one: Machine, two: Machine) -> None:
    one.start(one.run())
    await time.pass_(1)
    two.start(two.run())
    await time.pass_(5)
    assert (one.leads, two.leads) == (True, False)
    assert two.election.trouble == ""
    one.stop()
    two.stop()


async def test_a_taking_that_was_cut_off_by_a_stop_is_given_back(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    server.swallow = True  # applied; the answer never comes
    taking = one.start(one.election.acquire())
    await time.settle()
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == "one"
    taking.cancel()
    server.swallow = False
    await one.election.release()
    assert server.lease["spec"]["holderIdentity"] == ""
    waiting = two.start(two.election.acquire())
    await time.pass_(1.0)
    assert waiting.done(), "nobody waits for a lease that nobody knows to have"


async def test_a_taking_that_is_applied_after_it_was_given_up_is_recognised_and_given_back_at_a_stop(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    server.store({"holderIdentity": "", "leaseDurationSeconds": 15})
    server.held = []
    taking = one.start(one.election.acquire())
    await time.settle()
    [late], server.held = server.held, None
    real, conflicts = server.answer, 0

    def answer(method: str, body: bytes | None) -> bytes:
        nonlocal conflicts
        if method == "PUT" and not conflicts:  # the first one lands between our next look and our next try
            conflicts += 1
            real(*late)
        return real(method, body)

    server.answer = answer  # type: ignore[method-assign]
    taking.cancel()
    with pytest.raises(Conflict):
        await one.election._try_to_take()
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == "one"
    assert not one.leads
    await one.election.release()
    assert server.lease["spec"]["holderIdentity"] == ""
    waiting = two.start(two.election.acquire())
    await time.pass_(1.0)
    assert waiting.done()


async def test_a_standby_that_stops_leaves_the_leaders_lease_alone(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    await lead(one)
    waiting = two.start(two.election.acquire())
    await time.pass_(3.0)
    waiting.cancel()
    before = len(server.writes)
    await two.election.release()
    assert len(server.writes) == before
    one.stop()


async def test_one_that_lost_a_race_for_the_lease_gives_nothing_back(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    server.trip = 0.1
    one.start(one.election.acquire())
    two.start(two.election.acquire())
    await time.pass_(0.5)
    winner, loser = (one, two) if one.leads else (two, one)
    assert not loser.leads
    before = list(server.writes)
    loser.stop()
    await loser.election.release()
    assert server.writes == before
    assert winner.leads
    winner.stop()


async def test_the_first_look_is_told_whether_the_lease_was_free_or_not_or_nobody_answered(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    server.broken = UnknownOutcome(503)
    waiting = one.start(one.election.acquire())
    assert not one.election.looked.is_set()
    await time.settle()
    assert one.election.looked.is_set()
    server.broken = None
    await time.pass_(1.0)
    assert waiting.done()
    two.start(two.election.acquire())
    await time.settle()
    assert two.election.looked.is_set()
    two.stop()


async def test_a_released_lease_is_noticed_within_a_second_by_a_look_twice_a_second(
    time: Time, one: Machine, two: Machine
) -> None:
    await lead(one)
    waiting = two.start(two.election.acquire())
    await time.pass_(20.0)
    one.stop()
    await one.election.release()
    await time.pass_(0.66)
    assert waiting.done()


async def test_a_renewal_that_is_applied_long_after_it_was_given_up_costs_the_next_one_time_and_nothing_else(
    time: Time, server: Server, one: Machine, two: Machine
) -> None:
    holding = await lead(one)
    two.start(two.run())
    await time.pass_(4.0)
    one.client.cut_off = True
    await time.pass_(10.9)
    late = {**(server.lease or {})["spec"], "renewTime": "late"}
    server.store(late)  # one of those that were sent, and timed out here
    assert one.election.time_left() < 1.0
    await time.pass_(2.0)
    assert holding.done()
    both = []
    for _ in range(200):
        await time.pass_(0.1)
        both.append(one.leads and two.leads)
    assert not any(both)
    assert two.leads
    two.stop()
