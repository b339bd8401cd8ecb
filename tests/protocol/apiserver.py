"""The API server as far as the protocol sees it: objects, guarded writes, finalizers, deletion.

One write is one atomic step. There is no clock but `clock`, and no resourceVersion: a version is told from
another by what it says, which no guard of the protocol can do better. Each write tells whom it concerns
(`events`) and who broke what (the judge).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import or_
from typing import Any, NamedTuple

from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
    Missing,
    Ops,
    PatchClaimStatus,
    PatchVM,
    ReadClaim,
    ReadVM,
    StepName,
    TestRefused,
)
from crds import names
from tests.protocol.things import VM, Json, Request, Thing, found_vm, thing
from tests.support.builders import NOW, at
from tests.support.patching import Refused, applied

# ---- steps and answers that are none of a procedure's, but of the code around it


@dataclass(frozen=True, slots=True)
class CreateVM:
    step: StepName
    name: str
    body: Json


@dataclass(frozen=True, slots=True)
class ListOwned:
    """The uncached list of a pool's VMs, by label and then by owner."""

    step: StepName
    pool_uid: str


@dataclass(frozen=True, slots=True)
class PatchPool:
    step: StepName
    name: str
    ops: Ops


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    step: StepName
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Exists:
    """409 to a creation: the name is taken."""


@dataclass(frozen=True, slots=True)
class Owned:
    """What `ListOwned` found."""

    names: tuple[str, ...]


ACCEPTED, MISSING, REFUSED, EXISTS = Accepted(), Missing(), TestRefused(), Exists()

Event = tuple[Thing, bool]
"""A version of an object, and whether it is there: what a watch will deliver."""


class Server(NamedTuple):
    """All that is stored. A slot of `vms` and `claims` is a name; None: there is none of that name."""

    vms: tuple[Thing | None, ...]
    claims: tuple[Thing | None, ...]
    pool: Thing | None
    clock: int = 0
    lives: tuple[int, ...] = ()
    late: tuple[Request, ...] = ()
    collector: tuple[Any, ...] = ()
    carried: tuple[str, ...] = ()
    by_hand: tuple[bool, ...] = ()
    born: tuple[bool, ...] = ()
    used: tuple[bool, ...] = ()
    """`lives`: how often each claim was made; `born`: the VM's name was used. What the judge remembers of
    each VM: `carried`, its first claim UID; `by_hand`: a person changed its labels or owner; `used`: a
    claim's status has named it."""

    @property
    def now(self) -> float:
        return NOW + self.clock

    def vm_of(self, uid: str) -> Thing | None:
        return next((vm for vm in self.vms if vm is not None and vm.uid == uid), None)

    def claim_of(self, uid: str) -> Thing | None:
        return next((claim for claim in self.claims if claim is not None and claim.uid == uid), None)

    def owner(self, kind: str, uid: str) -> Thing | None:
        if kind == names.POOL_KIND:
            return self.pool if self.pool is not None and self.pool.uid == uid else None
        return self.claim_of(uid) if kind == names.CLAIM_KIND else None


class Names(NamedTuple):
    """Which slot a name has."""

    vms: tuple[str, ...]
    claims: tuple[str, ...]


class Written(NamedTuple):
    """A write's outcome: the server afterwards, the answer, what watches will deliver."""

    server: Server
    answer: Answer | Exists | Owned
    events: tuple[Event, ...] = ()


def put_vm(server: Server, slot: int, new: Thing | None) -> tuple[Server, tuple[Event, ...]]:
    """Store a version of a VM, or take the VM away."""
    old = server.vms[slot]
    if old is new:
        return server, ()
    vms = (*server.vms[:slot], new, *server.vms[slot + 1 :])
    carried = server.carried
    uid = new.labels.get(names.LABEL_CLAIM_UID, "") if new is not None else ""
    if uid and not carried[slot]:
        carried = (*carried[:slot], uid, *carried[slot + 1 :])
    born = server.born if server.born[slot] else (*server.born[:slot], True, *server.born[slot + 1 :])
    return server._replace(vms=vms, carried=carried, born=born), tuple(_watched(old, new))


def _watched(old: Thing | None, new: Thing | None) -> Iterator[Event]:
    """The watches of VMs select by label: one that loses it is gone, and then nothing more is heard of it."""
    if new is not None and names.LABEL_POOL_UID in new.labels:
        yield new, True
    elif old is not None and names.LABEL_POOL_UID in old.labels:
        yield old, False


def put_claim(server: Server, slot: int, new: Thing | None) -> tuple[Server, tuple[Event, ...]]:
    old = server.claims[slot]
    if old is new:
        return server, ()
    if new is not None and new.going and not new.finalizers:
        new = None  # its last finalizer came off
    claims = (*server.claims[:slot], new, *server.claims[slot + 1 :])
    used, last = server.used, new or old
    assert last is not None
    if new is not None and new.named:
        told = ((vm is not None and vm.uid in new.named) for vm in server.vms)
        used = tuple(map(or_, server.used, told))
    return server._replace(claims=claims, used=used), ((last, new is not None),)


def put_pool(server: Server, new: Thing | None) -> tuple[Server, tuple[Event, ...]]:
    old = server.pool
    if old is new:
        return server, ()
    if new is not None and new.going and not new.finalizers:
        new = None
    last = new or old
    assert last is not None
    return server._replace(pool=new), ((last, new is not None),)


def patched(what: Thing, ops: Ops) -> Thing | None:
    """The version after the patch, None if a test refused it."""
    try:
        return thing(what.kind, applied(what.raw, ops))
    except Refused:
        return None


def changed(what: Thing, **metadata: Any) -> Thing:
    """The version after somebody wrote these fields of its metadata; None takes one away."""
    meta = {key: value for key, value in {**what.meta, **metadata}.items() if value is not None}
    return thing(what.kind, {**what.raw, "metadata": meta})


def dying(what: Thing, *finalizers: str) -> Thing:
    """Under deletion, held by its finalizers and these."""
    both = tuple(dict.fromkeys((*what.finalizers, *finalizers)))
    return changed(what, deletionTimestamp=at(), finalizers=list(both) or None)


def delete_vm(server: Server, slot: int) -> tuple[Server, tuple[Event, ...]]:
    """KubeVirt's finalizer holds it for a while."""
    vm = server.vms[slot]
    return put_vm(server, slot, dying(vm, "kubevirt") if vm is not None and not vm.going else vm)


def perform(  # noqa: C901, PLR0912 - one row a verb
    server: Server, where: Names, asked: Request
) -> Written:
    """Take the step."""
    step = asked.step
    match step:
        case ReadVM(name=name):
            vm = server.vms[where.vms.index(name)]
            return Written(server, MISSING if vm is None else found_vm(vm, server.now))
        case ReadClaim(name=name):
            claim = server.claims[where.claims.index(name)] if name in where.claims else None
            return Written(server, MISSING if claim is None else claim.found)
        case PatchVM(name=name, ops=ops):
            slot = where.vms.index(name)
            old = server.vms[slot]
            if old is None:
                return Written(server, MISSING)
            new = patched(old, ops)
            if new is None:
                return Written(server, REFUSED)
            after, events = put_vm(server, slot, new)
            return Written(after, found_vm(new, server.now), events)
        case DeleteVM(name=name, uid=uid):
            slot = where.vms.index(name)
            vm = server.vms[slot]
            if vm is None or (uid and vm.uid != uid):
                return Written(server, MISSING)
            after, events = delete_vm(server, slot)
            return Written(after, ACCEPTED, events)
        case PatchClaimStatus(name=name, ops=ops):
            slot = where.claims.index(name)
            old = server.claims[slot]
            if old is None:
                return Written(server, MISSING)
            new = patched(old, ops)
            if new is None:
                return Written(server, REFUSED)
            after, events = put_claim(server, slot, new)
            return Written(after, new.found, events)
        case CreateVM(name=name, body=body):
            slot = where.vms.index(name)
            if server.born[slot]:  # names are never used twice, not even by a creation that comes late
                return Written(server, EXISTS)
            born = thing(VM, body | {"metadata": body["metadata"] | {"creationTimestamp": at(server.clock)}})
            after, events = put_vm(server, slot, born)
            return Written(after, found_vm(born, server.now), events)
        case ListOwned(pool_uid=uid):
            mine = (names.POOL_KIND, uid)
            found = (vm for vm in server.vms if vm is not None and mine in vm.owners)
            return Written(
                server, Owned(tuple(vm.name for vm in found if vm.labels.get(names.LABEL_POOL_UID) == uid))
            )
        case PatchPool(ops=ops):
            if server.pool is None:
                return Written(server, MISSING)
            new = patched(server.pool, ops)
            if new is None:
                return Written(server, REFUSED)
            after, events = put_pool(server, new)
            return Written(after, ACCEPTED, events)
        case DeleteClaim(name=name, uid=uid):
            slot = where.claims.index(name)
            claim = server.claims[slot]
            if claim is None or claim.uid != uid:
                return Written(server, MISSING)
            after, events = put_claim(server, slot, dying(claim))
            return Written(after, ACCEPTED, events)
        case _:
            raise AssertionError(step)
