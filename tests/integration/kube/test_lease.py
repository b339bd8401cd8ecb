"""Two contenders for one lease of a real API server."""

import asyncio
import json
from typing import Any

import pytest

from controller.kube.client import ApiClient
from controller.kube.lease import LeaderElection
from tests.integration.kube.on_server import eventually

pytestmark = pytest.mark.cluster


async def spec_of(client: ApiClient, namespace: str) -> dict[str, Any]:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/bullpen"
    found: dict[str, Any] = json.loads(await client.get(path))["spec"]
    return found


async def test_of_two_contenders_one_leads_and_the_other_takes_over(
    client: ApiClient, namespace: str
) -> None:
    now = asyncio.get_running_loop().time
    one, two, three = [
        LeaderElection(client, namespace, "bullpen", name, duration=8, renew=1)
        for name in ("one", "two", "three")
    ]
    await one.acquire()
    holding = asyncio.create_task(one.hold())
    waiting = asyncio.create_task(two.acquire())
    renewals: set[str] = set()
    while len(renewals) < 10:  # a second apart: longer than the lease lasts without them
        renewals.add((await spec_of(client, namespace))["renewTime"])
        await asyncio.sleep(0.05)
    assert one.time_left() > 0
    assert not waiting.done()
    holding.cancel()  # it dies
    await asyncio.wait_for(waiting, 30)
    assert one.time_left() == 0.0
    assert two.time_left() > 0
    last = asyncio.create_task(three.acquire())
    await eventually(lambda: three._seen)
    released = now()
    await two.release()
    await asyncio.wait_for(last, 30)
    assert now() - released <= 6.0, "it does not wait for the lease to run out"
    spec = await spec_of(client, namespace)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("three", 3)
