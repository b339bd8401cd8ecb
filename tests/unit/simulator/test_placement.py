"""Where guests land when nodes take only so many."""

from __future__ import annotations

from collections import Counter
from random import Random

from simulator.kubevirt.placement import Placement


def test_without_a_bound_there_is_a_seat_for_everybody() -> None:
    placement = Placement(0, Random(1))
    assert all(placement.seat(f"vm-{number}") for number in range(100))
    assert not placement.stand_up("vm-1"), "nobody waits for a place"


def test_no_node_takes_more_than_its_room() -> None:
    placement = Placement(2, Random(1), room=3)
    seats = [placement.seat(f"vm-{number}") for number in range(8)]
    assert Counter(seats) == {"node-1": 3, "node-2": 3, "": 2}


def test_a_guest_keeps_its_seat_and_gives_it_up_once() -> None:
    placement = Placement(1, Random(1), room=1)
    assert placement.seat("a") == placement.seat("a") == "node-1"
    assert placement.seat("b") == ""
    assert placement.stand_up("a")
    assert not placement.stand_up("a")
    assert placement.seat("b") == "node-1"


def test_a_guest_that_is_seen_on_a_node_takes_its_place_there() -> None:
    placement = Placement(1, Random(1), room=1)
    placement.sit("a", "node-1")
    assert placement.seat("b") == ""


def test_a_lost_node_takes_nobody() -> None:
    placement = Placement(2, Random(1), room=1)
    placement.lose("node-1")
    assert [placement.seat("a"), placement.seat("b")] == ["node-2", ""]
