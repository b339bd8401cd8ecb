import asyncio
from itertools import pairwise
from time import perf_counter

import pytest

from benchmarks.workload import Load, Served, burst, closed, open_loop, poisson


class Clerk:
    """Serves at once, and knows how many were being served at most."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.sent: list[float] = []

    async def serve(self) -> Served:
        self.now += 1
        self.most = max(self.most, self.now)
        sent = perf_counter()
        self.sent.append(sent)
        await asyncio.sleep(0)
        self.now -= 1
        return Served(sent, perf_counter(), perf_counter())


async def refuse() -> Served:
    raise ValueError("no VM")


def test_poisson_arrivals_come_in_order_and_within_the_time() -> None:
    times = poisson(50.0, 10.0, seed=1)
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < 10.0


@pytest.mark.parametrize("rate", [5.0, 100.0])
def test_poisson_arrivals_have_the_rate_that_was_asked_for(rate: float) -> None:
    count = len(poisson(rate, 400.0, seed=2))
    assert count == pytest.approx(rate * 400.0, rel=0.1)


def test_the_gaps_of_poisson_arrivals_vary_as_much_as_they_last() -> None:
    times = poisson(100.0, 200.0, seed=3)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert variance**0.5 == pytest.approx(mean, rel=0.1)


def test_the_same_seed_gives_both_sides_the_same_arrivals() -> None:
    assert poisson(20.0, 5.0, seed=7) == poisson(20.0, 5.0, seed=7)
    assert poisson(20.0, 5.0, seed=7) != poisson(20.0, 5.0, seed=8)


async def test_a_closed_loop_keeps_all_its_workers_busy_and_no_more() -> None:
    clerk = Clerk()
    load = await closed(4, clerk.serve, warm_up=0.0, seconds=0.02)
    assert clerk.most == 4
    assert load.offered == len(load.served) > 4


async def test_the_warm_up_is_not_measured() -> None:
    clerk = Clerk()
    load = await closed(1, clerk.serve, warm_up=0.02, seconds=0.02)
    early = [each for each in load.served if each.sent < load.began]
    assert early
    assert len(load.waits()) < len(load.served)


async def test_an_open_loop_sends_nobody_before_their_time() -> None:
    clerk = Clerk()
    arrivals = [0.0, 0.005, 0.005, 0.02]
    load = await open_loop(arrivals, clerk.serve)
    assert len(load.served) == 4
    for at, sent in zip(arrivals, clerk.sent, strict=True):
        assert sent >= load.began + at


async def test_an_open_loop_goes_on_while_nobody_is_served() -> None:
    door = asyncio.Event()
    waiting = 0

    async def serve() -> Served:
        nonlocal waiting
        waiting += 1
        if waiting == 3:
            door.set()  # only the last arrival opens it: a closed loop would wait for ever
        await door.wait()
        return Served(0.0, 0.0, 0.0)

    load = await open_loop([0.0, 0.001, 0.002], serve)
    assert len(load.served) == 3


async def test_a_burst_is_of_so_many_and_no_more_at_once_than_allowed() -> None:
    clerk = Clerk()
    load = await burst(10, clerk.serve, at_once=3)
    assert len(load.served) == 10
    assert clerk.most == 3
    assert load.ended >= max(each.ended for each in load.served)


async def test_a_burst_of_fewer_than_are_allowed_at_once_makes_no_more() -> None:
    load = await burst(2, Clerk().serve, at_once=64)
    assert load.offered == 2


async def test_a_claim_that_fails_is_told_and_ends_nothing() -> None:
    load = await burst(3, refuse, at_once=1)
    assert load.served == []
    assert load.failures == ["ValueError: no VM"] * 3


def test_claims_a_second_count_those_that_were_through_in_the_measured_time() -> None:
    load = Load(10.0, 12.0, [Served(9, 9.2, 9.5), Served(9.5, 9.9, 10.5), Served(11, 11.5, 12.0)])
    assert load.per_second() == 1.0


def test_hand_overs_a_second_do_not_wait_for_the_release() -> None:
    load = Load(10.0, 12.0, [Served(11, 11.5, 30.0), Served(11, 12.5, 30.0)])
    assert load.usable_per_second() == 0.5
    assert load.per_second() == 0.0


def test_a_long_wait_that_began_in_the_measured_time_is_not_left_out() -> None:
    load = Load(10.0, 12.0, [Served(9.9, 10.1, 10.2), Served(11.9, 40.0, 41.0)])
    assert load.waits() == [pytest.approx(28.1)]
