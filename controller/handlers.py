"""The kopf handlers: thin, they parse nothing and return None.

kopf hosts the kind there are few of, pools. It gets no daemon: kopf takes its own finalizer off a pool that
is under deletion already when the operator starts, and ours may come off only when no VM of the pool is left.
So the loops are our tasks, the finalizer is ours, and kopf writes nothing to any object.
"""

from typing import Any

import kopf

from controller.pools.host import PoolHost
from crds import names


def make_registry(host: PoolHost) -> kopf.OperatorRegistry:
    """An explicit registry: nothing is registered by importing this module."""
    registry = kopf.OperatorRegistry()

    @kopf.on.event(names.GROUP, names.VERSION, names.POOLS, registry=registry)
    async def pool_event(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002 - kopf's name for it
        host.observe(type, body)

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_via_client(**kwargs)

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
