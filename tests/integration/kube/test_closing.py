"""A client that is closed in the middle of its work leaves nothing behind on the real loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from controller.kube.client import ApiClient, Priority
from controller.kube.config import load_config

pytestmark = pytest.mark.cluster


async def work_and_stop(kubeconfig: Path) -> int:
    """Cancel many writes and watches half-way; how many sockets are open once the client is closed."""
    client = ApiClient(load_config(str(kubeconfig)))
    made = {"metadata": {"generateName": "closing-"}, "data": {"key": "value" * 200}}

    async def write() -> None:
        await client.post(
            "/api/v1/namespaces/default/configmaps", made, priority=Priority.HAND_OVER, step="test"
        )

    async def watch() -> None:
        async with client.stream("/api/v1/configmaps", {"watch": "true"}, idle=60) as chunks:
            async for _ in chunks:
                pass

    tasks = [asyncio.create_task(each()) for each in [write] * 64 + [watch] * 3]
    while client.gate.waiting or client.gate.in_flight == 0:
        await asyncio.sleep(0.001)
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
    await client.close()
    return sum(each.fileno() >= 0 for each in client._sockets)


def test_a_client_closed_in_the_middle_of_its_requests_closes_every_socket(kubeconfig: Path) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(work_and_stop(kubeconfig)) == 0
