"""The one way to the API server: reads that retry, writes that are queued by class and sent once.

It must never send a write that could outlive the lease, and never repeat a write whose outcome is unknown:
that is the caller's decision.
"""

import asyncio
import random
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Self
from urllib.parse import urlencode
from weakref import WeakSet

import aiohttp
import orjson
from yarl import URL

from controller.kube.config import ClusterConfig
from controller.kube.errors import (
    ApiError,
    NotLeading,
    NotSent,
    TooManyRequests,
    Unauthorized,
    UnknownOutcome,
    classify,
)
from controller.kube.gate import Gate, Priority, Ticket
from controller.kube.server_clock import ServerClock, boot_time
from controller.kube.timeline import Timeline

__all__ = ["METADATA_ONLY", "STEP_HEADER", "ApiClient", "Priority"]

_TRIES = 5  # of a read, and of a write that was answered 429
_LONGEST_PAUSE = 5.0  # seconds between two of them
_FAREWELL = 1.0  # seconds that closing a connection may take
_GRACE = 1.0  # seconds that an answer may take longer than the server's own deadline
_JSON = "application/json"
_JSON_PATCH = "application/json-patch+json"
STEP_HEADER = "X-Bullpen-Step"  # by it requests are told apart, counted, and disturbed in tests
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_MERGE_PATCH = "application/merge-patch+json"

Params = Mapping[str, str]


class ApiClient:
    """One session with one API server. Paths are absolute (`/api/v1/namespaces/x/pods`), times in seconds.

    Every method raises the errors of `controller.kube.errors`. `timeout` is both the server's deadline for a
    request and, with a little grace, ours; a write needs more lease than that.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        max_writes_in_flight: int = 32,
        timeout: float = 6.0,
        monotonic: Callable[[], float] = boot_time,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        identity: str = "",
    ) -> None:
        self.config = config
        # An audit log tells the replicas apart by it; up to the slash it is the field manager.
        self.user_agent = "bullpen/" + re.sub(r"[^!-~]", "_", identity) if identity else "bullpen"
        self.timeout = timeout
        self.gate = Gate(max_writes_in_flight)
        self.lease_left: Callable[[], float] | None = None
        self.on_request: Callable[[str, int, float], None] | None = None
        self._monotonic = monotonic
        self._sleep = sleep
        self._clock = ServerClock(monotonic, wall)
        self._deadline = urlencode({"timeout": f"{round(timeout * 1000)}ms"})
        self._limits = aiohttp.ClientTimeout(total=timeout + _GRACE)
        self._lazy_session: aiohttp.ClientSession | None = None
        self._sockets: WeakSet[socket.socket] = WeakSet()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; requests in flight fail.

        Returns when the sockets are closed: a connection whose request was cancelled waits for the server's
        farewell, and a loop that ends before that complains about each. The server gets a second.
        """
        if self._lazy_session is None:
            return
        await self._lazy_session.close()
        now = asyncio.get_running_loop().time
        deadline = now() + _FAREWELL
        while now() < deadline and any(each.fileno() >= 0 for each in self._sockets):  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)

    async def drained(self) -> None:
        """Send no more writes until those under way are answered: then none of ours can land any more."""
        guard, self.lease_left = self.lease_left, lambda: 0.0
        try:
            while self.gate.in_flight:  # noqa: ASYNC110 - each ends within its own time-out, and no event tells
                await asyncio.sleep(0.005)
        finally:
            self.lease_left = guard

    def server_time(self) -> datetime:
        """The API server's time in UTC; the local clock's before the first answer."""
        return self._clock.now()

    def timeline(self) -> Timeline:
        """What tells how old a time stamp is, whoever set a clock meanwhile."""
        return self._clock.timeline()

    def host_ahead(self) -> float:
        """Seconds by which the host's wall clock is ahead of the server's."""
        return self._clock.host_ahead()

    # Reads

    async def get(
        self,
        path: str,
        params: Params | None = None,
        *,
        step: str = "get",
        limit: float | None = None,
        accept: str = _JSON,
    ) -> bytes:
        """A consistent read; tried a few times, as repeating it harms nobody. `limit` is for each try."""
        target = _target(path, urlencode(params or {}))
        for attempt in range(1, _TRIES):
            try:
                return await self.send("GET", target, step=step, limit=limit, accept=accept)
            except (UnknownOutcome, TooManyRequests, Unauthorized) as error:
                await self._pause(error, attempt)
        return await self.send("GET", target, step=step, limit=limit, accept=accept)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Params, *, idle: float, step: str = "watch"
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of a long answer in chunks as they come; `idle` seconds without one: UnknownOutcome."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=self.timeout, sock_read=idle)
        target = _target(path, urlencode(params))
        with _translated():
            async with await self._open("GET", target, None, {STEP_HEADER: step}, limits) as response:
                if not response.ok:
                    raise await self._refusal(response)
                yield response.content.iter_any()

    # Writes

    async def post(
        self, path: str, obj: Any, *, priority: Priority, step: str, params: Params | None = None
    ) -> bytes:
        return await self._write("POST", path, obj, _JSON, priority, step, params)

    async def put(self, path: str, obj: Any, *, priority: Priority, step: str) -> bytes:
        return await self._write("PUT", path, obj, _JSON, priority, step)

    async def json_patch(
        self, path: str, ops: list[dict[str, Any]], *, priority: Priority, step: str
    ) -> bytes:
        return await self._write("PATCH", path, ops, _JSON_PATCH, priority, step)

    async def merge_patch(self, path: str, patch: Any, *, priority: Priority, step: str) -> bytes:
        return await self._write("PATCH", path, patch, _MERGE_PATCH, priority, step)

    async def delete(
        self, path: str, *, uid: str, priority: Priority, step: str, propagation: str | None = None
    ) -> bytes:
        """Delete the object of that UID and no other; another one there is a Conflict."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        return await self._write("DELETE", path, options, _JSON, priority, step)

    async def _write(
        self,
        method: str,
        path: str,
        obj: Any,
        content_type: str,
        priority: Priority,
        step: str,
        params: Params | None = None,
    ) -> bytes:
        body = orjson.dumps(obj)
        target = _target(path, urlencode(params) + "&" + self._deadline if params else self._deadline)
        for attempt in range(1, _TRIES):
            try:
                return await self._write_once(method, target, body, content_type, priority, step)
            except (TooManyRequests, Unauthorized) as error:  # surely not applied; a token may have changed
                await self._pause(error, attempt)
        return await self._write_once(method, target, body, content_type, priority, step)

    async def _write_once(
        self, method: str, target: str, body: bytes, content_type: str, priority: Priority, step: str
    ) -> bytes:
        ticket = self.gate.ask(priority, self._monotonic())
        try:
            if not ticket.admitted:
                await _turn(ticket)
            if self.lease_left is not None and self.lease_left() <= self.timeout:
                raise NotLeading(message=f"{step}: the lease may run out before this write would")
            return await self.send(method, target, body, content_type=content_type, step=step)
        finally:
            self.gate.leave(ticket, self._monotonic())

    # One request

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        content_type: str = _JSON,
        step: str,
        limit: float | None = None,
        accept: str = _JSON,
    ) -> bytes:
        """One request, now and once: no queue, no lease, no retry. `target` carries its query."""
        limits = self._limits if limit is None else aiohttp.ClientTimeout(total=limit)
        headers = {STEP_HEADER: step, "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        started = self._monotonic()
        status = 0
        try:
            with _translated():
                async with await self._open(method, target, body, headers, limits) as response:
                    status = response.status
                    self._clock.observe(response.headers.get("Date"), started, self._monotonic())
                    if not response.ok:
                        raise await self._refusal(response)
                    return await response.read()
        finally:
            if self.on_request is not None:
                self.on_request(step, status, self._monotonic() - started)

    async def _open(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: dict[str, str],
        limits: aiohttp.ClientTimeout,
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        token = await self.config.authorization.value()
        if token is not None:
            headers["Authorization"] = token
        return self._session().request(
            method,
            URL(self.config.server + target, encoded=True),
            data=body,
            headers=headers,
            timeout=limits,
            server_hostname=self.config.tls_server_name,
        )

    async def _refusal(self, response: aiohttp.ClientResponse) -> ApiError:
        error = classify(response.status, await response.read(), response.headers.get("Retry-After"))
        if isinstance(error, Unauthorized):
            self.config.authorization.refused()
        return error

    async def _pause(self, error: ApiError, attempt: int) -> None:
        wanted = error.retry_after if isinstance(error, TooManyRequests) else 0.05 * 3**attempt
        await self._sleep(min(wanted, _LONGEST_PAUSE) * random.uniform(1.0, 1.3))

    def _session(self) -> aiohttp.ClientSession:
        if self._lazy_session is None:  # not in the constructor: it needs the running loop
            self._lazy_session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,  # the gate bounds
                    ssl=self.config.ssl or False,
                    keepalive_timeout=60.0,
                    ttl_dns_cache=60,
                    socket_factory=self._socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                # Not compressed: gzip costs the API server more than the bytes cost the network.
                headers={"Accept": _JSON, "Accept-Encoding": "identity", "User-Agent": self.user_agent},
                read_bufsize=1 << 20,
            )
        return self._lazy_session

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        made = _socket(address)
        self._sockets.add(made)
        return made


# uvloop, of a new socket, while a connection that was given up in its beginning still has the same number.
_TAKEN = "is used by transport"


class _translated:  # noqa: N801 - read as a word: with _translated()
    """aiohttp's and the socket's exceptions as ours. A class, because a generator costs on every request."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            raise NotSent(message=_text(error)) from error
        if isinstance(error, aiohttp.ClientError | TimeoutError | OSError):
            raise UnknownOutcome(message=_text(error)) from error
        if isinstance(error, RuntimeError) and _TAKEN in str(error):
            raise NotSent(message=_text(error)) from error


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices within 30 s that its peer is gone: a watch only listens and would not."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # not everywhere outside Linux
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _target(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


async def _turn(ticket: Ticket) -> None:
    future = asyncio.get_running_loop().create_future()
    ticket.on_admit = lambda: None if future.done() else future.set_result(None)
    await future
