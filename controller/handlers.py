"""The kopf handlers: thin, they parse nothing and return None.

kopf hosts the kind there are few of, pools. It gets no daemon: kopf takes its own finalizer off a pool that
is under deletion already when the operator starts, and ours may come off only when no VM of the pool is left.
So the loops are our tasks, the finalizer is ours, and kopf writes nothing to any object.
"""

import asyncio
import dataclasses
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import kopf
from kopf._cogs.structs.references import Insights, NamespaceName  # kopf takes them, and does not export them

from controller.claims.scope import Scope
from controller.kube.client import STEP_HEADER
from controller.kube.config import ClusterConfig
from controller.pools.host import PoolHost
from crds import names


@dataclasses.dataclass(frozen=True, kw_only=True)
class Connection(kopf.ConnectionInfo):
    """Kopf on the controller's own terms: the same server, the same trust, the same token.

    kopf's own log-ins would know neither `--kubeconfig` nor the order in which ours looks for credentials.
    """

    context: ssl.SSLContext | None = None

    def as_ssl_context(self) -> ssl.SSLContext:
        return self.context or super().as_ssl_context()

    def as_http_headers(self) -> dict[str, str]:
        return {**super().as_http_headers(), STEP_HEADER: "pools"}


async def connection(config: ClusterConfig) -> Connection:
    """With a token that was read just now: kopf asks when it starts, and when the one it has was refused."""
    config.authorization.refused()
    scheme, _, token = (await config.authorization.value() or "").partition(" ")
    return Connection(server=config.server, scheme=scheme or None, token=token or None, context=config.ssl)


async def look_again(insights: Insights, served: Callable[[], Awaitable[None]]) -> None:
    """Have the pools watched even if kopf found that the API server has none; `served` returns when it has.

    kopf looks once. An API server that has just started answers before it knows its custom kinds, and a kopf
    that came in that moment would never hear of a pool.
    """
    await insights.ready_resources.wait()
    if insights.watched_resources:
        return
    await served()
    verbs = frozenset({"list", "watch", "patch"})
    pools = kopf.Resource(
        names.GROUP, names.VERSION, names.POOLS, names.POOL_KIND, namespaced=True, verbs=verbs
    )
    async with insights.revised:
        insights.watched_resources.add(pools)
        insights.revised.notify_all()


async def add(insights: Insights, scope: Scope) -> None:
    """Have the pools of one more namespace watched, as soon as it can be read."""
    await scope.listed()
    await insights.ready_namespaces.wait()
    async with insights.revised:
        insights.namespaces.add(NamespaceName(scope.namespace))
        insights.revised.notify_all()


def make_registry(host: PoolHost, config: ClusterConfig) -> kopf.OperatorRegistry:
    """An explicit registry: nothing is registered by importing this module."""
    registry = kopf.OperatorRegistry()

    @kopf.on.event(names.GROUP, names.VERSION, names.POOLS, registry=registry)
    async def pool_event(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002 - kopf's name for it
        host.observe(type, body)

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await connection(config)

    return registry


def make_settings() -> kopf.OperatorSettings:
    """Kopf without posting, scanning, peering or bookkeeping on objects."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    # kopf takes off a finalizer of this name when no handler of its own needs it: never ours.
    settings.persistence.finalizer = f"{names.GROUP}/unused"
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.process.ultimate_exiting_timeout = None
    return settings


class Operator:
    """Kopf for as long as we watch. A namespace that can be read only later is given to it while it runs.

    It must not be ended before the process is: kopf cancels every task of the loop that is younger than
    itself when it ends, the pools' loops as well. It takes the process's signals over when it starts, and
    takes seconds to end on one: `listen_to_signals` makes them ours again. `served` returns when the API
    server has pools. It ends when `stopping` is set, and sets that if it ends first.
    """

    def __init__(
        self,
        host: PoolHost,
        config: ClusterConfig,
        identity: str,
        scopes: Sequence[Scope],
        stopping: asyncio.Event,
        listen_to_signals: Callable[[], None],
        served: Callable[[], Awaitable[None]],
    ) -> None:
        self._host = host
        self._config = config
        self._identity = identity
        self._scopes = scopes
        self._stopping = stopping
        self._listen_to_signals = listen_to_signals
        self._served = served

    async def run(self) -> None:
        """Until we stop. Raises what kopf ends of."""
        for each in ("kopf", "aiohttp", "asyncio"):
            logging.getLogger(each).setLevel(logging.WARNING)
        for scope in self._scopes:
            await scope.settled()
        first = [asyncio.create_task(scope.listed()) for scope in self._scopes]
        stopping = asyncio.create_task(self._stopping.wait())
        try:  # with nothing to watch kopf would watch everything
            await asyncio.wait({*first, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*first, stopping):
                task.cancel()
        if not self._stopping.is_set():
            await self._watch([scope for scope in self._scopes if scope.readable])
            self._stopping.set()  # it ended, perhaps by a signal that came before they were ours again

    async def _watch(self, scopes: Sequence[Scope]) -> None:
        ready, insights = asyncio.Event(), Insights()
        ours = asyncio.create_task(self._signals_are_ours(ready))
        beside = [
            asyncio.create_task(look_again(insights, self._served)),
            *(asyncio.create_task(add(insights, each)) for each in self._scopes if each not in scopes),
        ]
        namespaces = [scope.namespace for scope in scopes if scope.namespace]
        try:
            await kopf.operator(
                registry=make_registry(self._host, self._config),
                settings=make_settings(),
                # Else kopf asks for the user's name, and in a container the user has none.
                identity=self._identity,  # type: ignore[arg-type]  # kopf exports its NewType nowhere
                clusterwide=not namespaces,
                namespaces=namespaces,
                standalone=True,
                stop_flag=self._stopping,
                ready_flag=ready,
                insights=insights,
            )
        finally:
            for task in (ours, *beside):
                task.cancel()

    async def _signals_are_ours(self, kopf_is_ready: asyncio.Event) -> None:
        await kopf_is_ready.wait()
        self._listen_to_signals()
