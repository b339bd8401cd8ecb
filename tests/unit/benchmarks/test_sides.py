"""The two sides of a comparison: the floor's six writes, and the product as its user sees it."""

import asyncio
from typing import cast

import pytest

from benchmarks.bare import Bare
from benchmarks.floor import Floor
from benchmarks.objects import CLAIMS, VMS, Machine
from benchmarks.product import NotServedError, Product, Together
from benchmarks.workload import Served
from tests.support.builders import NAMESPACE
from tests.unit.benchmarks.fake_api import FakeApi
from tests.unit.benchmarks.test_objects import shape
from tests.unit.kube.fake_api import eventually


def floor(api: FakeApi, *machines: str) -> Floor:
    return Floor(cast("Bare", api), shape(), [Machine(name, f"{name}-uid") for name in machines])


def product(api: FakeApi, bound: float = 5.0) -> Product:
    return Product(cast("Bare", api), NAMESPACE, "pool", bound=bound)


async def created(api: FakeApi, count: int = 1) -> list[str]:
    """The names of so many claims, once they are made."""
    await eventually(lambda: len(api.made()) >= count)
    return api.made()


# ---- the floor


async def test_the_floor_is_six_writes_one_after_the_other() -> None:
    api = FakeApi()
    await floor(api, "vm-1").serve()
    claims, vms = CLAIMS.format(NAMESPACE), VMS.format(NAMESPACE)
    name, made = api.made()
    assert api.asked == [
        ("POST", claims),
        ("PATCH", f"{vms}/vm-1"),
        ("PATCH", f"{claims}/{name}/status"),
        ("DELETE", f"{claims}/{name}"),
        ("DELETE", f"{vms}/vm-1"),
        ("POST", vms),
    ]
    assert made.startswith("pool-")


async def test_the_floors_guards_name_the_claim_that_was_made_and_the_vm_that_was_taken() -> None:
    api = FakeApi()
    await floor(api, "vm-1").serve()
    hand_over, publish = api.bodies[1], api.bodies[2]
    assert hand_over[0] == {"op": "test", "path": "/metadata/uid", "value": "vm-1-uid"}
    assert publish[0] == {"op": "test", "path": "/metadata/uid", "value": "uid-1"}


async def test_the_floor_takes_the_oldest_vm_and_comes_to_those_that_it_made() -> None:
    api = FakeApi()
    bare = floor(api, "vm-1", "vm-2")
    for _ in range(3):
        await bare.serve()
    taken = [path.rpartition("/")[2] for method, path in api.asked if method == "PATCH"][::2]
    assert taken == ["vm-1", "vm-2", api.made()[1]]


async def test_a_burst_of_the_floor_is_four_writes_and_the_release_comes_later() -> None:
    api = FakeApi()
    bare = floor(api, "vm-1")
    await bare.serve_and_hold()
    assert [method for method, _ in api.asked] == ["POST", "PATCH", "PATCH", "POST"]
    await bare.release_all()
    assert [method for method, _ in api.asked[4:]] == ["DELETE", "DELETE"]
    await bare.release_all()
    assert len(api.asked) == 6


# ---- the product


async def test_a_claim_is_served_when_the_watch_shows_it_ready_and_then_deleted() -> None:
    api = FakeApi()
    async with product(api) as client:
        serving = asyncio.create_task(client.serve())
        (name,) = await created(api)
        api.show("ADDED", name)
        api.show_bound(name)
        served = await serving
    assert served.sent <= served.added <= served.ready <= served.ended
    assert api.asked[-1] == ("DELETE", f"{CLAIMS.format(NAMESPACE)}/{name}")
    assert client.cold == 0


async def test_other_claims_events_serve_nobody() -> None:
    api = FakeApi()
    async with product(api, bound=0.05) as client:
        serving = asyncio.create_task(client.serve())
        await created(api)
        api.show_bound("somebody-elses")
        with pytest.raises(NotServedError, match="not Ready within"):
            await serving


async def test_a_bound_claim_that_is_not_ready_yet_waits_and_counts_as_cold() -> None:
    api = FakeApi()
    async with product(api) as client:
        serving = asyncio.create_task(client.serve())
        (name,) = await created(api)
        api.show_bound(name, ready=False)
        await eventually(lambda: client.cold)
        assert not serving.done()
        api.show_bound(name)
        await serving
    assert client.cold == 1


async def test_a_claim_that_got_a_vm_that_was_not_warm_counts_as_cold() -> None:
    api = FakeApi()
    async with product(api) as client:
        serving = asyncio.create_task(client.serve())
        (name,) = await created(api)
        api.show_bound(name, warm=False)
        await serving
    assert client.cold == 1


async def test_a_lost_watch_is_told_to_everyone_who_waits() -> None:
    api = FakeApi()
    async with product(api) as client:
        serving = [asyncio.create_task(client.serve()) for _ in range(2)]
        await created(api, 2)
        api.events.put_nowait(None)
        for each in serving:
            with pytest.raises(NotServedError, match="the watch ended"):
                await each


async def test_an_event_that_can_not_be_read_loses_the_watch() -> None:
    api = FakeApi()
    async with product(api) as client:
        serving = asyncio.create_task(client.serve())
        await created(api)
        api.events.put_nowait(b"{")
        with pytest.raises(NotServedError, match="the watch was lost"):
            await serving


async def test_claims_that_stay_together_are_released_after_the_last_was_served() -> None:
    api = FakeApi()
    async with product(api) as client:
        together = Together(2)
        serving = [asyncio.create_task(client.serve(together)) for _ in range(2)]
        first, second = await created(api, 2)
        api.show_bound(first)
        await eventually(api.events.empty)
        assert "DELETE" not in [method for method, _ in api.asked]
        api.show_bound(second)
        await asyncio.gather(*serving)
    assert [method for method, _ in api.asked].count("DELETE") == 2


async def test_a_claim_that_fails_does_not_hold_the_others() -> None:
    api = FakeApi()
    async with product(api) as client:
        together = Together(2)
        serving = asyncio.create_task(client.serve(together))
        (name,) = await created(api)
        api.refuses["POST"] = 500
        with pytest.raises(Exception, match="500"):
            await client.serve(together)
        api.show_bound(name)
        assert isinstance(await serving, Served)
