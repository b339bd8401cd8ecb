"""What people do with claims, pools and VMs in one namespace, each act by chance.

What they do to a VM by hand is excused before it is done; what the controller makes of it is not.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from crds.names import LABEL_CLAIM_UID, LABEL_POOL_UID, LABEL_STATE, Mark
from tests.trials.stage import VMS, Scene

Json = dict[str, Any]

MOST = 40  # claims that live at once
GONE_OR_CHANGED = frozenset({404, 409, 422})  # it went away, or is not what it was when it was looked at
_PERSON = "?fieldManager=kubectl-label"  # how the auditor knows a person's hand
_MARKS = (Mark.CLAIMED, Mark.POOLED)

WISHES: list[tuple[int, Json]] = [
    (8, {}),
    (2, {"lifetime": "2s"}),
    (2, {"timeout": "2s"}),
    (1, {"whenEmpty": {"policy": "Fail"}}),
    (1, {"whenEmpty": {"policy": "Wait"}, "timeout": "5s"}),
    (1, {"whenEmpty": {"policy": "OrderAfter", "after": "1s"}}),
    (1, {"metadata": {"labels": {"team": "chaos"}}}),
    (1, {"ttlSecondsAfterFinished": 1, "lifetime": "1s"}),
]


class Hands:
    """Acts in one namespace. `done` counts what was done: without anything to act on, nothing was."""

    def __init__(self, scene: Scene, *, done: Counter[str] | None = None, most: int = MOST) -> None:
        self.done: Counter[str] = Counter() if done is None else done
        self._scene = scene
        self._most = most
        self._number = 0
        self._replacing = False

    # ---- people with claims

    async def claim(self, random: Random) -> None:
        if len(self._scene.crowd.living()) >= self._most:
            return
        self._number += 1
        self.done["claims"] += 1
        await self._scene.crowd.create(f"claim-{self._number:05}", self._pool(random), **wish(random))

    async def give_back(self, random: Random) -> None:
        await self._give_back(random, "given back")

    async def give_back_in_the_foreground(self, random: Random) -> None:
        await self._give_back(random, "in the foreground", "Foreground")

    async def _give_back(self, random: Random, how: str, propagation: str = "Background") -> None:
        if there := self._scene.crowd.living():
            self.done[how] += 1
            await self._scene.crowd.delete(random.choice(there), propagation)

    # ---- people with pools

    async def scale(self, random: Random) -> None:
        self.done["scaled"] += 1
        await self._scene.scale(self._pool(random), random.randint(0, 12))

    async def replace_a_pool(self, random: Random) -> None:
        """Delete it and make one of the same name: claims keep their VMs, those that wait get new ones."""
        if self._replacing:
            return
        self._replacing = True
        try:
            self.done["pools replaced"] += 1
            await self._scene.replace_pool(self._pool(random))
        finally:
            self._replacing = False

    def _pool(self, random: Random) -> str:
        return random.choice(list(self._scene.warm))

    # ---- people with VMs

    async def delete_a_warm_vm(self, random: Random) -> None:
        if vm := await self._some_vm(random, Mark.POOLED, "deletes"):
            self.done["warm VMs deleted"] += 1
            await self._delete(vm)

    async def delete_a_vm_in_use(self, random: Random) -> None:
        """Its claim is Lost, or gets another one if it was not published yet."""
        if vm := await self._some_vm(random, Mark.CLAIMED, "deletes"):
            self.done["VMs in use deleted"] += 1
            await self._delete(vm)

    async def say_that_it_is_pooled(self, random: Random) -> None:
        """The worst that a label can say: a VM in use offered to all. The controller must not believe it."""
        if vm := await self._some_vm(random, Mark.CLAIMED, "relabels"):
            self.done["relabelled"] += 1
            await self._label(vm, LABEL_STATE, Mark.POOLED.value)

    async def strip_a_label(self, random: Random) -> None:
        if vm := await self._some_vm(random, random.choice(_MARKS), "strips a label of"):
            self.done["stripped"] += 1
            await self._label(vm, random.choice([LABEL_STATE, LABEL_POOL_UID, LABEL_CLAIM_UID]), None)

    async def _some_vm(self, random: Random, mark: str, why: str) -> Json | None:
        there = await self._vms_in(mark)
        if not there:
            return None
        found = random.choice(there)
        self._scene.auditor.excuse(found["metadata"]["uid"], f"a person {why} it")
        return found

    async def _vms_in(self, mark: str) -> list[Json]:
        return [
            vm
            for vm in await self._scene.vms()
            if vm["metadata"].get("labels", {}).get(LABEL_STATE) == mark
            and "deletionTimestamp" not in vm["metadata"]
        ]

    async def _delete(self, vm: Json) -> None:
        # As it was looked at: what becomes of it in between is another story, and excused by nobody.
        meta = vm["metadata"]
        await self._scene.stage.api.delete(
            self._path(vm), uid=meta["uid"], resourceVersion=meta["resourceVersion"]
        )

    async def _label(self, vm: Json, key: str, value: str | None) -> None:
        # Of the very state that was looked at: a person's hand on another one is another story.
        meta = {"labels": {key: value}, "resourceVersion": vm["metadata"]["resourceVersion"]}
        await self._scene.stage.api.merge_patch(self._path(vm) + _PERSON, {"metadata": meta})

    def _path(self, vm: Json) -> str:
        return f"{VMS.format(self._scene.namespace)}/{vm['metadata']['name']}"


def wish(random: Random) -> Json:
    """What somebody asks for."""
    [(_, found)] = random.choices(WISHES, [weight for weight, _ in WISHES])
    return found
