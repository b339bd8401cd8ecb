"""The acts of the agenda in one namespace: what each is called, and who does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from crds.names import Mark
from simulator.api import ApiError
from tests.soak.agenda import Act, Entry
from tests.soak.estate import Estate
from tests.support.site import SIMULATOR
from tests.trials.hands import GONE_OR_CHANGED, wish
from tests.trials.stage import Scene

Json = dict[str, Any]

_STATES = (Mark.POOLED, Mark.POOLED, Mark.CLAIMED)
_LIFETIMES = ("2s", "10s", "1h", None)


class People(Estate):
    """Everybody in one namespace."""

    def __init__(self, scene: Scene, done: Counter[str]) -> None:
        super().__init__(scene, done)
        self._acts: dict[Act, Callable[[Random], Awaitable[None]]] = {
            Act.CLAIM: self.claim,
            Act.GIVE_BACK: self.give_back,
            Act.GIVE_BACK_IN_THE_FOREGROUND: self.give_back_in_the_foreground,
            Act.KEEP_THE_VM: self.keep_the_vm,
            Act.CLAIM_ANEW: self.claim_anew,
            Act.EXTEND: self.extend,
            Act.SCALE: self.scale,
            Act.SUSPEND: self.suspend,
            Act.ROLL_OUT: self.roll_out,
            Act.AGE: self.age,
            Act.SPOIL: self.spoil,
            Act.REPLACE_A_POOL: self.replace_a_pool,
            Act.CRASH: self.crash,
            Act.LOSE_A_NODE: self.lose_a_node,
            Act.PAUSE: self.pause,
            Act.DELETE_A_WARM_VM: self.delete_a_warm_vm,
            Act.DELETE_A_VM_IN_USE: self.delete_a_vm_in_use,
            Act.RELABEL: self.say_that_it_is_pooled,
            Act.STRIP: self.strip_a_label,
        }

    async def do(self, entry: Entry) -> None:
        """Do it. Who meets an API server that is away, or an object that has changed, lets it be."""
        try:
            await self._acts[entry.act](Random(entry.seed))
        except ApiError as error:
            if error.status not in GONE_OR_CHANGED and not error.passing:
                raise

    # ---- with claims

    async def keep_the_vm(self, random: Random) -> None:
        """Delete the claim so that its VM stays, and is a person's own from then on."""
        await self._give_back(random, "kept by people", "Orphan")

    async def claim_anew(self, random: Random) -> None:
        if there := self._scene.crowd.living():
            self.done["claims"] += 1
            self.done["anew under the same name"] += 1
            propagation = random.choice(("Background", "Foreground"))
            await self._scene.crowd.replace(
                random.choice(there), self._pool(random), propagation, **wish(random)
            )

    async def extend(self, random: Random) -> None:
        """Or shorten."""
        if there := self._scene.crowd.living():
            self.done["lifetimes changed"] += 1
            await self._scene.crowd.patch(random.choice(there), lifetime=random.choice(_LIFETIMES))

    # ---- with guests

    async def crash(self, random: Random) -> None:
        how = random.choice(("crash-after", "shutdown-after"))
        await self._command(random, "guests crashed", how, f"{random.randint(1, 50)}ms")

    async def lose_a_node(self, random: Random) -> None:
        await self._command(random, "nodes lost", "fail", "lost-node")

    async def pause(self, random: Random) -> None:
        await self._command(random, "guests paused", "pause", "true")

    async def _command(self, random: Random, what: str, key: str, value: str) -> None:
        """By an annotation that the stand-in heeds."""
        mark = random.choice(_STATES)
        if there := await self._vms_in(mark):
            self.done[what] += 1
            patch = {"metadata": {"annotations": {f"{SIMULATOR}/{key}": value}}}
            await self._scene.stage.api.merge_patch(self._path(random.choice(there)), patch)
