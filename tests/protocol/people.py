"""Everybody else who writes: users, administrators, KubeVirt, and time. Each within the world's budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller.claims.objects import FOREGROUND, ORPHAN
from controller.machines.revision import revision
from crds import names
from tests.protocol.apiserver import (
    Names,
    Server,
    changed,
    delete_vm,
    dying,
    perform,
    put_claim,
    put_pool,
    put_vm,
)
from tests.protocol.garbage import Move
from tests.protocol.things import CLAIM, POOL, VM, Json, Thing, thing
from tests.protocol.worlds import World
from tests.support.builders import make_claim, make_pool, make_vm, stored

CLONE = "clone"
_HOLDS = {"background": (), "foreground": (FOREGROUND,), "orphan": (ORPHAN,)}


def where(world: World) -> Names:
    """Every name there will ever be: VMs of the beginning, of each controller, the copy; claims."""
    vms = [f"vm-{number}" for number in range(1, world.vms + 1)]
    vms += [f"new-{k}{number}" for k in range(world.controllers) for number in range(1, world.creates + 1)]
    if world.budget.get("clone"):
        vms.append(CLONE)
    return Names(tuple(vms), tuple(f"claim-{number}" for number in range(1, world.claims + 1)))


def beginning(world: World) -> Server:
    slots = where(world)
    warm = world.vms if world.warm is None else world.warm
    pool = make_pool(
        warm=warm, suspend=not world.refill, limits=dict(world.limits), template={"template": {"spec": {}}}
    )
    raw = pool.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True, mode="json")
    made_from = revision(pool)
    vms = [_vm(name, age, made_from) if age < world.vms else None for age, name in enumerate(slots.vms)]
    return Server(
        vms=tuple(vms),
        claims=tuple(_claim(world, slot, 1) for slot in range(world.claims)),
        pool=thing(POOL, raw),
        lives=(1,) * world.claims,
        carried=("",) * len(vms),
        by_hand=(False,) * len(vms),
        born=tuple(vm is not None for vm in vms),
        used=(False,) * len(vms),
    )


def _vm(name: str, number: int, made_from: str) -> Thing:
    return thing(VM, stored(make_vm(name, age=600.0 - number, labels={names.LABEL_REVISION: made_from})))


def _claim(world: World, slot: int, life: int) -> Thing:
    name = f"claim-{slot + 1}"
    made = make_claim(
        name,
        uid=f"{name}-{life}",
        lifetime=world.lifetime,
        timeout=world.timeout,
        when_empty=world.when_empty,
        age=10.0 - slot - 5 * (life - 1),
    )
    return thing(CLAIM, stored(made))


def moves(world: World, slots: Names, server: Server) -> Iterator[Move]:
    """All that somebody other than a controller and the garbage collector may do now."""
    yield from _late(server, slots)
    for slot, vm in enumerate(server.vms):
        if vm is not None:
            yield from _on_vm(world, server, slot, vm)
        elif server.born[slot] and world.budget.get("remake-vm"):
            name = slots.vms[slot]
            own = thing(VM, {"metadata": {"name": name, "namespace": "ns", "uid": f"{name}-of-a-person"}})
            after, events = put_vm(_by_hand(server, slot), slot, own)
            yield Move(f"a person makes a VM of the name {name}", after, events, "person", "remake-vm")
    for slot, claim in enumerate(server.claims):
        yield from _on_claim(world, server, slot, claim)
    yield from _on_pool(world, server)
    yield Move(
        f"{world.jump} seconds pass", server._replace(clock=server.clock + world.jump), (), "time", "time"
    )


def _late(server: Server, slots: Names) -> Iterator[Move]:
    for number, asked in enumerate(server.late):
        left = server._replace(late=(*server.late[:number], *server.late[number + 1 :]))
        done = perform(left, slots, asked)
        what = f"a write that had timed out arrives ({asked.step.step} {asked.step.name})"
        yield Move(f"{what}: {told(done.answer)}", done.server, done.events, "controller")


def told(answer: Any) -> str:
    """An answer in a word."""
    return {
        "FoundVM": "done",
        "FoundClaim": "done",
        "Accepted": "done",
        "TestRefused": "refused by a test",
        "Missing": "there is none",
        "Exists": "there is one already",
        "Owned": "listed",
    }[type(answer).__name__]


def _on_vm(world: World, server: Server, slot: int, vm: Thing) -> Iterator[Move]:
    def write(label: str, after: Thing, who: str, costs: str) -> Move:
        handled = _by_hand(server, slot) if who == "person" else server
        return Move(label, *put_vm(handled, slot, after), who, costs)

    name = vm.name
    if vm.going:
        after, events = put_vm(server, slot, None)
        yield Move(f"KubeVirt lets {name} go", after, events, "KubeVirt")
        return
    if vm.status.get("printableStatus") != "Running":
        running = thing(VM, {**vm.raw, "status": {"printableStatus": "Running"}})
        yield write(f"{name} has booted", running, "KubeVirt", "")
    after, events = delete_vm(server, slot)
    yield Move(f"a person deletes {name}", after, events, "person", "delete-vm")
    touched = thing(VM, {**vm.raw, "status": {**vm.status, "touched": True}})
    if touched is not vm:
        yield write(f"KubeVirt writes to {name}", touched, "KubeVirt", "touch")
    if any(owner["kind"] == names.POOL_KIND for owner in vm.meta.get("ownerReferences", ())):
        yield write(
            f"a person frees {name} from its pool", changed(vm, ownerReferences=None), "person", "free-vm"
        )
    for how in world.relabels:
        if (labels := _relabelled(vm, how)) is not None:
            yield write(f"a person relabels {name}: {how}", changed(vm, labels=labels), "person", "relabel")
    if world.budget.get("clone") and server.vms[-1] is None and not server.born[-1]:
        copy = {key: value for key, value in vm.meta.items() if key != "ownerReferences"}
        copy |= {"name": CLONE, "uid": f"{CLONE}-uid"}
        last = len(server.vms) - 1
        after, events = put_vm(_by_hand(server, last), last, thing(VM, {**vm.raw, "metadata": copy}))
        yield Move(f"a person copies {name} with all its labels", after, events, "person", "clone")


def _by_hand(server: Server, slot: int) -> Server:
    return server._replace(by_hand=(*server.by_hand[:slot], True, *server.by_hand[slot + 1 :]))


def _relabelled(vm: Thing, how: str) -> dict[str, str] | None:
    """The labels afterwards; None where it would change nothing."""
    labels = dict(vm.labels)
    state = labels.get(names.LABEL_STATE)
    match how:
        case "pooled" if state in {names.Mark.CLAIMED, names.Mark.DRAINING}:
            labels[names.LABEL_STATE] = names.Mark.POOLED.value
        case "claimed" if state == names.Mark.POOLED:
            labels[names.LABEL_STATE] = names.Mark.CLAIMED.value
        case "stripped" if names.LABEL_POOL_UID in labels:
            del labels[names.LABEL_POOL_UID]
        case "freed" if names.LABEL_CLAIM_UID in labels:
            del labels[names.LABEL_CLAIM_UID]
            labels[names.LABEL_STATE] = names.Mark.POOLED.value
        case "forged" if names.LABEL_CLAIM_UID not in labels:
            labels[names.LABEL_CLAIM_UID] = "a-claim-of-a-persons-mind"
        case _:
            return None
    return labels


def _on_claim(world: World, server: Server, slot: int, claim: Thing | None) -> Iterator[Move]:
    if claim is None:
        life = server.lives[slot] + 1
        lives = (*server.lives[:slot], life, *server.lives[slot + 1 :])
        made, events = put_claim(server._replace(lives=lives), slot, _claim(world, slot, life))
        name = f"claim-{slot + 1}"
        yield Move(f"a user makes {name} again (UID {name}-{life})", made, events, "user", "recreate-claim")
        return
    if not claim.going:
        for how in world.deletion:
            after, events = put_claim(server, slot, dying(claim, *_HOLDS[how]))
            yield Move(f"a user deletes {claim.name} ({how})", after, events, "user", "delete-claim")
        if world.lifetime is not None and claim.raw["spec"].get("lifetime") == world.lifetime:
            spec: Json = {**claim.raw["spec"], "lifetime": "10h"}
            after, events = put_claim(server, slot, thing(CLAIM, {**claim.raw, "spec": spec}))
            yield Move(f"a user lengthens the lifetime of {claim.name}", after, events, "user", "extend")


def _on_pool(world: World, server: Server) -> Iterator[Move]:
    pool = server.pool
    if pool is None or pool.going:
        return
    for how in world.pool_deletion:
        after, events = put_pool(server, dying(pool, *_HOLDS[how]))
        yield Move(f"a user deletes the pool ({how})", after, events, "user", "delete-pool")
    spec = pool.raw["spec"]
    fewer = {**spec, "warm": {"replicas": world.scale_to}}
    if fewer != spec:
        yield _respecified(server, pool, fewer, f"a user scales the pool to {world.scale_to}", "scale")
    newer = {**spec, "template": {"spec": {"template": {"spec": {"hostname": "newer"}}}}}
    if newer != spec:
        yield _respecified(server, pool, newer, "a user changes the pool's template", "roll-out")


def _respecified(server: Server, pool: Thing, spec: Json, label: str, costs: str) -> Move:
    generation = pool.meta.get("generation", 1) + 1
    raw = {**pool.raw, "spec": spec, "metadata": {**pool.meta, "generation": generation}}
    after, events = put_pool(server, thing(POOL, raw))
    return Move(label, after, events, "user", costs)
