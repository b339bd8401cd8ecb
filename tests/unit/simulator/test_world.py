"""Everything at once: what the loss of a VM or of its guest means to the places on the nodes."""

from __future__ import annotations

from random import Random
from typing import cast

from simulator.api import Api
from simulator.kubevirt.behaviour import Defaults
from simulator.kubevirt.distributions import Fixed
from simulator.kubevirt.hands import Hands
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.world import World
from tests.unit.simulator.making import make_vm, make_vmi


def test_a_guest_that_outlives_its_vm_keeps_its_place_until_it_is_gone_itself() -> None:
    placement = Placement(1, Random(1), room=1)
    hands = Hands(cast("Api", None), placement, in_flight=1)
    world = World(hands.api, hands, Defaults(boot=Fixed(1.0)), Random(1))
    world._see(make_vm())
    world._see(make_vmi())
    world._lose(make_vm())
    assert placement.seat("ns/another") == ""
    world._lose(make_vmi())
    assert placement.seat("ns/another") == "node-1"
