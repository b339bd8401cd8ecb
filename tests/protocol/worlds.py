"""The worlds that are explored: who is there, and how often each thing may go wrong. Data.

Small ones each with a theme; what can go wrong in a big one nearly always can in a small one of its theme.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BUDGETS = (
    "crash",  # a controller dies and comes back with an empty memory
    "fault",  # a write's reply is lost: it was applied, or not, or will be later
    "refusal",  # 409, 429, or admission says no, though nothing is wrong
    "delete-claim",
    "recreate-claim",
    "extend",  # a user lengthens a claim's lifetime
    "delete-vm",  # by a person
    "relabel",  # by a person
    "free-vm",  # a person takes a VM's owner off
    "remake-vm",  # a person makes a VM under the name of one that is gone
    "clone",  # a person copies a VM with all its labels
    "touch",  # KubeVirt writes to a VM
    "delete-pool",
    "scale",
    "roll-out",  # a user changes the pool's template
    "time",  # the clock jumps past the timeout or lifetime
    "old-list",  # a list of claims from an API server that lags
)


@dataclass(frozen=True)
class World:
    """One world. `budget` says how often what may happen at most; what is not named never does."""

    name: str
    about: str
    vms: int = 2
    claims: int = 1
    controllers: int = 1
    tasks: int = 1  # that one controller has under way at once
    budget: Mapping[str, int] = field(default_factory=dict)
    deletion: tuple[str, ...] = ("background",)  # how claims are deleted
    pool_deletion: tuple[str, ...] = ("background",)
    relabels: tuple[str, ...] = ("pooled",)
    creates: int = 0  # VMs that each controller may make; more: the quota refuses
    refill: bool = False  # else the pool is suspended: nothing is made, nothing is surplus
    warm: int | None = None  # the pool's target; None: as many as there are VMs
    scale_to: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    lifetime: str | None = None
    timeout: str | None = None
    when_empty: str = "Order"
    jump: int = 1200  # seconds by which the clock jumps
    tells: bool = False  # waiting claims are told why
    resync: bool = False  # labels are put back from an uncached list
    unseen: bool = False  # two lead from the beginning, and the new one has not seen the last VM yet
    allowed: Mapping[str, str] = field(default_factory=dict)
    big: bool = False  # for `make explore` alone

    @property
    def strict(self) -> bool:
        """Nothing here excuses that a claim holds two VMs for a while."""
        return self.controllers == 1 and not self.budget.get("crash") and not self.budget.get("relabel")

    def left(self) -> tuple[int, ...]:
        return tuple(self.budget.get(name, 0) for name in BUDGETS)


def _world(name: str, about: str, *, budget: dict[str, int] | None = None, **settings: Any) -> World:
    return World(name, about, budget=budget or {}, **settings)


FOREGROUND_WINDOW = (
    "A pool deleted in the foreground while a VM of it is handed over: the garbage collector deletes by the "
    "owner that it read before. Nothing but Kubernetes can close that; the claim becomes Lost, PoolDeleted."
)
ORPHANED_UNTOLD = (
    "A claim deleted with orphan in the instant of its hand-over: if the claim is gone before its VM is "
    "looked at, the VM is its user's like any orphaned one, although no status ever named it."
)
STRIPPED_UNTOLD = (
    "A person strips the pool's UID off a VM, and the leader is lost before it told the claim that has it: "
    "no watch shows the VM to the next one, and only a claim's status would say whose it was. It ends with "
    "its claim."
)

WORLDS: tuple[World, ...] = (
    _world("hand-over", "one claim, two VMs, nothing goes wrong"),
    _world("crash", "the controller dies twice, a reply is lost", budget={"crash": 2, "fault": 1}),
    _world("crash-two", "two claims, a crash, a lost reply", claims=2, budget={"crash": 1, "fault": 1}),
    _world("lost", "two lost replies, one crash", budget={"crash": 1, "fault": 2}),
    _world("lost-alone", "two lost replies, nobody dies", budget={"fault": 2}),
    _world(
        "refused",
        "refusals without a reason",
        budget={"refusal": 2, "fault": 1},
    ),
    _world(
        "delete",
        "a claim is deleted and made again",
        budget={"crash": 1, "fault": 1, "delete-claim": 1, "recreate-claim": 1},
    ),
    _world(
        "people",
        "people delete a VM and a claim",
        budget={"crash": 1, "delete-vm": 1, "delete-claim": 1, "recreate-claim": 1},
    ),
    _world("leaders", "an old leader beside the new one", controllers=2, budget={"fault": 1}),
    _world("leaders-two", "two leaders, two claims", controllers=2, claims=2),
    _world(
        "leaders-delete", "two leaders, a claim deleted", vms=1, controllers=2, budget={"delete-claim": 1}
    ),
    _world(
        "leaders-again",
        "two leaders, a claim deleted and made again",
        vms=1,
        controllers=2,
        budget={"delete-claim": 1, "recreate-claim": 1},
    ),
    _world("leaders-crash", "two leaders, one dies", controllers=2, budget={"crash": 1}),
    _world("leaders-vm", "two leaders, a person deletes a VM", controllers=2, budget={"delete-vm": 1}),
    _world(
        "timeout",
        "two leaders, a claim times out",
        controllers=2,
        timeout="5m",
        budget={"time": 1},
        tells=True,
    ),
    _world(
        "scale",
        "two leaders scale a pool down under a claim",
        when_empty="Wait",
        controllers=2,
        refill=True,
        budget={"scale": 1},
        scale_to=0,
    ),
    _world(
        "expiry",
        "a lifetime ends, or is lengthened at that instant; two leaders",
        vms=1,
        controllers=2,
        lifetime="10m",
        budget={"time": 1, "extend": 1},
    ),
    _world(
        "foreground",
        "a claim is deleted in the foreground",
        vms=1,
        deletion=("foreground",),
        budget={"crash": 1, "fault": 1, "delete-claim": 1},
    ),
    _world(
        "orphan",
        "a claim is deleted so that its VM stays",
        vms=1,
        deletion=("orphan",),
        budget={"crash": 1, "fault": 1, "delete-claim": 1},
        allowed={"leak: vm-1 is nobody's": ORPHANED_UNTOLD},
    ),
    _world(
        "pool",
        "a pool is deleted under a claim",
        budget={"crash": 1, "delete-pool": 1, "touch": 1},
    ),
    _world(
        "pool-foreground",
        "a pool is deleted in the foreground under a claim",
        pool_deletion=("foreground",),
        vms=1,
        budget={"crash": 1, "delete-pool": 1, "touch": 1},
        allowed={"I3: the garbage collector deleted vm-1, which claim-1 ": FOREGROUND_WINDOW},
    ),
    _world("pool-leaders", "two leaders, a pool deleted", controllers=2, vms=1, budget={"delete-pool": 1}),
    _world(
        "pool-expiry",
        "a pool is deleted, and then a lifetime ends",
        lifetime="10m",
        budget={"crash": 1, "delete-pool": 1, "time": 1},
    ),
    _world("told", "two leaders tell a claim why it waits", controllers=2, claims=2, vms=1, tells=True),
    _world("old-list", "a list of claims lacks a young one", vms=1, budget={"crash": 1, "old-list": 1}),
    _world("relabel", "a person sets a claimed VM's state back", vms=1, claims=2, budget={"relabel": 1}),
    _world(
        "clone",
        "a person copies a VM with all its labels",
        vms=1,
        claims=2,
        budget={"clone": 1, "delete-claim": 1, "crash": 1},
    ),
    _world(
        "refill",
        "VMs are made for what was taken, replies to creations are lost",
        vms=1,
        tasks=2,
        refill=True,
        creates=2,
        budget={"fault": 2},
        limits={"maxReplicas": 2},
    ),
    _world(
        "refill-crash",
        "and the controller dies",
        vms=1,
        tasks=2,
        refill=True,
        creates=3,
        budget={"fault": 1, "crash": 1},
        limits={"maxReplicas": 3},
    ),
    _world(
        "labels",
        "a person strips, sets and forges labels; they are put back",
        vms=1,
        relabels=("pooled", "claimed", "stripped"),
        resync=True,
        budget={"relabel": 1, "delete-claim": 1, "delete-vm": 1},
    ),
    _world("forged", "a person gives a VM a claim's UID", relabels=("forged",), budget={"relabel": 1}),
    _world("freed", "a person takes a VM from its pool", budget={"free-vm": 1, "crash": 1}),
    _world(
        "namesake",
        "a person makes a VM under the name of one that is gone",
        vms=1,
        budget={"delete-vm": 1, "remake-vm": 1, "delete-claim": 1, "crash": 1},
    ),
    _world(
        "pool-unseen",
        "a pool is deleted, and the leader that lets it go has not seen its youngest VM",
        vms=1,
        controllers=2,
        unseen=True,
        budget={"delete-pool": 1, "touch": 1},
    ),
    _world(
        "roll-out",
        "the template changes, and VMs of the old one are removed while they are handed over",
        vms=2,
        tasks=2,
        refill=True,
        creates=2,
        budget={"roll-out": 1, "scale": 1},
        scale_to=1,
    ),
    _world(
        "scale-touched",
        "two leaders scale a pool down under a claim, and KubeVirt writes to a VM",
        when_empty="Wait",
        controllers=2,
        refill=True,
        budget={"scale": 1, "touch": 1},
        scale_to=0,
        big=True,
    ),
    _world(
        "pool-foreground-two",
        "a pool of two VMs is deleted in the foreground under a claim",
        pool_deletion=("foreground",),
        budget={"crash": 1, "delete-pool": 1, "touch": 1},
        allowed={
            f"I3: the garbage collector deleted vm-{number}, which claim-1 ": FOREGROUND_WINDOW
            for number in (1, 2)
        },
        big=True,
    ),
    _world(
        "two-by-two",
        "two claims, two VMs, two leaders, a crash, a lost reply",
        claims=2,
        controllers=2,
        budget={"crash": 1, "fault": 1},
        big=True,
    ),
    _world(
        "expiry-crash",
        "a lifetime ends, or is lengthened at that instant; two leaders, one dies",
        vms=1,
        controllers=2,
        lifetime="10m",
        budget={"time": 1, "extend": 1, "crash": 1},
        big=True,
    ),
    _world(
        "three",
        "three claims, three VMs, and a copy of one by a person; a crash, a claim deleted",
        vms=3,
        claims=3,
        budget={"crash": 1, "delete-claim": 1, "clone": 1},
        big=True,
    ),
    _world(
        "three-leaders",
        "three claims, three VMs, two leaders, a lost reply",
        vms=3,
        claims=3,
        controllers=2,
        budget={"fault": 1},
        big=True,
    ),
    _world(
        "side-by-side",
        "two tasks at once in each of two leaders",
        claims=2,
        controllers=2,
        tasks=2,
        budget={"fault": 1},
        big=True,
    ),
    _world(
        "leaders-everything",
        "two leaders, a crash, a lost reply, a claim deleted and made again",
        vms=1,
        controllers=2,
        budget={"crash": 1, "fault": 1, "delete-claim": 1, "recreate-claim": 1},
        big=True,
    ),
    _world(
        "leaders-delete-two",
        "two leaders, two VMs, a claim deleted in each way",
        controllers=2,
        deletion=("background", "foreground", "orphan"),
        budget={"delete-claim": 1},
        allowed={f"leak: vm-{number} is nobody's": ORPHANED_UNTOLD for number in (1, 2)},
        big=True,
    ),
    _world(
        "roll-out-crash",
        "the template changes while VMs are handed over, and the controller dies",
        tasks=2,
        refill=True,
        creates=2,
        budget={"roll-out": 1, "crash": 1},
    ),
    _world(
        "labels-leaders",
        "a person strips and sets labels under two leaders",
        vms=1,
        controllers=2,
        relabels=("pooled", "claimed", "stripped", "forged"),
        resync=True,
        budget={"relabel": 1, "delete-claim": 1},
        allowed={"leak: vm-1 is held for claim-1-1": STRIPPED_UNTOLD},
        big=True,
    ),
)


def named(name: str) -> World:
    return next(world for world in WORLDS if world.name == name)
