"""Who may write: leader election by a Lease that its holder renews.

Time is measured on the boot-time clock, which also runs while the machine sleeps, and never compared with the
clock of another machine. It must never claim more time than the lease has left.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec
import orjson
import structlog

from controller.kube.client import ApiClient
from controller.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from controller.kube.paths import collection
from controller.kube.server_clock import boot_time

_LOOK = 0.5  # seconds between two looks at a lease that another one holds: one cheap GET
_RETRY = 1.0  # seconds between two attempts at renewing

log = structlog.get_logger(__name__)


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


_LEASES = msgspec.json.Decoder(_Lease)


class LeaderElection:
    """`await acquire()`, then `await hold()`; `identity` names this process to people. Times in seconds."""

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration: float = 15,
        renew: float = 5,
        clock: Callable[[], float] = boot_time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._collection = collection("/apis/coordination.k8s.io/v1/leases", namespace)
        self._meta = {"namespace": namespace, "name": name}
        self._identity = identity
        self._duration = duration
        self._renew = renew
        self._clock = clock
        self._sleep = sleep
        self._mine: _Lease | None = None  # as the API server last answered it to us
        self._stamp = 0.0  # when the request was sent by which we hold it
        self._sent: deque[str] = deque(maxlen=8)  # renew times: they tell our writes from a namesake's
        self._seen: _Spec | None = None  # another one's, and since when it has not changed
        self._seen_at = 0.0
        self._in_doubt = False  # whether a taking may have been applied without our knowing
        self.looked = asyncio.Event()  # `acquire` has had its first answer, whatever it was
        self.left_at = 0.0  # when the holder before us last was, in epoch seconds; 0: nobody was
        self.trouble = ""  # why the lease can't be asked for, while `acquire` waits

    def time_left(self) -> float:
        """Seconds for which we surely hold the lease; 0 if we do not."""
        if self._mine is None:
            return 0.0
        return max(0.0, self._stamp + self._duration - self._clock())

    async def acquire(self) -> None:
        """Wait until the lease is ours, whatever errors there are meanwhile."""
        self._mine = None
        while True:
            try:
                taken = await self._try_to_take()
                self.trouble = ""
                if taken:
                    log.info("leading", lease=self._meta["name"], identity=self._identity)
                    return
            except (Conflict, AlreadyExists):
                pass  # somebody was faster
            except ApiError as error:
                self.trouble = f"cannot get the lease: {error}"
                log.warning("cannot get the lease; will keep trying", error=str(error))
            finally:
                self.looked.set()
            await self._sleep(_LOOK * random.uniform(0.7, 1.3))

    async def hold(self) -> None:
        """Renew until the lease is lost, then return; from then on `time_left()` is 0."""
        while self.time_left() > 0:
            due = self._stamp + self._renew - self._clock()
            await self._sleep(max(0.0, min(due, self.time_left())))
            if self.time_left() > 0 and not await self._keep():
                await self._sleep(min(_RETRY * random.uniform(0.7, 1.0), self.time_left()))
        if self._mine is not None:
            log.warning("the lease is lost", lease=self._meta["name"])
            self._mine = None

    async def release(self) -> None:
        """Give it up, so that the next one need not wait. Only when no write of ours is in flight.

        Also after `acquire` was cancelled: it may have taken the lease without hearing of it.
        """
        lease, self._mine = self._mine, None
        try:
            if lease is not None and await self._freed(lease):
                return
            if lease is not None or self._in_doubt:  # a write that was cut off may have been applied
                lease = await self._read()
                if self._is_ours(lease):
                    await self._freed(lease)
        except ApiError as error:  # then it runs out by itself
            log.warning("could not release the lease", error=str(error))

    async def _freed(self, lease: _Lease) -> bool:
        """Whether this very version of the lease was there to be freed."""
        try:
            await self._put(lease, self._spec(lease, holder=""))
        except Conflict:
            return False
        return True

    async def _try_to_take(self) -> bool:
        lease = await self._read()
        if not (self._is_free(lease) or self._is_ours(lease)):
            self._in_doubt = (
                False  # it is another's by now: what we sent for an older version can't be applied
            )
            return False
        sent, before, self._in_doubt = self._clock(), self._in_doubt, True
        try:
            taken = await self._put(lease, self._spec(lease, holder=self._identity))
        except (Conflict, AlreadyExists):
            self._in_doubt = before  # somebody was faster: perhaps an earlier try of ours
            raise
        self._mine, self._stamp, self._in_doubt = taken, sent, False
        self.left_at = _epoch(lease.spec.renew_time)
        return True

    def _is_free(self, lease: _Lease) -> bool:
        """Free, or not renewed for as long as its holder counts on: both by our own clock."""
        spec, now = lease.spec, self._clock()
        if not spec.holder_identity:
            return True
        if spec != self._seen:
            if self._seen is None or self._seen.holder_identity != spec.holder_identity:
                self._tell_of(spec.holder_identity)
            self._seen, self._seen_at = spec, now
        return now - self._seen_at > (spec.lease_duration_seconds or self._duration)

    def _tell_of(self, holder: str) -> None:
        log.info("waiting for the lease", lease=self._meta["name"], holder=holder)
        if holder == self._identity:
            log.warning("another process goes by the name of this one, or this one ran before", name=holder)

    async def _keep(self) -> bool:
        """One attempt at renewing; False if it is to be tried again (or the lease is not ours any more)."""
        lease = self._mine
        if lease is None:
            return False
        sent = self._clock()
        try:
            renewed = await self._put(lease, self._spec(lease, holder=self._identity))
        except (Conflict, NotFound):
            await self._look_again()
            return False
        except ApiError as error:
            log.warning("could not renew the lease", error=str(error), left=round(self.time_left(), 1))
            return False
        if self._mine is None:  # released meanwhile
            return False
        self._mine, self._stamp = renewed, sent
        return True

    async def _look_again(self) -> None:
        """Ours may have been applied with the answer lost, or a person set a label: then it is still ours."""
        try:
            lease = await self._read()
        except ApiError:
            return
        if self._mine is None:
            return
        if self._is_ours(lease):
            self._mine = lease
        else:
            log.warning("the lease was taken", lease=self._meta["name"], holder=lease.spec.holder_identity)
            self._mine = None

    def _is_ours(self, lease: _Lease) -> bool:
        return lease.spec.holder_identity == self._identity and lease.spec.renew_time in self._sent

    def _spec(self, lease: _Lease, *, holder: str) -> dict[str, Any]:
        now = self._client.server_time().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._sent.append(now)
        goes_on = lease.spec.holder_identity == holder
        transitions = lease.spec.lease_transitions or 0
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._duration)),
            "acquireTime": lease.spec.acquire_time if goes_on else now,
            "renewTime": now,
            "leaseTransitions": transitions if goes_on or not holder else transitions + 1,
        }

    async def _read(self) -> _Lease:
        """The lease; one without a version if there is none."""
        path = f"{self._collection}/{self._meta['name']}"
        try:
            return _LEASES.decode(await self._client.send("GET", path, step="lease", limit=self._renew))
        except NotFound:
            return _Lease(_Meta())

    async def _put(self, lease: _Lease, spec: dict[str, Any]) -> _Lease:
        """Only over the very version that was read; past the queue and the lease's own guard.

        The server is told to give up when we do, so that none is applied long after it was given up here.
        """
        version = lease.metadata.resource_version
        meta = {**self._meta, "resourceVersion": version} if version else self._meta
        body = orjson.dumps(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
        )
        path = f"{self._collection}/{self._meta['name']}" if version else self._collection
        path += f"?timeout={round(self._renew * 1000)}ms"
        method = "PUT" if version else "POST"
        return _LEASES.decode(await self._client.send(method, path, body, step="lease", limit=self._renew))


def _epoch(stamp: str | None) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp() if stamp else 0.0
    except ValueError:  # a person's
        return 0.0
