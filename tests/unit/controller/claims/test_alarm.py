"""One timer for all claims: everything rings that was set, and nothing is kept for who is gone."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import pytest

from controller.claims import alarm
from controller.claims.alarm import Alarm

HOUR = 3600.0


class Clock:
    """An alarm whose time is what we say, and the keys that rang."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.rang: list[str] = []
        self.alarm = Alarm(lambda: self.now, self.rang.extend)

    async def until(self, at: float) -> list[str]:
        """The keys that ring up to then."""
        self.now, self.rang[:] = at, []
        self.alarm.arm(at)
        await asyncio.sleep(0.005)
        return list(self.rang)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm, "SHORTEST", 0.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_key_rings_at_its_time_and_not_before(clock: Clock) -> None:
    clock.alarm.set("claim", 1010.0)
    assert await clock.until(1005.0) == []
    assert await clock.until(1010.0) == ["claim"]
    assert await clock.until(1020.0) == []
    assert len(clock.alarm) == 0


async def test_a_later_time_does_not_take_away_an_earlier_one(clock: Clock) -> None:
    clock.alarm.set("claim", 1005.0)
    clock.alarm.set("claim", 1000.0 + HOUR)
    assert await clock.until(1005.0) == ["claim"]
    assert await clock.until(1000.0 + HOUR) == ["claim"]


async def test_the_same_time_set_again_and_again_is_one(clock: Clock) -> None:
    for _ in range(5):
        clock.alarm.set("claim", 1005.0)
        clock.alarm.set("claim", 1006.0)
    assert len(clock.alarm) == 2
    assert await clock.until(1010.0) == ["claim", "claim"]


async def test_who_is_forgotten_does_not_ring_and_others_do(clock: Clock) -> None:
    clock.alarm.set("gone", 1005.0)
    clock.alarm.set("here", 1005.0)
    clock.alarm.forget("gone")
    clock.alarm.forget("never set")
    assert await clock.until(1010.0) == ["here"]


async def test_who_is_set_after_it_was_forgotten_rings(clock: Clock) -> None:
    clock.alarm.set("claim", 1005.0)
    clock.alarm.forget("claim")
    clock.alarm.set("claim", 1007.0)
    assert await clock.until(1006.0) == []
    assert await clock.until(1007.0) == ["claim"]


def test_claims_with_long_lifetimes_that_are_given_back_soon_leave_nothing_behind(clock: Clock) -> None:
    clock.alarm.set("stays", 1000.0 + HOUR)
    for number in range(10_000):
        clock.alarm.set(f"claim-{number}", 1000.0 + 8 * HOUR)
        clock.alarm.forget(f"claim-{number}")
    assert len(clock.alarm) == 1
    assert len(clock.alarm._due) <= 2 * 1 + alarm._SLACK + 1
    assert not clock.alarm._set.keys() - {"stays"}


class _Unwalked(dict[str, set[float]]):
    """Times by key over which nobody may go."""

    def values(self) -> NoReturn:
        raise AssertionError("a walk over all keys")

    items = __iter__ = values


def test_a_key_is_forgotten_without_a_walk_over_the_others(clock: Clock) -> None:
    clock.alarm._set = _Unwalked()
    for number in range(100):
        clock.alarm.set(f"claim-{number}", 1000.0 + HOUR)
        clock.alarm.set(f"claim-{number}", 1000.0 + 2 * HOUR)
    for number in range(20):
        clock.alarm.forget(f"claim-{number}")
    assert len(clock.alarm) == 160


async def test_a_clock_that_is_set_forward_does_not_keep_it_from_ringing_for_what_is_set_then(
    clock: Clock,
) -> None:
    clock.alarm.set("long", 1000.0 + HOUR)
    clock.alarm.arm(None)
    clock.now += 2 * HOUR
    clock.alarm.set("new", clock.now)
    clock.alarm.arm(None)
    await asyncio.sleep(0.01)
    assert clock.rang == ["long", "new"]
