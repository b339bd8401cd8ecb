"""The pool's finalizer: written with a test of what was there, so that nobody else's is lost."""

from __future__ import annotations

from typing import Any, cast

import pytest

from controller.kube.client import ApiClient
from controller.kube.errors import ApiError, NotFound, TestFailed, UnknownOutcome
from controller.pools.finalizer import put_on, take_off
from crds.names import FINALIZER_POOL
from tests.support.builders import POOL_UID, make_pool

GUARD = {"op": "test", "path": "/metadata/uid", "value": POOL_UID}


class Written:
    """An API server that notes patches, or answers each with an error."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.bodies: list[list[dict[str, Any]]] = []
        self._error = error

    async def json_patch(self, _path: str, body: list[dict[str, Any]], **_: Any) -> bytes:
        self.bodies.append(body)
        if self._error is not None:
            raise self._error
        return b"{}"


def client(written: Written) -> ApiClient:
    return cast("ApiClient", written)


def finalizers(op: str, *names: str) -> dict[str, Any]:
    return {"op": op, "path": "/metadata/finalizers", "value": list(names)}


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ((), [GUARD, finalizers("add", FINALIZER_POOL)]),
        (("a/b",), [GUARD, finalizers("test", "a/b"), finalizers("add", "a/b", FINALIZER_POOL)]),
    ],
)
async def test_it_is_put_beside_those_that_are_there(before: tuple[str, ...], body: list[Any]) -> None:
    written = Written()
    await put_on(client(written), make_pool(finalizers=before))
    assert written.bodies == [body]


@pytest.mark.parametrize("pool", [make_pool(), make_pool(finalizers=(), deleting=True)])
async def test_it_is_put_on_once_and_never_onto_a_pool_that_goes(pool: Any) -> None:
    written = Written()
    await put_on(client(written), pool)
    assert written.bodies == []


async def test_it_alone_is_taken_off() -> None:
    written = Written()
    pool = make_pool(finalizers=("a/b", FINALIZER_POOL))
    assert await take_off(client(written), pool)
    assert written.bodies == [[GUARD, finalizers("test", "a/b", FINALIZER_POOL), finalizers("add", "a/b")]]


async def test_one_that_is_not_there_is_not_taken_off() -> None:
    written = Written()
    assert not await take_off(client(written), make_pool(finalizers=("a/b",)))
    assert written.bodies == []


@pytest.mark.parametrize("error", [NotFound(404, message="gone"), TestFailed(422, message="changed")])
async def test_a_pool_that_is_gone_or_has_changed_is_not_adopted_and_not_let_go(error: ApiError) -> None:
    written = Written(error)
    await put_on(client(written), make_pool(finalizers=()))
    with pytest.raises(type(error)):
        await take_off(client(written), make_pool())


async def test_another_error_is_the_callers() -> None:
    written = Written(UnknownOutcome(503, message="not ready"))
    with pytest.raises(UnknownOutcome):
        await take_off(client(written), make_pool())
    with pytest.raises(UnknownOutcome):
        await put_on(client(written), make_pool(finalizers=()))
