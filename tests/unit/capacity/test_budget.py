from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from capacity.budget import Piece, allowance


@dataclass(frozen=True)
class Poisson:
    """An hour in which so many claims come, and so many orders are outstanding on average."""

    rate_per_hour: float
    outstanding: float

    def tail(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(k > 0, special.gammainc(np.maximum(k, 1), self.outstanding), 1.0)


QUIET, BUSY = Poisson(2, 0.02), Poisson(600, 5)


def idle(demand: Poisson | None, units: int) -> float:
    """Unit-hours an hour in which so many units stand idle."""
    return float(units if demand is None else (1 - demand.tail(np.arange(1, units + 1))).sum())


def served(demand: Poisson, units: int) -> float:
    """Claims an hour that find one of so many units ready."""
    return demand.rate_per_hour * float(1 - demand.tail(np.array([units]))[0])


def test_a_budget_that_suffices_cuts_nothing() -> None:
    day = [Piece(1, 12, BUSY), Piece(1, 3, QUIET)]
    cost = idle(BUSY, 12) + idle(QUIET, 3)
    assert allowance(day, left=100, floor=1) == 12
    assert allowance(day, left=cost + 1e-9, floor=1) == 12
    assert allowance(day, left=cost - 1e-3, floor=1) <= 12


def test_the_floor_is_kept_even_of_nothing() -> None:
    for left in (-50.0, 0.0, 0.5):
        assert allowance([Piece(1, 12, BUSY), Piece(8, 3, QUIET)], left=left, floor=2) == 2


def test_without_a_measured_demand_the_units_are_spread_evenly() -> None:
    day = [Piece(1, 20) for _ in range(24)]
    assert allowance(day, left=240, floor=0) == 10
    assert allowance(day, left=239, floor=0) == 9
    assert allowance(day, left=240, floor=4) == 10
    assert allowance(day, left=480, floor=0) == 20


def test_hours_that_ask_for_less_leave_their_share_to_the_others() -> None:
    day = [Piece(1, 20) for _ in range(10)] + [Piece(1, 2) for _ in range(14)]
    assert allowance(day, left=10 * 15 + 14 * 2, floor=0) == 15


def test_a_short_piece_costs_little() -> None:
    assert allowance([Piece(0.5, 30), Piece(1, 0)], left=10, floor=0) == 20


def test_busy_hours_get_units_before_quiet_ones() -> None:
    left = 8.0
    now_busy = [Piece(1, 12, BUSY), *(Piece(1, 12, QUIET) for _ in range(7))]
    now_quiet = [Piece(1, 12, QUIET), Piece(1, 12, BUSY), *(Piece(1, 12, QUIET) for _ in range(6))]
    assert allowance(now_busy, left=left, floor=0) > allowance(now_quiet, left=left, floor=0)


def test_hours_in_which_nobody_comes_get_nothing_but_the_floor() -> None:
    nobody = Poisson(0, 0)
    assert allowance([Piece(1, 9, nobody), Piece(1, 9, BUSY)], left=6, floor=1) == 1


def test_it_is_as_good_as_every_way_of_dividing_that_costs_no_more() -> None:
    hours = [Poisson(60, 0.5), Poisson(300, 2.5), Poisson(5, 0.05)]
    for left in (1.0, 2.5, 4.0, 6.0):
        chosen = []
        for first in range(3):  # what each hour would be given is asked by putting it first
            order = [hours[first], *(hour for place, hour in enumerate(hours) if place != first)]
            chosen.append(allowance([Piece(1, 6, each) for each in order], left=left, floor=0))
        cost = sum(idle(hour, units) for hour, units in zip(hours, chosen, strict=True))
        assert cost <= left + 1e-9
        value = sum(served(hour, units) for hour, units in zip(hours, chosen, strict=True))
        for other in itertools.product(range(7), repeat=3):
            if sum(idle(hour, units) for hour, units in zip(hours, other, strict=True)) <= cost:
                assert sum(served(h, u) for h, u in zip(hours, other, strict=True)) <= value + 1e-9


pieces = st.lists(
    st.builds(
        Piece,
        hours=st.floats(0.1, 1),
        wants=st.integers(0, 40),
        demand=st.builds(Poisson, rate_per_hour=st.floats(0, 900), outstanding=st.floats(0, 20)),
    ),
    min_size=1,
    max_size=25,
)


@given(pieces, st.floats(-10, 500), st.integers(0, 10))
def test_it_lies_between_the_floor_and_what_is_asked_for(day: list[Piece], left: float, floor: int) -> None:
    assert floor <= allowance(day, left=left, floor=floor) <= max(floor, day[0].wants)


@given(pieces, st.floats(0, 500), st.floats(0, 50), st.integers(0, 10))
def test_more_left_never_buys_less(day: list[Piece], left: float, more: float, floor: int) -> None:
    assert allowance(day, left=left + more, floor=floor) >= allowance(day, left=left, floor=floor)


@given(pieces, st.floats(0, 500))
def test_the_same_price_in_every_hour_overdraws_nothing(day: list[Piece], left: float) -> None:
    given_units = [
        allowance([day[place], *day[:place], *day[place + 1 :]], left=left, floor=0)
        for place in range(len(day))
    ]
    cost = sum(
        (1 - piece.demand.tail(np.arange(1, units + 1))).sum() * piece.hours
        for piece, units in zip(day, given_units, strict=True)
        if piece.demand is not None
    )
    assert cost <= left + 1e-6
