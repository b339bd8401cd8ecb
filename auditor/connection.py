"""How to reach the API server: the kubeconfig as the official client reads it, and a session for it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import orjson
from kubernetes import client, config

from auditor.events import Object

T = TypeVar("T")

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
SILENCE = 90.0
"""Seconds without a byte after which a watch counts as dead: bookmarks come every minute."""


class Refused(Exception):  # noqa: N818 - it is the server's answer, and an error only to some
    """The API server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(f"{status}: {message}")


_PATIENCE = 5.0  # seconds for what is being asked when all is closed
_TURNS = 3  # of the loop: an aborted transport tells its protocol, which tells its socket


@dataclass(slots=True)
class Connection:
    """One API server; only ever read from."""

    server: str
    _configuration: Any
    _session: aiohttp.ClientSession = field(repr=False)
    _asked: set[asyncio.Task[Any]] = field(default_factory=set, repr=False)

    @classmethod
    def to(cls, kubeconfig: Path | None) -> Connection:
        """By the kubeconfig given, else by KUBECONFIG, else from within the cluster.

        Raises:
            kubernetes.config.ConfigException: there is none, or it says nothing usable.
        """
        configuration = client.Configuration()
        path = str(kubeconfig) if kubeconfig is not None else None
        config.load_config(  # type: ignore[no-untyped-call]  # the official client has no types
            config_file=path, client_configuration=configuration
        )
        connector = aiohttp.TCPConnector(ssl=_tls(configuration))
        return cls(configuration.host.rstrip("/"), configuration, aiohttp.ClientSession(connector=connector))

    async def close(self) -> None:
        """Let go of the sockets, without the farewells of TLS: the loop may end before they do."""
        if self._asked:
            await asyncio.wait(self._asked, timeout=_PATIENCE)
        if self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)
        await self._session.close()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def get(self, path: str, params: dict[str, str], accept: str = "application/json") -> Object:
        """One JSON answer.

        Raises:
            Refused: the server answered with an error.
        """
        return await self._whole(self._get(path, params, accept))

    async def _whole(self, asking: Coroutine[Any, Any, T]) -> T:
        """Ask to the end even if nobody waits any more: cancelled while it connects, it leaves a socket."""
        task = asyncio.create_task(asking)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return await asyncio.shield(task)

    async def _get(self, path: str, params: dict[str, str], accept: str) -> Object:
        timeout = aiohttp.ClientTimeout(total=60)
        headers = self._headers(accept)
        async with self._session.get(
            self.server + path, params=params, headers=headers, timeout=timeout
        ) as answer:
            body = await answer.read()
            if not answer.ok:
                raise _refusal(answer.status, body)
            document: Object = orjson.loads(body)
            return document

    async def stream(self, path: str, params: dict[str, str]) -> aiohttp.ClientResponse:
        """The open answer of a watch; whoever asked closes it.

        Raises:
            Refused: the server answered with an error.
        """
        return await self._whole(self._stream(path, params))

    async def _stream(self, path: str, params: dict[str, str]) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENCE)
        headers = self._headers("application/json")
        answer = await self._session.get(self.server + path, params=params, headers=headers, timeout=timeout)
        if answer.ok:
            return answer
        async with answer:
            raise _refusal(answer.status, await answer.read())

    def _headers(self, accept: str) -> dict[str, str]:
        tokens = self._configuration.auth_settings().values()  # asks a plugin for a new one when it is due
        return {"Accept": accept, "User-Agent": "bullpen-auditor"} | {
            token["key"]: token["value"] for token in tokens if token["in"] == "header"
        }


def _tls(configuration: Any) -> ssl.SSLContext | bool:
    if not configuration.verify_ssl:
        return False
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _refusal(status: int, body: bytes) -> Refused:
    try:
        return Refused(status, orjson.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return Refused(status, body[:200].decode(errors="replace"))
