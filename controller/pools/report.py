"""Writes a pool's status: one writer, at most once a second, always the newest, only when it differs."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from controller.claims.patches import add, test
from controller.claims.protocol import StepName
from controller.kube import errors
from controller.kube.client import ApiClient, Priority
from controller.kube.objects import KubeObject
from controller.kube.paths import collection
from controller.machines.privacy import private_texts, redacted
from controller.metrics import HIT_RATIO, IDLE_SECONDS, WARM, WARM_TARGET
from controller.pools.refusals import growing_pause
from controller.pools.snapshot import Snapshot
from controller.pools.status import stopped
from crds import names
from crds.pool import VirtualMachinePool
from crds.pool_status import PoolStatus
from statemachines.instance import State

log = structlog.get_logger()

INTERVAL = 1.0  # s between two writes of a pool's status
AGAIN = 5.0  # s until one without an answer is tried again, if nothing changes before
POOL_PATH = f"/apis/{names.API_VERSION}/{names.POOLS}"
_PASSING = (errors.UnknownOutcome, errors.TooManyRequests, errors.NotLeading)
_EXPOSED = (
    State.PROVISIONING,
    State.WARM,
    State.UNREADY,
    State.CLAIMED,
    State.TERMINATING,
    State.FAILED,
)

Json = dict[str, Any]


async def patch_pool(client: ApiClient, pool: VirtualMachinePool, body: list[Json], step: StepName) -> bytes:
    """JSON patch of a pool, or of its status, guarded by its UID; the pool then. Raises ApiError."""
    path = _path(pool) + ("/status" if step is StepName.POOL_STATUS else "")
    guarded = [test("/metadata/uid", pool.metadata.uid), *body]
    return await client.json_patch(path, guarded, priority=Priority.STATUS, step=step)


def expose(seen: Snapshot) -> None:
    """The pool's gauges."""
    meta = seen.pool.metadata
    for state in _EXPOSED:
        WARM.labels(meta.namespace, meta.name, state.value).set(seen.counts[state])
    for policy in seen.told.decision.policies:
        WARM_TARGET.labels(meta.namespace, meta.name, policy.name).set(policy.wants)
    WARM_TARGET.labels(meta.namespace, meta.name, "target").set(seen.target)
    if seen.told.hit_ratio is not None:
        HIT_RATIO.labels(meta.namespace, meta.name).set(seen.told.hit_ratio)


def conceal(namespace: str, pool: str) -> None:
    """A pool that is gone has no figures: else its last ones would be shown until the process ends."""
    for gauge in (WARM, WARM_TARGET, HIT_RATIO, IDLE_SECONDS):
        gauge.remove_by_labels({"namespace": namespace, "pool": pool})


class Reporter:
    """`compute(before)` gives the status of the moment; `gone` is told when a read shows no such pool."""

    def __init__(
        self,
        client: ApiClient,
        pool: Callable[[], VirtualMachinePool],
        compute: Callable[[Json], Json],
        gone: Callable[[], None],
    ) -> None:
        self._client = client
        self._pool = pool
        self._compute = compute
        self._gone = gone
        self._written = _status_of(pool())
        self._written_at = 0.0
        self._doubt = False
        self._setbacks = 0
        self._not_before = 0.0
        self._version = 0  # the pool's, as our last write left it
        self._stale = False
        self._task: asyncio.Task[None] | None = None

    def soon(self) -> None:
        """Have the status written, now or when the interval since the last write is over."""
        self._stale = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._keep_up())

    async def say_stopped(self, now: float) -> None:
        """The last status of a clean stop: nobody watches this pool, and what to do about it."""
        if self._task is not None:
            self._task.cancel()
        with suppress(errors.ApiError):
            await self._put(
                stopped(self._written, self._pool().metadata.namespace, self._pool().metadata.name, now)
            )

    async def _keep_up(self) -> None:
        """Write until nothing is new: what changes while a write is under way is the next one's."""
        loop = asyncio.get_running_loop()
        while self._stale:
            due = max(self._written_at + INTERVAL, self._not_before)
            await asyncio.sleep(max(0.0, due - loop.time()))
            self._stale = False
            fresh = self._compute(self._written)
            if fresh != self._written or self._doubt or self._is_another(fresh):
                self._written_at = loop.time()
                await self._write(fresh)

    def _is_another(self, fresh: Json) -> bool:
        """Whether the pool shows another status since our last write: one that was late, or a person's."""
        pool = self._pool()
        return int(pool.metadata.resource_version or 0) > self._version and _status_of(pool) != _plain(fresh)

    async def _write(self, fresh: Json) -> None:
        self._doubt = True  # until the answer is definite: what it wrote may be there, or come to be
        try:
            await self._put(fresh)
            self._written, self._doubt, self._setbacks = fresh, False, 0
        except errors.ApiError as error:
            # Gone, and another one may have its name? A refusal alone is no proof: it would end the loop.
            if isinstance(error, errors.NotFound | errors.TestFailed) and await self._is_missing():
                self._gone()
                return
            why = redacted(str(error), private_texts(self._pool()))
            log.warning("pool status not written", pool=self._pool().metadata.name, error=why)
            self._try_again(error)

    def _try_again(self, error: errors.ApiError) -> None:
        """What was refused waits ever longer, whatever changes: a pool in a namespace that is gone, say."""
        loop = asyncio.get_running_loop()
        if isinstance(error, _PASSING):
            loop.call_later(AGAIN, self.soon)
            return
        self._not_before = loop.time() + growing_pause(INTERVAL, self._setbacks)
        self._setbacks += 1
        self._stale = True

    async def _is_missing(self) -> bool:
        """Whether an uncached read says that there is no such pool any more."""
        try:
            body = await self._client.get(_path(self._pool()), step=StepName.POOL_LOOK)
        except errors.NotFound:
            return True
        except errors.ApiError:
            return False
        return msgspec.json.decode(body, type=KubeObject).metadata.uid != self._pool().metadata.uid

    async def _put(self, status: Json) -> None:
        body = await patch_pool(self._client, self._pool(), [add("/status", status)], StepName.POOL_STATUS)
        self._version = int(msgspec.json.decode(body, type=KubeObject).metadata.resource_version or 0)


def _path(pool: VirtualMachinePool) -> str:
    return f"{collection(POOL_PATH, pool.metadata.namespace)}/{pool.metadata.name}"


def _status_of(pool: VirtualMachinePool) -> Json:
    if pool.status is None:
        return {}
    found: Json = pool.status.model_dump(by_alias=True, exclude_none=True, mode="json")
    return found


def _plain(status: Json) -> Json:
    """A computed status as it looks when it is read again, with all that is absent filled in."""
    return PoolStatus.model_validate(status).model_dump(by_alias=True, exclude_none=True, mode="json")
