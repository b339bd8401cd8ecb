"""A store follows a real API server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from controller.kube import errors
from controller.kube.client import ApiClient
from controller.kube.objects import ObjectMeta
from controller.kube.reflector import Reflector
from controller.kube.store import Store
from tests.integration.kube.on_server import FILL, LATER, config_map, create, eventually

pytestmark = pytest.mark.cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Map(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, str] = {}


@contextlib.asynccontextmanager
async def reflecting(
    client: ApiClient, path: str, selector: str = ""
) -> AsyncIterator[tuple[Store[Map], Reflector[Map]]]:
    store = Store[Map]()
    reflector = Reflector(client, path, Map, store, label_selector=selector)
    task = asyncio.create_task(reflector.run())
    try:
        yield store, reflector
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def names(store: Store[Map]) -> set[str]:
    return {found.metadata.name for found in store}


async def test_a_store_follows_creates_patches_and_deletes(
    client: ApiClient, namespace: str, maps: str
) -> None:
    await create(client, maps, config_map("before"))
    async with reflecting(client, maps) as (store, reflector):
        await asyncio.wait_for(reflector.synced.wait(), 10)
        assert "before" in names(store)
        meta = await create(client, maps, config_map("a"))
        await eventually(lambda: store.by_name(namespace, "a"))
        await client.merge_patch(f"{maps}/a", {"data": {"x": "2"}}, priority=FILL, step="x")
        await eventually(lambda: (found := store.get(meta.uid)) and found.data == {"x": "2"})
        await client.delete(f"{maps}/a", uid=meta.uid, priority=FILL, step="x")
        await eventually(lambda: store.get(meta.uid) is None)


async def test_a_list_of_many_pages_and_large_objects_arrives_whole(client: ApiClient, maps: str) -> None:
    large = config_map("large") | {"data": {"blob": "x" * 400_000}}
    await create(client, maps, large)
    await asyncio.gather(*[create(client, maps, config_map(f"m{number}")) for number in range(300)])
    async with reflecting(client, maps) as (store, reflector):
        await asyncio.wait_for(reflector.synced.wait(), 20)
        assert {f"m{number}" for number in range(300)} <= names(store)
        await client.merge_patch(f"{maps}/large", {"data": {"y": "1"}}, priority=FILL, step="x")
        await eventually(lambda: any("y" in found.data for found in store))


async def test_an_object_that_loses_its_label_goes_and_comes_back(
    client: ApiClient, namespace: str, maps: str
) -> None:
    await create(client, maps, config_map("a", labels={"mine": "yes"}))
    await create(client, maps, config_map("b"))
    async with reflecting(client, maps, "mine=yes") as (store, _):
        await eventually(lambda: names(store) == {"a"})
        for label, expected in ((None, set[str]()), ("yes", {"a"})):
            patch = {"metadata": {"labels": {"mine": label}}}
            await client.merge_patch(f"{maps}/a", patch, priority=FILL, step="x")
            await eventually(lambda wanted=expected: names(store) == wanted)  # type: ignore[misc]
        assert store.by_name(namespace, "a") is not None


def definition(namespace: str) -> dict[str, Any]:
    group = f"{namespace}.test"
    anything = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": anything}],
        },
    }


@contextlib.asynccontextmanager
async def defined(client: ApiClient, crd: dict[str, Any]) -> AsyncIterator[None]:
    uid = (await create(client, CRDS, crd)).uid
    try:
        yield
    finally:
        path = f"{CRDS}/{crd['metadata']['name']}"
        await client.delete(path, uid=uid, priority=LATER, step="x")


async def test_a_kind_that_is_defined_later_is_found_and_a_version_from_before_it_is_too_old(
    client: ApiClient, namespace: str
) -> None:
    async with reflecting(client, f"/apis/{namespace}.test/v1/things") as (_, reflector):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reflector.synced.wait(), 0.5)
        async with defined(client, definition(namespace)):
            await asyncio.wait_for(reflector.synced.wait(), 30)
            other = Reflector(client, f"/apis/{namespace}.test/v1/things", Map, Store[Map]())
            other._version = "1"
            with pytest.raises(errors.Gone):
                await asyncio.wait_for(other._watch(), 30)
