"""What the tests of the client on a real API server share."""

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from controller.kube import errors
from controller.kube.client import ApiClient, Priority
from controller.kube.objects import KubeObject, ObjectMeta

FILL, LATER = Priority.REFILL, Priority.STATUS


def config_map(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"x": "1"},
    }


async def create(client: ApiClient, path: str, obj: dict[str, Any]) -> ObjectMeta:
    body = await client.post(path, obj, priority=FILL, step="create")
    return msgspec.json.decode(body, type=KubeObject).metadata


async def eventually(holds: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, "did not come about in time"
        await asyncio.sleep(0.02)


async def comes_to_be_refused(client: ApiClient, path: str, kind: type[errors.ApiError]) -> errors.ApiError:
    """What was just configured is in force a moment later: try until it is."""
    deadline = asyncio.get_running_loop().time() + 30.0
    while asyncio.get_running_loop().time() < deadline:
        try:
            await create(client, path, config_map(f"probe-{secrets.token_hex(4)}"))
        except kind as error:
            return error
        await asyncio.sleep(0.1)
    raise AssertionError("never refused")
