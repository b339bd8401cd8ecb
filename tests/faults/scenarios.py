"""What people do while something goes wrong: short stories, each ending in a state in which all must rest.

A story waits for what comes of each of its steps, whatever that is: with a fault on its way a claim may be
bound late, refused with a reason, or gone.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from capacity.archive import decode
from crds.names import HISTORY_KEY, LABEL_CLAIM_UID, LABEL_POOL_UID, LABEL_REVISION, LABEL_STATE, Mark
from tests.faults.kinds import Fault, Kind
from tests.faults.people import BOOT, Json, People, claimed, phase, pooled
from tests.support.site import guest, vm_template

Act = Callable[[People, str], Awaitable[None]]
THEIR_FINALIZER = "example.com/kept"


@dataclass(frozen=True)
class Scenario:
    """A story. `warm` is the size of the pool that is there before it, 0 for none.

    `provoked` goes wrong in every run: steps that only a fault leads to. `meanwhile` happens while nobody
    leads, after a kill. Names of what it makes begin with the run's own name.
    """

    name: str
    title: str
    act: Act
    warm: int = 1
    provoked: tuple[Fault, ...] = ()
    meanwhile: Act | None = None


# ---- claims


async def _bind(people: People, run: str) -> None:
    await people.claim(run)
    await people.until_answered(run)


async def _burst(people: People, run: str) -> None:
    names = [f"{run}-{number}" for number in range(4)]
    for name in names:
        await people.claim(name)
    await people.until_answered(*names)


async def _release(people: People, run: str) -> None:
    await _bind(people, run)
    await people.give_back(run)


async def _fickle(people: People, run: str) -> None:
    """Deleted in the midst of the hand-over, and asked for again under the same name."""
    await people.claim(run)
    await people.give_back(run)
    await people.claim(run)
    await people.until_answered(run)


async def _expiry(people: People, run: str) -> None:
    await people.claim(run, lifetime="1s")
    await people.until(
        "the lifetime over",
        people.claims,
        lambda claims: not [each for each in claims if phase(each) in {"Pending", "Bound", "Releasing"}],
    )


async def _time_out(people: People, run: str) -> None:
    """No pool at all: told after a second, given up after two, removed after three."""
    await people.claim(run, timeout="2s", ttlSecondsAfterFinished=1)
    await people.until("the claim removed", people.claims, lambda claims: not claims)


async def _order(people: People, run: str) -> None:
    await people.make_pool(run, 0)
    await people.claim(run, run)
    await people.until_answered(run)


async def _line(people: People, run: str) -> None:
    """Who stands in front gives up, and the other one is told its new place: not before ten seconds."""
    await people.make_pool(run, 0)
    names = f"{run}-1", f"{run}-2"
    for name in names:
        await people.claim(name, run, whenEmpty={"policy": "Wait"})
    await people.until("both told", people.claims, lambda claims: len([*filter(_place, claims)]) == 2)
    await people.give_back(names[0])
    await people.until("the other one first", people.claims, lambda claims: [*map(_place, claims)] == [1])


def _place(claim: Json) -> int:
    """Its place in line, 0 if it was not told."""
    return int((claim.get("status") or {}).get("queue", {}).get("position", 0))


async def _lost(people: People, run: str) -> None:
    await _bind(people, run)
    await people.delete_vms(which=claimed)
    await people.until(
        "the loss told", people.claims, lambda claims: not [c for c in claims if phase(c) == "Bound"]
    )


# ---- pools


async def _scale_down(people: People, _: str) -> None:
    await people.scale(1)


async def _squeeze(people: People, run: str) -> None:
    """Claims come while the pool gets smaller: hand-overs and removals want the same VMs."""
    names = [f"{run}-{number}" for number in range(2)]
    await people.scale(1)
    for name in names:
        await people.claim(name)
    await people.until_answered(*names)


async def _pool_life(people: People, run: str) -> None:
    await people.make_pool(run, 2)
    await people.until_rest()
    await people.delete_pool(run)


async def _pool_foreground(people: People, run: str) -> None:
    """A pool goes in the foreground, with a claim on one of its VMs, and one VM that nobody claimed."""
    await people.make_pool(run, 1)
    await people.until_rest()
    await people.claim(run, run)
    await people.until_answered(run)
    await people.until_rest()
    await people.delete_pool(run, "Foreground")


async def _roll_out(people: People, run: str) -> None:
    strategy = {"type": "RollingUpdate", "maxSurge": 1, "warmFloor": "50%"}
    await people.make_pool(run, 2, updateStrategy=strategy)
    await people.until_rest()
    old = {_revision(vm) for vm in await people.vms()}
    await people.change_pool(run, {"template": {"metadata": {"annotations": {"example.com/new": "yes"}}}})
    await people.until(
        "all VMs of the new template, if the pool did not vanish",
        people.vms,
        lambda vms: run not in people.warm or (len(vms) == 2 and not old & set(map(_revision, vms))),
    )


def _revision(vm: Json) -> str:
    return str(vm["metadata"]["labels"].get(LABEL_REVISION))


async def _reference(people: People, run: str) -> None:
    """A template that refers to a Secret."""
    await people.make_secret(run)
    volume = {"name": "key", "secret": {"secretName": run}}
    await people.make_pool(run, 1, template=vm_template(guest_spec=guest(volumes=[volume]), boot=BOOT))


async def _history(people: People, run: str) -> None:
    """A pool's history is made, written at a clean stop, read and written again by the next leader."""
    await people.make_pool(run, 1)
    await _asked(people, f"{run}-1", run, 1)
    await people.restart()
    await _asked(people, f"{run}-2", run, 2)


async def _asked(people: People, claim: str, pool: str, count: int) -> None:
    """A claim is answered and in the history: it is one of so many that were ever made.

    Or the time in which it came does not count, since nobody led for two sizing intervals after it.
    """
    await people.claim(claim, pool)
    await people.until_answered(claim)
    came = [
        datetime.fromisoformat(each["metadata"]["creationTimestamp"]).timestamp()
        for each in await people.claims()
        if each["metadata"]["name"].startswith(pool)
    ]

    def known(histories: list[Json]) -> bool:
        kept = [each["binaryData"] for each in histories if each["metadata"]["name"].endswith(pool)]
        if not kept:
            return False
        history = decode(base64.b64decode(kept[0][HISTORY_KEY]))
        unseen = sum(
            at < history.since or any(start - 1 <= at <= end for start, end in history.gaps) for at in came
        )
        return count - unseen <= len(history.arrivals) <= count

    await people.until(f"{claim} in the history", people.histories, known)


# ---- labels


async def _resync(people: People, _: str) -> None:
    await people.label_vms({LABEL_POOL_UID: None})
    await people.until(
        "all labels back",
        people.vms,
        lambda vms: all(LABEL_POOL_UID in each["metadata"]["labels"] for each in vms),
    )


async def _relabel(people: People, run: str) -> None:
    """A person offers a VM in use to others, and takes a free one out of the pool."""
    await _bind(people, run)
    await people.until_rest()
    await people.label_vms({LABEL_STATE: Mark.CLAIMED}, which=pooled)
    await people.label_vms(
        {LABEL_STATE: Mark.POOLED}, which=lambda vm: LABEL_CLAIM_UID in vm["metadata"]["labels"]
    )


# ---- deaths


async def _going(people: People, run: str) -> None:
    """A claim that is deleted between the two writes, and stays for a finalizer of somebody else's."""
    await people.claim(run, finalizers=[THEIR_FINALIZER])
    await people.until(
        "the claim under deletion",
        people.claims,
        lambda claims: all("deletionTimestamp" in each["metadata"] for each in claims),
    )
    await people.until("its VM gone", people.vms, lambda vms: not [*filter(claimed, vms)])
    await people.change_claim(run, {"metadata": {"finalizers": None}})


async def _delete_it(people: People, run: str) -> None:
    await people.give_back(run)


async def _take_over(people: People, run: str) -> None:
    """The leader stops, and the next one has a claim to serve."""
    await people.restart()
    await people.claim(run)
    await people.until_answered(run)


def _on(address: str, kind: Kind) -> tuple[Fault, ...]:
    return (Fault(address, 1, kind),)


_ALL = (
    Scenario("bind", "a claim, a warm VM", _bind),
    Scenario("burst", "four claims at once, two warm VMs", _burst, warm=2),
    Scenario("release", "a bound claim is deleted", _release),
    Scenario("fickle", "a claim is deleted at once and made again under its name", _fickle, warm=2),
    Scenario("expiry", "a lifetime of a second ends", _expiry),
    Scenario("time-out", "nobody serves the claim in time, and its end is removed", _time_out, warm=0),
    Scenario("order", "a claim on an empty pool orders a VM", _order, warm=0),
    Scenario("line", "a place in line moves up", _line, warm=0),
    Scenario("lost", "a person deletes a VM in use", _lost),
    Scenario("scale-down", "from three warm VMs to one", _scale_down, warm=3),
    Scenario("squeeze", "two claims while three warm VMs become one", _squeeze, warm=3),
    Scenario("pool-life", "a pool is made, filled and deleted", _pool_life, warm=0),
    Scenario(
        "pool-foreground", "a pool is deleted in the foreground under a claim", _pool_foreground, warm=0
    ),
    Scenario("roll-out", "a pool's template changes, one VM after the other follows", _roll_out, warm=0),
    Scenario("reference", "a pool whose template refers to a Secret", _reference, warm=0),
    Scenario("history", "what is asked of a pool is remembered by the next leader", _history, warm=0),
    Scenario("resync", "a person strips labels", _resync),
    Scenario("relabel", "a person sets states by hand", _relabel),
    Scenario("take-over", "the leader stops, the next one begins", _take_over),
    Scenario(
        "reply-1-lost",
        "the reply to write 1 is lost, and more goes wrong",
        _bind,
        provoked=_on("hand-over/vm", Kind.CUT_AFTER),
    ),
    Scenario(
        "reply-2-lost",
        "the reply to write 2 is lost, and more goes wrong",
        _bind,
        provoked=_on("hand-over/claim", Kind.CUT_AFTER),
    ),
    Scenario(
        "creation-lost",
        "the reply to a creation is lost, and more goes wrong",
        _bind,
        provoked=_on("pool/create", Kind.CUT_AFTER),
    ),
    Scenario(
        "pool-doubted",
        "a pool's status is refused as if the pool were another",
        _bind,
        provoked=_on("pool/status", Kind.TEST_FAILED),
    ),
    Scenario(
        "dead-between",
        "killed between the two writes: repair publishes",
        _bind,
        provoked=_on("hand-over/vm", Kind.KILL_AFTER),
    ),
    Scenario(
        "dead-going",
        "killed between the two writes, and the claim deleted meanwhile: repair destroys",
        _going,
        provoked=_on("hand-over/vm", Kind.KILL_AFTER),
        meanwhile=_delete_it,
    ),
)
SCENARIOS = {each.name: each for each in _ALL}
