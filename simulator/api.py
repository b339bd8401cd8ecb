"""A small, fast client of the Kubernetes API: one session, bytes in, bytes out.

It serves the stand-ins, and the benchmarks as the *bare client* that everything else is measured against.
So it must never retry a write, queue, cache or decide: what it sends is what its caller asked for, once.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import uniform
from time import monotonic
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
import orjson
from yarl import URL

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
PAGE = 500  # objects in one page of a list
GONE = 410
# uvloop says so of a new socket while a connection that was given up has its number still.
_TAKEN = "is used by transport"
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError, RuntimeError)
_TURNS = 3  # of the loop: an aborted transport tells its protocol, which tells its socket


class ApiError(Exception):
    """The API server's refusal (its `status`, `reason` and sentence), or status 0: no answer came."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def passing(self) -> bool:
        """Whether the same request may well succeed a little later."""
        return self.status in {0, 429} or self.status >= 500  # noqa: PLR2004 - HTTP's own numbers


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the API server is and how to talk to it."""

    server: str
    ssl: ssl.SSLContext | None
    authorization: Callable[[], str | None]  # the header's value, which may change; cheap to ask


class Event(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED or DELETED, and the object as the API server sent it.

    msgspec decodes a Raw as it is; for orjson it is `memoryview(event.object)`.
    """

    type: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Listing:
    """A complete, consistent list: what is not in it does not exist."""

    items: list[msgspec.Raw]
    resource_version: str


class _ListMeta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the wire's name
    cont: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Versioned(msgspec.Struct):
    metadata: _ListMeta


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""
    code: int = 0


_page = msgspec.json.Decoder(_Page).decode
_event = msgspec.json.Decoder(Event).decode
_versioned = msgspec.json.Decoder(_Versioned).decode
_status = msgspec.json.Decoder(_Status).decode


class ClusterError(Exception):
    """No cluster is configured, or its configuration can't be read; the text says which."""


def load_cluster(kubeconfig: str | Path | None = None) -> Cluster:
    """Read the kubeconfig given, else KUBECONFIG, else the pod's own credentials. Raises ClusterError."""
    from kubernetes import client, config  # noqa: PLC0415 - slow to import, and only needed here

    found = client.Configuration()
    try:
        if kubeconfig is None:
            config.load_config(client_configuration=found)  # type: ignore[no-untyped-call] # it has no types
        else:
            config.load_kube_config(str(kubeconfig), client_configuration=found)  # type: ignore[no-untyped-call]
    except Exception as error:  # the package lets its parsers' exceptions through
        where = kubeconfig or "KUBECONFIG, ~/.kube/config or a pod's credentials"
        raise ClusterError(f"no usable cluster configuration in {where}: {error}") from error
    context = None
    if found.host.startswith("https"):
        context = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if not found.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if found.cert_file:
            context.load_cert_chain(found.cert_file, found.key_file)
    return Cluster(found.host.rstrip("/"), context, _Token(found.auth_settings))


class _Token:
    """The bearer token, read again once a minute (a pod's changes, and so does an exec plugin's)."""

    def __init__(self, settings: Callable[[], Mapping[str, Any]]) -> None:
        self._settings = settings
        self._value: str | None = None
        self._stale_at = 0.0

    def __call__(self) -> str | None:
        now = monotonic()
        if now >= self._stale_at:
            self._value = self._settings().get("BearerToken", {}).get("value")
            self._stale_at = now + 60.0
        return self._value


class Api:
    """`async with Api(cluster) as api:`; every method raises ApiError, with status 0 if no answer came.

    Args:
        cluster: from `load_cluster`.
        connections: how many at most; 0 is without bound.
        timeout: seconds that one request may take (watches excepted).
    """

    def __init__(self, cluster: Cluster, *, connections: int = 0, timeout: float = 30.0) -> None:
        self._cluster = cluster
        self._connections = connections
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            limit=self._connections, ssl=self._cluster.ssl or True, keepalive_timeout=60
        )
        self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the sockets, without the farewells of TLS: the loop may end before they do."""
        if self._session is None:
            return
        if self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)
        await self._session.close()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def request(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> bytes:
        """Send one request; `path` may carry a query, which has to be encoded already."""
        if self._session is None:
            raise RuntimeError("Api is used outside its `async with`")
        data = None if body is None else orjson.dumps(body)
        try:
            async with self._session.request(
                method, self._url(path), data=data, headers=self._headers(content_type)
            ) as response:
                answer = await response.read()
        except _BROKEN as error:
            raise _unanswered(f"{method} {path}", error) from error
        if response.status >= 400:  # noqa: PLR2004 - HTTP's own number
            raise _failure(response.status, response.headers.get("Retry-After", ""), answer)
        return answer

    async def get(self, path: str) -> bytes:
        return await self.request("GET", path)

    async def post(self, path: str, obj: Any) -> bytes:
        return await self.request("POST", path, obj)

    async def put(self, path: str, obj: Any) -> bytes:
        return await self.request("PUT", path, obj)

    async def json_patch(self, path: str, operations: list[dict[str, Any]]) -> bytes:
        return await self.request("PATCH", path, operations, JSON_PATCH)

    async def merge_patch(self, path: str, patch: Mapping[str, Any]) -> bytes:
        return await self.request("PATCH", path, patch, MERGE_PATCH)

    async def delete(self, path: str, **preconditions: str) -> bytes:
        """Delete; `uid=` and `resourceVersion=` are preconditions."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        return await self.request("DELETE", path, options if preconditions else None)

    async def list(self, path: str, selector: str = "") -> Listing:
        """List in pages, consistently (resourceVersion unset, never "0"); `selector` is an encoded query."""
        items: list[msgspec.Raw] = []
        token = ""
        while True:
            query = (
                f"?limit={PAGE}{'&' + selector if selector else ''}{'&continue=' + token if token else ''}"
            )
            page = _page(await self.get(path + query))
            items += page.items or []
            token = page.metadata.cont
            if not token:
                return Listing(items, page.metadata.resourceVersion)

    async def follow(self, path: str, selector: str = "") -> AsyncIterator[Listing | Event]:
        """List, then watch, for ever: a Listing first and again after each lost watch (410), else Events.

        Raises ApiError only from the very first list, so that a wrong address is told at once.
        """
        listing = await self.list(path, selector)
        while True:
            yield listing
            version = listing.resource_version
            async for event in self._watch(path, selector, version):
                yield event
            listing = await self._list_again(path, selector)

    async def _list_again(self, path: str, selector: str) -> Listing:
        pause = 0.2
        while True:
            try:
                return await self.list(path, selector)
            except ApiError:
                await asyncio.sleep(uniform(0.5, 1.0) * pause)
                pause = min(5.0, pause * 2)

    async def _watch(self, path: str, selector: str, version: str) -> AsyncIterator[Event]:
        """Events from `version` on, over as many connections as it takes; ends when a new list is needed."""
        pause = 0.05
        while True:
            try:
                async for line in self._lines(path, selector, version):
                    event = _event(line)
                    if event.type == "ERROR":
                        raise _failure(_status(event.object).code, "", bytes(event.object))
                    version = _versioned(event.object).metadata.resourceVersion
                    pause = 0.05
                    if event.type != "BOOKMARK":
                        yield event
            except ApiError as failure:
                if failure.status == GONE:
                    return
                pause = min(5.0, pause * 2)
            await asyncio.sleep(uniform(0.5, 1.0) * pause)

    async def _lines(self, path: str, selector: str, version: str) -> AsyncIterator[bytes]:
        if self._session is None:
            raise RuntimeError("Api is used outside its `async with`")
        seconds = int(uniform(240, 360))
        query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}"
        url = self._url(path + query + (f"&{selector}" if selector else ""))
        limits = aiohttp.ClientTimeout(total=None, sock_read=seconds + 15)
        try:
            async with self._session.get(url, timeout=limits, headers=self._headers(JSON)) as response:
                if response.status >= 400:  # noqa: PLR2004 - HTTP's own number
                    raise _failure(response.status, "", await response.read())
                rest = b""
                try:
                    async for chunk in response.content.iter_any():
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in lines:
                            yield line
                finally:
                    _abort(response)
        except _BROKEN as error:
            raise _unanswered(f"watch {path}", error) from error

    def _headers(self, content_type: str) -> dict[str, str]:
        authorization = self._cluster.authorization()
        headers = {"Content-Type": content_type}
        return headers | {"Authorization": authorization} if authorization else headers

    def _url(self, path: str) -> URL:
        return URL(self._cluster.server + path, encoded=True)


def _unanswered(what: str, error: Exception) -> Exception:
    """The error as a missing answer; itself when it is a RuntimeError that says nothing of a connection."""
    if isinstance(error, RuntimeError) and _TAKEN not in str(error):
        return error
    return ApiError(0, "NoAnswer", f"{what}: {error!r}")


def _abort(response: aiohttp.ClientResponse) -> None:
    """Drop the connection of a watch that is left: TLS' polite goodbye would outlive the event loop."""
    transport = response.connection.transport if response.connection else None
    if transport is not None:
        transport.abort()


def _failure(status: int, retry_after: str, answer: bytes) -> ApiError:
    wait = float(retry_after) if retry_after.isdigit() else 0.0
    try:
        said = _status(answer)
    except msgspec.DecodeError:
        return ApiError(status, "Unreadable", answer[:200].decode(errors="replace"), wait)
    return ApiError(status, said.reason, said.message, wait)
