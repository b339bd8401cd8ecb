"""The kopf handlers: thin, they parse nothing and return None.

kopf hosts the kind there are few of, pools. It gets no daemon: kopf takes its own finalizer off a pool that
is under deletion already when the operator starts, and ours may come off only when no VM of the pool is left.
So the loops are our tasks, the finalizer is ours, and kopf writes nothing to any object.
"""

import dataclasses
import ssl
from typing import Any

import kopf

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
