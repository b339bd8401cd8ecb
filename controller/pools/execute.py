"""Turns a pool's planned actions into writes: creations with slow start, removals by the drain procedure.

It decides nothing that the plan did not. A creation of unknown outcome is sent again under the same name
until the answer is definite, and counts as in flight until then, so that no VM is made twice for one need.
"""

import asyncio
import random
from dataclasses import replace
from typing import Any

import msgspec
import structlog

from controller.claims.drain import Drain, Outcome
from controller.claims.execute import VM_PATH, Executor
from controller.claims.protocol import Done, StepName
from controller.kube import errors
from controller.kube.client import ApiClient, Priority
from controller.kube.paths import collection
from controller.kube.store import Store
from controller.machines.inventory import Instance
from controller.machines.objects import VirtualMachine
from controller.machines.privacy import private_texts, redacted
from controller.machines.rendering import NAME_ALPHABET, SUFFIX_LENGTH, render
from controller.pools.refusals import Refusal
from crds import names
from crds.conditions import PoolReason
from crds.pool import VirtualMachinePool

log = structlog.get_logger()
_VM = msgspec.json.Decoder(VirtualMachine)


class _Listed(msgspec.Struct):
    items: list[VirtualMachine] = []


_LIST = msgspec.json.Decoder(_Listed)


def suffix() -> str:
    return "".join(random.choices(NAME_ALPHABET, k=SUFFIX_LENGTH))


class PoolWriter:
    """The writes of one namespace's pools."""

    def __init__(
        self, client: ApiClient, namespace: str, vms: Store[VirtualMachine], executor: Executor
    ) -> None:
        self._client = client
        self._vms = vms
        self._executor = executor
        self._namespace = namespace
        self._path = collection(VM_PATH, namespace)
        self._under_way: set[str] = set()

    def unseen(self) -> int:
        """Creations under way whose VM no watch has shown yet: one that was shown counts there already."""
        return sum(self._vms.by_name(self._namespace, name) is None for name in self._under_way)

    async def dry_run(self, pool: VirtualMachinePool, revision: str) -> Refusal | None:
        """Would the API server take this revision? None if so. Raises ApiError when it can't be known."""
        try:
            await self._client.post(
                self._path,
                render(pool, revision, suffix()),
                priority=Priority.REFILL,
                step=StepName.POOL_DRY_RUN,
                params={"dryRun": "All"},
            )
        except errors.AlreadyExists:
            return None
        except errors.ApiError as error:
            return _refusal(error)
        return None

    async def create(self, pool: VirtualMachinePool, revision: str, *, urgent: bool) -> Refusal | None:
        """Make one VM, `urgent` when a claim waits for it. Its object is in the store when this returns."""
        while True:
            body = render(pool, revision, suffix())
            name = body["metadata"]["name"]
            self._under_way.add(name)
            try:
                await self._post(body, Priority.ORDER if urgent else Priority.REFILL)
            except errors.AlreadyExists:
                continue  # the name is another's: names are never used twice
            except errors.ApiError as error:
                return _refusal(error)
            else:
                return None
            finally:
                self._under_way.discard(name)

    async def _post(self, body: dict[str, Any], priority: Priority) -> None:
        """The same creation until the answer is definite. Raises ApiError."""
        pause = 0.05
        while True:
            try:
                answer = await self._client.post(
                    self._path, body, priority=priority, step=StepName.POOL_CREATE
                )
            except errors.AlreadyExists:
                if await self._made_before(body):
                    return
                raise
            except (errors.UnknownOutcome, errors.TooManyRequests, errors.NotLeading):
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(5.0, 2 * pause)
            else:
                self._vms.apply(_VM.decode(answer))
                return

    async def _made_before(self, body: dict[str, Any]) -> bool:
        """Whether an earlier try of unknown outcome made this very VM."""
        try:
            path = f"{self._path}/{body['metadata']['name']}"
            found = _VM.decode(await self._client.get(path, step=StepName.POOL_READ_VM))
        except errors.NotFound:
            return False
        mine = body["metadata"]["ownerReferences"][0]["uid"]
        if not any(owner.uid == mine for owner in found.metadata.owner_references):
            return False
        self._vms.apply(found)
        return True

    async def remove(self, pool: VirtualMachinePool, instance: Instance) -> Done:
        """Drain one VM of the pool, which the caller has reserved."""
        _, done = await self._executor.drive(Drain.of(instance.vm))
        if done.outcome == Outcome.GONE:
            return done
        why = redacted(done.message, private_texts(pool))
        log.info("VM not removed", vm=instance.name, outcome=done.outcome, why=why)
        return replace(done, message=why)

    async def owned(self, pool: VirtualMachinePool) -> list[str]:
        """The names of the VMs that the pool owns, by an uncached list (none while there is no such kind).

        Raises ApiError.
        """
        selector = {"labelSelector": f"{names.LABEL_POOL_UID}={pool.metadata.uid}"}
        try:
            found = _LIST.decode(await self._client.get(self._path, selector, step=StepName.POOL_READ))
        except errors.NotServed:
            return []
        return [
            vm.metadata.name
            for vm in found.items
            if any(owner.uid == pool.metadata.uid for owner in vm.metadata.owner_references)
        ]


def _refusal(error: errors.ApiError) -> Refusal:
    """A definite refusal as a condition; what says nothing about the template is raised on."""
    match error:
        case errors.QuotaExceeded():
            return Refusal(PoolReason.QUOTA_REFUSED, error.message)
        case (
            errors.WebhookUnavailable()
            | errors.TooManyRequests()
            | errors.UnknownOutcome()
            | errors.NotLeading()
        ):
            raise error
        case errors.NotServed():
            return Refusal(
                PoolReason.API_REFUSED,
                f"the API server takes no VirtualMachines: is KubeVirt being removed? ({error.message})",
            )
        case errors.Forbidden() | errors.Unauthorized():
            return Refusal(PoolReason.API_REFUSED, error.message)
        case _:
            return Refusal(PoolReason.TEMPLATE_INVALID, error.message)
