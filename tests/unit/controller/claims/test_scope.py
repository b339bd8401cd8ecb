"""Namespaces that are watched begin each for itself: what may not be read in one holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.claims.scope import Scope
from controller.claims.world import World
from controller.kube.client import ApiClient
from controller.kube.errors import Forbidden
from controller.kube.timeline import Timeline
from tests.support.builders import NAMESPACE, make_claim


class Watched:
    """A reflector that is told how its list went."""

    def __init__(self) -> None:
        self.synced, self.settled = asyncio.Event(), asyncio.Event()
        self.confirmed: list[float] = []

    def listed(self) -> None:
        self.synced.set()
        self.settled.set()

    async def confirm(self, since: float) -> None:
        self.confirmed.append(since)


def scope_of(namespace: str, *watched: Watched) -> Scope:
    return Scope(namespace, cast("Any", watched))


async def done(work: Any) -> bool:
    task = asyncio.ensure_future(work)
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    return task.done() and not task.cancelled()


async def test_a_namespace_is_settled_when_it_is_known_that_it_may_not_be_read() -> None:
    one, two = Watched(), Watched()
    scope = scope_of("ns", one, two)
    one.listed()
    assert not await done(scope.settled())
    two.settled.set()
    assert await done(scope.settled())
    assert not scope.readable
    two.listed()
    assert scope.readable


async def test_where_everything_is_watched_a_refusal_settles_nothing() -> None:
    one = Watched()
    one.settled.set()
    assert not await done(scope_of("", one).settled())


async def test_pools_are_asked_for_after_all_else_and_until_they_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("controller.claims.scope.AGAIN", 0.0)
    one, asked = Watched(), []

    async def pools(namespace: str) -> None:
        asked.append((namespace, list(one.confirmed)))
        if len(asked) < 3:
            raise Forbidden(403)

    one.listed()
    await asyncio.wait_for(scope_of("ns", one).confirm(7.0, pools), 5)
    assert asked == [("ns", [7.0])] * 3


@pytest.fixture
def make_world() -> Callable[..., World]:
    client = SimpleNamespace(server_time=lambda: datetime(2026, 1, 1, tzinfo=UTC), timeline=Timeline)
    return lambda *namespaces: World(cast("ApiClient", client), 32, namespaces)


def paths(world: World) -> list[str]:
    return [each._path for each in world.reflectors]


def test_without_a_word_everything_is_watched(make_world: Callable[..., World]) -> None:
    assert paths(make_world()) == [
        "/api/v1/nodes",
        "/apis/bullpen.dev/v1alpha1/virtualmachineclaims",
        "/apis/kubevirt.io/v1/virtualmachines",
        "/apis/kubevirt.io/v1/virtualmachineinstances",
    ]


def test_told_which_it_watches_these_namespaces_and_nodes(make_world: Callable[..., World]) -> None:
    assert paths(make_world("a", "b")) == [
        "/api/v1/nodes",
        *(
            f"/apis/{group}/namespaces/{namespace}/{plural}"
            for namespace in ("a", "b")
            for group, plural in (
                ("bullpen.dev/v1alpha1", "virtualmachineclaims"),
                ("kubevirt.io/v1", "virtualmachines"),
                ("kubevirt.io/v1", "virtualmachineinstances"),
            )
        ),
    ]


def test_work_begins_in_one_namespace_without_the_other(make_world: Callable[..., World]) -> None:
    world = make_world(NAMESPACE, "other")
    here, there = world.space(NAMESPACE), world.space("other")
    there.begin = here.begin = lambda: None  # type: ignore[method-assign]  # only who is asked
    world.begin("other")
    there.begun = True
    assert (here.active, there.active) == (False, True)
    assert world.space("yet another").active is False
    world.claims.apply(make_claim())
    assert not here._claims, "nothing is decided here yet"
    world.stop()
    assert there.active is False
