"""The protocol over a model of the API server: every fault and every other writer at every instant.

What must hold is I1 (a VM carries one claim's UID in its life), I2 (a claim names one VM, and only one that
carried its UID) and that one repair with nothing going wrong puts right whatever was left.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from controller.claims import patches
from controller.claims.drain import Drain
from controller.claims.handover import HandOver, Outcome
from controller.claims.protocol import Done, Ops
from controller.claims.repair import Repair
from controller.claims.status import Terms
from controller.machines.objects import VirtualMachine
from crds import names
from tests.support.builders import NOW, at, make_bound_vm, make_claim, make_vm, make_vmi, read_vm, stored
from tests.support.patching import Refused, applied
from tests.support.small_world import Event, World, alone, paths, settled

VM = make_vm()
CLAIM = make_claim()
HELD = read_vm(applied(stored(VM), patches.hand_over(VM, CLAIM)))
TERMS = Terms("pool", "pool-uid", NOW, waited=2.0)
Json = dict[str, Any]


def _writes(ops: Ops) -> Event:
    """Another leader's guarded write to the VM."""

    def event(world: World) -> World | None:
        if world.vm is None:
            return None
        try:
            return world.put_vm(applied(world.vm, ops))
        except Refused:
            return None

    return event


def _vm(change: Callable[[Json], Json | None]) -> Event:
    return lambda world: None if world.vm is None else world.put_vm(change(world.vm))


def _claim(change: Callable[[Json], Json | None]) -> Event:
    return lambda world: None if world.claim is None else world.put_claim(change(world.claim))


def _going(raw: Json) -> Json:
    raw["metadata"] |= {"deletionTimestamp": at(), "finalizers": ["foregroundDeletion"]}
    return raw


def _expired(raw: Json) -> Json | None:
    if raw.get("status", {}).get("phase", "Pending") == "Pending":
        raw["status"] = {"phase": "Expired"}
    return raw


def _set_back(raw: Json) -> Json:
    raw["metadata"]["labels"][names.LABEL_STATE] = names.Mark.POOLED.value
    return raw


OTHERS: dict[str, Event] = {
    "another leader hands the VM to a rival": _writes(patches.hand_over(VM, make_claim("rival"))),
    "another leader hands the VM to this claim": _writes(patches.hand_over(VM, CLAIM)),
    "another leader drains the VM": _writes(patches.drain(VM)),
    "a person deletes the VM": _vm(lambda _: None),
    "a person sets the VM's label back": _vm(_set_back),
    "a person deletes the claim": _claim(lambda _: None),
    "a person deletes the claim in the foreground": _claim(_going),
    "another leader says that the claim expired": _claim(_expired),
}


@cache
def _hand_overs() -> tuple[tuple[HandOver, World, Done], ...]:
    start = World(stored(VM), stored(CLAIM))
    work = HandOver(CLAIM, VM, make_vmi(), TERMS)
    few = paths(work, start, OTHERS, faults=1, people=2)
    faulty = paths(work, start, OTHERS, faults=2, people=1)
    return (*few, *faulty)


def _ends(*outcomes: Outcome) -> Iterator[tuple[HandOver, World]]:
    return ((work, world) for work, world, done in _hand_overs() if done.outcome in outcomes)


def test_the_walk_meets_every_outcome_many_times() -> None:
    found = [done.outcome for _, _, done in _hand_overs()]
    assert len(found) > 2000
    assert set(found) == {*Outcome} - {Outcome.METADATA_REFUSED}


def test_a_vm_carries_one_claims_uid_in_its_life() -> None:
    for _, world, _ in _hand_overs():
        assert len(settled(world).carried) <= 1, world.told


def test_a_claim_names_one_vm_and_only_one_that_carried_its_uid() -> None:
    for _, world, _ in _hand_overs():
        assert world.named in {(), (VM.metadata.uid,)}, world.told
        assert not world.named or world.carried == (CLAIM.uid,), world.told


def test_bound_means_published() -> None:
    ends = list(_ends(Outcome.BOUND))
    assert ends
    for _, world in ends:
        assert world.named == (VM.metadata.uid,), world.told


def test_a_vm_that_was_called_free_to_others_carries_nothing_of_ours_unless_a_write_was_lost() -> None:
    for work, world in _ends(Outcome.VM_TAKEN, Outcome.NOT_APPLIED, Outcome.DENIED):
        if not work.doubt and "another leader hands the VM to this claim" not in world.told:
            assert CLAIM.uid not in settled(world).carried, world.told


def test_without_faults_a_hand_over_that_did_not_bind_left_the_claim_unbound() -> None:
    for _, world in _ends(Outcome.VM_TAKEN, Outcome.NOT_APPLIED, Outcome.DENIED, Outcome.HELD):
        if not any("answer lost" in each or "late" in each for each in world.told):
            assert world.named == (), world.told


def _repaired(world: World) -> World:
    """Two looks: what a person set back is put right by the first."""
    for _ in range(2):
        world, _ = alone(Repair(VM.metadata.name, VM.metadata.uid, TERMS, make_vmi()), world)
    return world


def _at_rest(world: World) -> bool:
    """Nothing is held that is not published: the VM is gone, no claim's, or its Bound claim names it."""
    if world.vm is None:
        return True
    labels = world.vm["metadata"]["labels"]
    if labels.get(names.LABEL_CLAIM_UID) is None or labels[names.LABEL_STATE] == names.Mark.DRAINING:
        return True
    status = world.claim.get("status", {}) if world.claim else {}
    named = [each["uid"] for each in status.get("virtualMachines", [])]
    return labels[names.LABEL_STATE] == names.Mark.CLAIMED and named == [VM.metadata.uid]


def test_one_repair_puts_right_whatever_a_hand_over_left() -> None:
    for _, world, _ in _hand_overs():
        quiet = settled(world)
        if quiet.carried in {(), (CLAIM.uid,)}:
            assert _at_rest(_repaired(quiet)), world.told


def test_repair_is_idempotent() -> None:
    for _, world, _ in _hand_overs()[::7]:
        once = _repaired(settled(world))
        assert _repaired(once) == once, world.told


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(CLAIM, id="waiting"),
        pytest.param(make_claim(phase="Pending"), id="told that it waits"),
        pytest.param(make_claim(phase="Bound", vms=[make_bound_vm("other")]), id="bound to another"),
        pytest.param(None, id="gone"),
    ],
)
def test_a_repair_among_faults_and_people_never_breaks_what_was_published(claim: Any) -> None:
    start = World(stored(HELD), None, carried=(CLAIM.uid,)).put_claim(stored(claim) if claim else None)
    work = Repair(VM.metadata.name, VM.metadata.uid, TERMS, make_vmi())
    for _, world, done in paths(work, start, OTHERS, faults=1, people=2):
        published = VM.metadata.uid in world.named
        ended = world.claim is None or "foreground" in str(world.told) or "expired" in str(world.told)
        by_a_person = "a person deletes the VM" in world.told
        if published and not ended and not by_a_person:
            assert world.vm is not None, (done, world.told)
        assert set(world.carried) == {CLAIM.uid}


@pytest.mark.parametrize("vm", [VM, HELD])
def test_a_drain_among_faults_and_people_never_takes_a_claimed_vm(vm: VirtualMachine) -> None:
    start = World(stored(vm), stored(CLAIM), carried=(CLAIM.uid,) if vm is HELD else ())
    people = {name: event for name, event in OTHERS.items() if name != "a person sets the VM's label back"}
    found = list(paths(Drain.of(VM), start, people, faults=2, people=1))
    assert found
    for _, world, done in found:
        if world.carried and "a person deletes the VM" not in world.told:
            assert world.vm is not None, (done, world.told)


def test_the_walk_leaves_its_beginning_as_it_was() -> None:
    start = World(stored(VM), stored(CLAIM))
    before = copy.deepcopy(start)
    list(paths(HandOver(CLAIM, VM, None, TERMS), start, OTHERS, faults=1, people=1))
    assert start == before
