"""One VM and one claim on a model of the API server, and everybody who writes to them.

The procedures of the protocol are driven over it through every choice of faults and of other people's writes,
within a budget of each. A write of unknown outcome may be applied at once, later, or never.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
    Denied,
    Done,
    FoundClaim,
    FoundVM,
    Missing,
    NotApplied,
    Ops,
    PatchClaimStatus,
    PatchVM,
    Procedure,
    ReadClaim,
    ReadVM,
    Step,
    TestRefused,
    Unknown,
)
from crds import names
from tests.support.builders import read_claim, read_vm
from tests.support.patching import Refused, applied

Json = dict[str, Any]
P = TypeVar("P", bound=Procedure)


@dataclass(frozen=True)
class World:
    """What the API server holds, and what it has held. `late` are writes that are on their way still."""

    vm: Json | None
    claim: Json | None
    carried: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    late: tuple[Step, ...] = ()
    told: tuple[str, ...] = field(default=(), compare=False)

    def put_vm(self, vm: Json | None) -> World:
        uid = vm["metadata"]["labels"].get(names.LABEL_CLAIM_UID) if vm else None
        carried = self.carried if uid is None or uid in self.carried else (*self.carried, uid)
        return replace(self, vm=vm, carried=carried)

    def put_claim(self, claim: Json | None) -> World:
        found = claim.get("status", {}).get("virtualMachines", []) if claim else []
        more = tuple(each["uid"] for each in found if each["uid"] not in self.named)
        return replace(self, claim=claim, named=(*self.named, *more))

    def tell(self, what: str) -> World:
        return replace(self, told=(*self.told, what))


Event = Callable[[World], World | None]
"""Somebody else's write; None when it could not be made now."""


def perform(world: World, step: Step) -> tuple[World, Answer]:
    """The step as the API server takes it when nothing fails."""
    match step:
        case PatchVM(ops=ops):
            return _patch_vm(world, ops)
        case PatchClaimStatus(ops=ops):
            return _patch_claim(world, ops)
        case DeleteVM(uid=uid):
            if world.vm is None or world.vm["metadata"]["uid"] != uid:
                return world, Missing()
            return world.put_vm(None), Accepted()
        case ReadVM():
            return world, Missing() if world.vm is None else FoundVM(read_vm(world.vm))
        case ReadClaim():
            return world, Missing() if world.claim is None else FoundClaim(read_claim(world.claim))


def _patch_vm(world: World, ops: Ops) -> tuple[World, Answer]:
    if world.vm is None:
        return world, Missing()
    try:
        vm = applied(world.vm, ops)
    except Refused:
        return world, TestRefused()
    return world.put_vm(vm), FoundVM(read_vm(vm))


def _patch_claim(world: World, ops: Ops) -> tuple[World, Answer]:
    if world.claim is None:
        return world, Missing()
    try:
        claim = applied(world.claim, ops)
    except Refused:
        return world, TestRefused()
    return world.put_claim(claim), FoundClaim(read_claim(claim))


def outcomes(world: World, step: Step, faults: int) -> Iterator[tuple[World, Answer, int]]:
    """Each way in which the step may go, and how many faults are left."""
    yield (*perform(world, step), faults)
    if not faults:
        return
    yield world.tell(f"{step.step} denied"), Denied("denied"), faults - 1
    yield world.tell(f"{step.step} not applied"), NotApplied(), faults - 1
    yield world.tell(f"{step.step} lost"), Unknown(), faults - 1
    if isinstance(step, PatchVM | PatchClaimStatus | DeleteVM):
        after, _ = perform(world, step)
        yield after.tell(f"{step.step} applied, answer lost"), Unknown(), faults - 1
        yield replace(world, late=(*world.late, step)).tell(f"{step.step} late"), Unknown(), faults - 1


def paths(
    work: P, world: World, events: dict[str, Event], *, faults: int, people: int, steps: int = 25
) -> Iterator[tuple[P, World, Done]]:
    """Every end that `work` can come to. A path of more than `steps` steps is a failure."""
    assert steps, f"it does not end: {world.told}"
    if people:
        for name, after in _happenings(world, events):
            left = {key: value for key, value in events.items() if key != name}
            yield from paths(work, after.tell(name), left, faults=faults, people=people - 1, steps=steps)
    for number, step in enumerate(world.late):
        arrived, _ = perform(replace(world, late=(*world.late[:number], *world.late[number + 1 :])), step)
        told = arrived.tell(f"late {step.step} arrives")
        yield from paths(work, told, events, faults=faults, people=people, steps=steps)
    wanted = work.next()
    if isinstance(wanted, Done):
        yield work, world, wanted
        return
    for after, answer, left_faults in outcomes(world, wanted, faults):
        yield from paths(
            work.observe(answer), after, events, faults=left_faults, people=people, steps=steps - 1
        )


def settled(world: World) -> World:
    """The late writes have arrived."""
    while world.late:
        step, *rest = world.late
        world, _ = perform(replace(world, late=tuple(rest)), step)
    return world


def alone(work: P, world: World) -> tuple[World, Done]:
    """The procedure with nothing going wrong and nobody else about."""
    for _ in range(20):
        step = work.next()
        if isinstance(step, Done):
            return world, step
        world, answer = perform(world, step)
        work = work.observe(answer)
    raise AssertionError("it does not end")


def _happenings(world: World, events: dict[str, Event]) -> Iterator[tuple[str, World]]:
    for name, event in events.items():
        after = event(copy.deepcopy(world))
        if after is not None:
            yield name, after
