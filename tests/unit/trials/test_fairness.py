"""Who was overtaken, from the order in which a watch showed things."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.trials.fairness import Life, Overtaken, overtaken


def lives(*services: tuple[int, float]) -> list[Life]:
    """Claims in the order of their arrival, each with its place and time of service; 0: not served."""
    return [
        Life(f"claim-{place}", arrival=place, added=float(place), service=service, bound=bound)
        for place, (service, bound) in enumerate(services, 1)
    ]


def test_in_order_nobody_is_overtaken() -> None:
    assert overtaken(lives((1, 10.0), (2, 10.5), (3, 11.0))) == []


def test_the_worst_is_named_first_with_who_was_served_before() -> None:
    found = overtaken(lives((2, 12.0), (3, 14.0), (1, 10.0)))
    assert found == [Overtaken("claim-2", "claim-3", 4.0), Overtaken("claim-1", "claim-3", 2.0)]


def test_one_who_waits_still_is_not_judged_yet() -> None:
    assert overtaken(lives((0, 0.0), (1, 10.0))) == []


def test_at_one_instant_the_order_of_the_watch_counts() -> None:
    assert overtaken(lives((2, 10.0), (1, 10.0))) == [Overtaken("claim-1", "claim-2", 0.0)]


@given(st.permutations(range(1, 9)))
def test_exactly_those_are_overtaken_whom_somebody_later_was_served_before(order: list[int]) -> None:
    crowd = lives(*((service, float(service)) for service in order))
    wanted = {
        each.name
        for each in crowd
        if any(other.arrival > each.arrival and other.service < each.service for other in crowd)
    }
    assert {each.name for each in overtaken(crowd)} == wanted
