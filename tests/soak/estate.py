"""The pools of one namespace, and what people do to them.

What a pool is meant to be is kept here, so that before each rest everything can be put right, whatever was
left half done when the API server went away.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import orjson

from crds.names import API_VERSION, CLAIMS, POOLS
from simulator.api import ApiError
from tests.support.manifests import pool_manifest
from tests.support.site import SIMULATOR, vm_template
from tests.trials.hands import Hands
from tests.trials.stage import BOOT, VMS, Scene, TrialError, suppress_missing

Json = dict[str, Any]

POOL_NAMES = ("quick", "slow")
WARM = 4
_BOOTS = {"quick": BOOT, "slow": "500ms..2s"}
_BROKEN = ("crash-loop", "image", "hang", "unschedulable", "failed-create")
_EDITION = "soak.example/edition"
_STRATEGIES: tuple[Json, ...] = (
    {"type": "Replenish", "maxSurge": 1, "warmFloor": "100%"},
    {"type": "Recreate", "maxSurge": 1, "warmFloor": "100%"},
    {"type": "RollingUpdate", "maxSurge": 1, "warmFloor": "100%"},
    {"type": "RollingUpdate", "maxSurge": 3, "warmFloor": "50%"},
    {"type": "RollingUpdate", "maxSurge": 0, "warmFloor": "50%"},
)
_FAIL = f"{SIMULATOR}/fail"
_BOUND = 60.0  # seconds in which a pool can be put right
_LIMITS = {"maxReplicas": 60, "maxConcurrentCreations": 10, "maxConcurrentDeletions": 10}
_READINESS = {"deadline": "15s", "unreadyGrace": "1s"}


class Estate(Hands):
    """Hands that own pools, too."""

    def __init__(self, scene: Scene, done: Counter[str]) -> None:
        super().__init__(scene, done=done)
        self._edition = 0
        self._scene.warm |= dict.fromkeys(POOL_NAMES, WARM)

    # ---- what people do

    async def suspend(self, random: Random) -> None:
        """Or go on."""
        self.done["suspended"] += 1
        await self._change(self._pool(random), {"suspend": random.random() < 0.5})

    async def roll_out(self, random: Random) -> None:
        """Another edition, which boots; also of what never did."""
        self.done["roll-outs"] += 1
        strategy = random.choice(_STRATEGIES)
        await self._change(self._pool(random), {"updateStrategy": strategy, **self._template(None)})

    async def spoil(self, random: Random) -> None:
        """Another edition, which never gets ready."""
        self.done["roll-outs that never boot"] += 1
        await self._change(self._pool(random), self._template(random.choice(_BROKEN)))

    async def age(self, random: Random) -> None:
        """VMs are replaced when they are so old; until everything is put right."""
        self.done["ages bounded"] += 1
        await self._change(self._pool(random), {"maxWarmAge": random.choice(("10s", "30s", "1h"))})

    def _template(self, fail: str | None) -> Json:
        self._edition += 1
        annotations = {_EDITION: str(self._edition), _FAIL: fail}
        return {"template": {"metadata": {"annotations": annotations}}}

    async def _change(self, name: str, spec: Json) -> None:
        await self._scene.stage.api.merge_patch(self._path_of(name), {"spec": spec})

    # ---- putting right

    async def mend(self) -> None:
        """Every pool is there, boots what it should, is not suspended, and has the size that it should."""
        for name, warm in self._scene.warm.items():
            spec = {"suspend": False, "maxWarmAge": None, "warm": {"replicas": warm}}
            await self._insist(f"pool {name} put right", partial(self._put_right, name, spec))
        await self._insist("what people kept cleared away", self.clear_away)

    async def clear_away(self) -> None:
        """Delete the VMs that people have kept: they are nobody's but theirs."""
        for vm in await self._scene.vms():
            if not vm["metadata"].get("ownerReferences"):
                self._scene.auditor.excuse(vm["metadata"]["uid"], "it is a person's own")
                await self._scene.stage.api.delete(
                    f"{VMS.format(self._scene.namespace)}/{vm['metadata']['name']}"
                )

    async def leave(self) -> None:
        """Delete every claim and pool, and wait until nothing of ours is left."""
        await self._scene.crowd.delete_all()
        for name in list(self._scene.warm):
            del self._scene.warm[name]
            await self._insist(f"pool {name} deleted", partial(self._delete_pool, name))
        await self._insist("what people kept cleared away", self.clear_away)
        await self._insist("nothing left", self._nothing_left)

    async def _delete_pool(self, name: str) -> None:
        with suppress_missing():
            await self._scene.stage.api.delete(self._path_of(name))

    async def _nothing_left(self) -> None:
        api, namespace = self._scene.stage.api, self._scene.namespace
        bullpen, vms = f"/apis/{API_VERSION}/namespaces/{namespace}", VMS.format(namespace)
        vmis = vms.replace("virtualmachines", "virtualmachineinstances")
        paths = (f"{bullpen}/{CLAIMS}", f"{bullpen}/{POOLS}", vms, vmis)
        for path in paths:
            if items := (await api.list(path)).items:
                first = orjson.loads(bytes(items[0]))["metadata"]
                raise TrialError(f"{len(items)} of {path.rsplit('/', 1)[1]}, like {first}")

    async def _put_right(self, name: str, spec: Json) -> None:
        try:
            pool = orjson.loads(await self._scene.stage.api.get(self._path_of(name)))
            if "deletionTimestamp" in pool["metadata"]:
                raise TrialError(f"pool {name} is being deleted still")
            annotations = pool["spec"]["template"].get("metadata", {}).get("annotations", {})
            await self._change(name, spec | (self._template(None) if _FAIL in annotations else {}))
        except ApiError as error:
            if error.status != 404:
                raise
            await self._scene.stage.api.post(self._path_of(""), self._manifest(name))

    def _manifest(self, name: str) -> Json:
        return pool_manifest(
            name,
            template=vm_template(boot=_BOOTS[name]),
            warm={"replicas": self._scene.warm[name]},
            limits=_LIMITS,
            readiness=_READINESS,
        )

    def _path_of(self, name: str) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self._scene.namespace}/{POOLS}/{name}".rstrip("/")

    async def _insist(self, what: str, act: Callable[[], Awaitable[None]]) -> None:
        deadline = time.monotonic() + _BOUND
        while True:
            try:
                await act()
            except (ApiError, TrialError) as error:
                if time.monotonic() > deadline:
                    raise TrialError(f"not {what} within {_BOUND:g} s: {error}") from error
                await asyncio.sleep(0.3)
            else:
                return
