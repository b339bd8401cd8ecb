"""What is known never goes back, and where guests land."""

from __future__ import annotations

from random import Random

from simulator.kubevirt.placement import Placement
from simulator.kubevirt.sight import Sight
from tests.unit.simulator.making import make_vm, make_vmi


def test_the_newest_version_wins_whatever_the_order() -> None:
    sight = Sight("ns", "vm")
    assert sight.see(make_vm(version=100))
    assert not sight.see(make_vm(version=99))
    assert not sight.see(make_vm(version=100))
    assert sight.see(make_vm(version=1000))
    assert sight.versions == ("1000", "")


def test_an_event_of_an_object_that_is_known_to_be_gone_is_ignored() -> None:
    sight = Sight("ns", "vm")
    vmi = make_vmi(version=5)
    sight.see(vmi)
    sight.lose(vmi)
    assert not sight.see(make_vmi(version=6))
    assert sight.vmi is None


def test_losing_the_old_one_does_not_lose_its_namesake() -> None:
    sight = Sight("ns", "vm")
    old = make_vm(uid="old", version=5)
    sight.see(old)
    sight.see(make_vm(uid="new", version=9))
    sight.lose(old)
    assert sight.vm is not None
    assert sight.vm.metadata.uid == "new"


def test_a_sight_is_empty_only_when_the_watch_has_confirmed_the_end() -> None:
    sight = Sight("ns", "vm")
    vm = make_vm()
    sight.see(vm)
    sight.lose(vm)
    assert not sight.empty
    sight.confirm_gone(vm.metadata.uid)
    assert sight.empty


def test_what_our_write_returned_is_dropped_when_somebody_else_wrote_since() -> None:
    sight = Sight("ns", "vm")
    sight.see(make_vm(version=5))
    sight.raw = b"{}"
    sight.see(make_vm(version=6))
    assert sight.raw is None


def test_guests_are_spread_over_the_nodes() -> None:
    placement = Placement(4, Random(1))
    assert sorted(placement.node() for _ in range(8)) == sorted(placement.names * 2)


def test_no_guest_lands_on_a_lost_node() -> None:
    placement = Placement(3, Random(1))
    assert placement.lose("node-2")
    assert {placement.node() for _ in range(9)} == {"node-1", "node-3"}


def test_a_node_that_is_only_a_name_cannot_be_lost() -> None:
    placement = Placement(0, Random(1))
    assert not placement.lose("node-2")
    assert {placement.node() for _ in range(9)} == {"node-1", "node-2", "node-3"}


def test_no_two_guests_have_one_address() -> None:
    placement = Placement(0, Random(1))
    taken = placement.address()
    again = Placement(0, Random(1))
    again.occupy(taken)
    addresses = {again.address() for _ in range(500)}
    assert len(addresses) == 500
    assert taken not in addresses
    again.vacate(taken)
