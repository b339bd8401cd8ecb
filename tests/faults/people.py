"""What people do in a lane, past the proxy: they make pools and claims, delete, look, and wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Any

import orjson

from auditor import Auditor
from crds.names import API_VERSION, CLAIMS, HISTORY_PREFIX, LABEL_POOL_UID, LABEL_STATE, POOLS, Mark
from simulator.api import Api, ApiError
from tests.support.manifests import claim_manifest, pool_manifest
from tests.support.site import vm_template
from tests.trials.accounts import complaints

BOOT = "100ms..300ms"
PATIENCE = 60.0  # seconds for anything; the controller's longest pause is ten, the garbage collector's twenty
_LOOK = 0.1
_NOT_FOUND = 404

Json = dict[str, Any]


async def _nothing() -> None:
    return None


class People:
    """`warm` is what each pool that is there wants; `restart` stops the controller in an orderly way."""

    def __init__(self, api: Api, namespace: str, auditor: Auditor) -> None:
        self.api = api
        self.auditor = auditor
        self.warm: dict[str, int] = {}
        self.restart: Callable[[], Awaitable[None]] = _nothing
        self._bullpen = f"/apis/{API_VERSION}/namespaces/{namespace}"
        self._core = f"/api/v1/namespaces/{namespace}"
        self._vms = f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines"

    # ---- pools

    async def make_pool(self, name: str = "pool", warm: int = 1, **spec: Any) -> None:
        manifest = pool_manifest(
            name, **{"template": vm_template(boot=BOOT), "warm": {"replicas": warm}, **spec}
        )
        await self.api.post(f"{self._bullpen}/{POOLS}", manifest)
        self.warm[name] = warm

    async def change_pool(self, name: str, spec: Json) -> None:
        """Change its spec, unless a fault made it vanish."""
        try:
            await self.api.merge_patch(f"{self._bullpen}/{POOLS}/{name}", {"spec": spec})
        except ApiError as error:
            if error.status != _NOT_FOUND or name in self.warm:
                raise

    async def scale(self, warm: int, name: str = "pool") -> None:
        await self.change_pool(name, {"warm": {"replicas": warm}})
        self.warm[name] = warm

    async def make_secret(self, name: str) -> None:
        await self.api.post(f"{self._core}/secrets", {"metadata": {"name": name}})

    async def delete_pool(self, name: str, propagation: str = "Background") -> None:
        self.warm.pop(name, None)
        await self._delete(f"{self._bullpen}/{POOLS}/{name}?propagationPolicy={propagation}")

    # ---- claims

    async def claim(
        self, name: str, pool: str = "pool", *, finalizers: Iterable[str] = (), **spec: Any
    ) -> None:
        manifest = claim_manifest(name, pool, **spec)
        manifest["metadata"]["finalizers"] = list(finalizers)
        await self.api.post(f"{self._bullpen}/{CLAIMS}", manifest)

    async def change_claim(self, name: str, patch: Json) -> None:
        await self.api.merge_patch(f"{self._bullpen}/{CLAIMS}/{name}", patch)

    async def give_back(self, *names: str, propagation: str = "Background") -> None:
        """Delete these claims, whether they are there or not."""
        paths = (f"{self._bullpen}/{CLAIMS}/{name}?propagationPolicy={propagation}" for name in names)
        await asyncio.gather(*map(self._delete, paths))

    async def give_all_back(self) -> None:
        """Delete all claims that are there now, people's finalizers too, and wait until they are gone."""
        doomed = [each["metadata"] for each in await self.claims()]
        for meta in doomed:
            if meta.get("finalizers"):
                await self.change_claim(meta["name"], {"metadata": {"finalizers": None}})
        await self.give_back(*(meta["name"] for meta in doomed))
        await self._until_gone(self.claims, doomed)

    # ---- VMs

    async def delete_vms(
        self, *, which: Callable[[Json], bool] = bool, why: str = "a person did"
    ) -> list[str]:
        """Delete VMs as a person does, and wait until they are gone; their names."""
        doomed = [vm["metadata"] for vm in await self.vms() if which(vm)]
        for meta in doomed:
            self.auditor.excuse(meta["uid"], why)
            await self._delete(f"{self._vms}/{meta['name']}")
        await self._until_gone(self.vms, doomed)
        return [meta["name"] for meta in doomed]

    async def label_vms(self, labels: dict[str, str | None], *, which: Callable[[Json], bool] = bool) -> None:
        """Set labels as a person does; None takes one off."""
        for vm in await self.vms():
            if which(vm):
                path = f"{self._vms}/{vm['metadata']['name']}?fieldManager=kubectl-label"
                await self.api.merge_patch(path, {"metadata": {"labels": labels}})

    async def vanish(self, plural: str) -> None:
        """Make what a held watch is about go away."""
        if plural == CLAIMS:
            await self.give_all_back()
        elif plural == POOLS:
            for name in [name for name in self.warm if name != "pool"]:
                await self.delete_pool(name)
        else:
            await self.delete_vms()

    # ---- look

    async def claims(self) -> list[Json]:
        return await self._listed(f"{self._bullpen}/{CLAIMS}")

    async def pools(self) -> list[Json]:
        return await self._listed(f"{self._bullpen}/{POOLS}")

    async def histories(self) -> list[Json]:
        """What is kept of each pool's demand."""
        found = await self._listed(f"{self._core}/configmaps")
        return [each for each in found if each["metadata"]["name"].startswith(HISTORY_PREFIX)]

    async def vms(self) -> list[Json]:
        return await self._listed(self._vms)

    async def unrest(self) -> list[str]:
        """What is not yet as it must be at rest; empty when all is."""
        try:
            claims, vms, pools = await asyncio.gather(self.claims(), self.vms(), self.pools())
        except ApiError as error:
            return [str(error)]
        found = complaints(claims, vms, sum(self.warm.values()))
        there = {pool["metadata"]["name"]: pool for pool in pools}
        found += [f"pool {name} is there still" for name in there.keys() - self.warm.keys()]
        for name, warm in self.warm.items():
            pool = there.get(name, {})
            ready = pool.get("status", {}).get("warm", {}).get("ready")
            if ready != warm:
                found.append(f"pool {name} says that {ready} of {warm} VMs are warm")
            # Else the next run might begin before this one is told, and end as the status says already.
            told = pool.get("status", {}).get("instances", {}).get("claimed")
            uid = pool.get("metadata", {}).get("uid")
            taken = sum(claimed(vm) and vm["metadata"]["labels"].get(LABEL_POOL_UID) == uid for vm in vms)
            if told != taken:
                found.append(f"pool {name} says that {told} VMs are claimed, of {taken}")
        return found

    # ---- wait

    async def until(
        self, what: str, look: Callable[[], Any], fits: Callable[[Any], Any], seconds: float = PATIENCE
    ) -> Any:
        """Look until it fits. AssertionError with what was seen last, when it does not in time."""
        deadline = monotonic() + seconds
        while not fits(seen := await look()):
            assert monotonic() < deadline, f"not {what} within {seconds:g} s: {_short(seen)}"
            await asyncio.sleep(_LOOK)
        return seen

    async def until_answered(self, *names: str) -> None:
        """Until each of these claims is bound, has ended with a reason, or is gone."""
        await self.until(
            f"{', '.join(names)} bound or ended",
            self.claims,
            lambda claims: (
                not [c for c in claims if c["metadata"]["name"] in names and phase(c) == "Pending"]
            ),
        )

    async def until_rest(self) -> None:
        """Until the books balance and the pools say so."""
        await self.until("at rest", self.unrest, lambda left: not left)

    # ---- inside

    async def _until_gone(self, look: Callable[[], Any], doomed: list[Json]) -> None:
        uids = {meta["uid"] for meta in doomed}
        names = ", ".join(meta["name"] for meta in doomed)
        await self.until(
            f"{names} gone", look, lambda left: not uids & {each["metadata"]["uid"] for each in left}
        )

    async def _delete(self, path: str) -> None:
        try:
            await self.api.delete(path)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise

    async def _listed(self, path: str) -> list[Json]:
        return [orjson.loads(bytes(item)) for item in (await self.api.list(path)).items]


def phase(claim: Json) -> str:
    return str((claim.get("status") or {}).get("phase") or "Pending")


def pooled(vm: Json) -> bool:
    return bool(vm["metadata"].get("labels", {}).get(LABEL_STATE) == Mark.POOLED)


def claimed(vm: Json) -> bool:
    return bool(vm["metadata"].get("labels", {}).get(LABEL_STATE) == Mark.CLAIMED)


def _short(seen: Any) -> str:
    if seen and isinstance(seen[0], str):
        return "; ".join(seen[:6])
    return "; ".join(f"{e['metadata']['name']} {(e.get('status') or {}).get('phase')}" for e in seen[:6])
