"""Kubernetes' garbage collector, in the steps in which it really acts: between any two, anything may happen.

It reads an object and its owners, then deletes it if the object is still the version that was read. Since
1.36 a refusal is followed by a second look: are the owners the same, it deletes by UID alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from controller.claims.objects import FOREGROUND, ORPHAN
from tests.protocol.apiserver import Event, Server, changed, delete_vm, put_claim, put_pool, put_vm
from tests.protocol.things import Thing


class Move(NamedTuple):
    """Something that happens by itself or by somebody: what, and the server afterwards.

    `who` is judged; `costs` names the budget that it spends, empty for what happens sooner or later.
    """

    label: str
    server: Server
    events: tuple[Event, ...] = ()
    who: str = "garbage collector"
    costs: str = ""


def moves(server: Server) -> Iterator[Move]:
    """All that the collector may do next."""
    if server.collector:
        yield from _goes_on(server)
    else:
        for slot, vm in enumerate(server.vms):
            if vm is not None and not vm.going and _collectable(server, vm):
                read = server._replace(collector=(slot, vm, True))
                yield Move(f"the garbage collector reads {vm.name}: its owner is gone or going", read)
    yield from _finalizers(server)


def _collectable(server: Server, vm: Thing) -> bool:
    """Owned, and by nobody who is there to stay."""
    return bool(vm.owners) and not any(_solid(server.owner(*owner)) for owner in vm.owners)


def _solid(owner: Thing | None) -> bool:
    return owner is not None and not (owner.going and FOREGROUND in owner.finalizers)


def _goes_on(server: Server) -> Iterator[Move]:
    slot, read, exact = server.collector
    vm, free = server.vms[slot], server._replace(collector=())
    name = read.name
    if vm is None or vm.uid != read.uid or vm.going:
        yield Move(f"the garbage collector finds {name} gone or going already", free)
    elif not exact or vm is read:
        after, events = delete_vm(free, slot)
        how = "as it was read" if exact else "by its UID alone"
        yield Move(f"the garbage collector deletes {name} {how}", after, events)
    elif vm.owners == read.owners:
        again = server._replace(collector=(slot, vm, False))
        yield Move(f"the garbage collector is refused: {name} has changed, its owner has not", again)
    else:
        yield Move(f"the garbage collector is refused: {name} has another owner now", free)


def _finalizers(server: Server) -> Iterator[Move]:
    for slot, claim in enumerate(server.claims):
        if claim is not None and claim.going:
            yield from _deletion(server, claim, partial(put_claim, server, slot))
    if server.pool is not None and server.pool.going:
        yield from _deletion(server, server.pool, partial(put_pool, server))


def _deletion(
    server: Server, owner: Thing, put: Callable[[Thing], tuple[Server, tuple[Event, ...]]]
) -> Iterator[Move]:
    """Foreground: the dependents first. Orphan: their owner references first."""
    mine = [(slot, vm) for slot, vm in enumerate(server.vms) if vm is not None and _owns(owner, vm)]
    for finalizer, how in ((FOREGROUND, "foreground"), (ORPHAN, "orphan")):
        if finalizer in owner.finalizers and not mine:
            what = f"the garbage collector ends the {how} deletion of {owner.name}"
            yield Move(what, *put(_without(owner, finalizer)))
    if ORPHAN in owner.finalizers:
        for slot, vm in mine:
            left = [each for each in vm.meta["ownerReferences"] if each["uid"] != owner.uid]
            what = f"the garbage collector takes the owner {owner.name} off {vm.name}"
            yield Move(what, *put_vm(server, slot, changed(vm, ownerReferences=left or None)))


def _owns(owner: Thing, vm: Thing) -> bool:
    return any(uid == owner.uid for _, uid in vm.owners)


def _without(owner: Thing, finalizer: str) -> Thing:
    left = [each for each in owner.finalizers if each != finalizer]
    return changed(owner, finalizers=left or None)
