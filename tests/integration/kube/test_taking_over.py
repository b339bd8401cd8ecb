"""A store that a watch told nothing is made as new as a real API server's consistent list."""

import asyncio

import pytest

from controller.kube.client import ApiClient
from controller.kube.objects import KubeObject
from controller.kube.reflector import Reflector
from controller.kube.store import Store
from tests.integration.kube.on_server import FILL, config_map, create

pytestmark = pytest.mark.cluster

OURS = {"mine": "yes"}


@pytest.fixture
async def deaf(client: ApiClient, maps: str) -> Reflector[KubeObject]:
    """A reflector that has listed once and whose watch is broken; its store has a, b and c."""
    for name in "abc":
        await create(client, maps, config_map(name, labels=OURS))
    reflector = Reflector(
        client, "/api/v1/configmaps", KubeObject, Store[KubeObject](), label_selector="mine"
    )
    await reflector._list()
    return reflector


def names(reflector: Reflector[KubeObject], namespace: str) -> dict[str, str]:
    return {
        each.metadata.name: each.metadata.labels["mine"]
        for each in reflector._store
        if each.metadata.namespace == namespace
    }


async def confirm(reflector: Reflector[KubeObject]) -> None:
    async with asyncio.timeout(30):
        await reflector.confirm(asyncio.get_running_loop().time())


async def test_what_changed_went_and_came_meanwhile_is_known(
    client: ApiClient, namespace: str, maps: str, deaf: Reflector[KubeObject]
) -> None:
    await client.merge_patch(f"{maps}/a", {"metadata": {"labels": {"mine": "no"}}}, priority=FILL, step="x")
    b = deaf._store.by_name(namespace, "b")
    assert b is not None
    await client.delete(f"{maps}/b", uid=b.metadata.uid, priority=FILL, step="x")
    await client.merge_patch(f"{maps}/c", {"metadata": {"labels": {"mine": None}}}, priority=FILL, step="x")
    await create(client, maps, config_map("d", labels=OURS))
    await create(client, maps, config_map("foreign"))
    assert set(names(deaf, namespace)) == set("abc"), "nobody has told it"
    await confirm(deaf)
    assert names(deaf, namespace) == {"a": "no", "d": "yes"}


async def test_a_namesake_is_another(
    client: ApiClient, namespace: str, maps: str, deaf: Reflector[KubeObject]
) -> None:
    old = deaf._store.by_name(namespace, "a")
    assert old is not None
    await client.delete(f"{maps}/a", uid=old.metadata.uid, priority=FILL, step="x")
    new = await create(client, maps, config_map("a", labels=OURS))
    await confirm(deaf)
    found = deaf._store.by_name(namespace, "a")
    assert found is not None
    assert found.metadata.uid == new.uid
    assert deaf._store.get(old.metadata.uid) is None


async def test_much_that_came_meanwhile_is_listed(
    client: ApiClient, namespace: str, maps: str, deaf: Reflector[KubeObject]
) -> None:
    await asyncio.gather(*(create(client, maps, config_map(f"m{n}", labels=OURS)) for n in range(60)))
    await confirm(deaf)
    assert len(names(deaf, namespace)) == 63
