"""How a pool's history is kept beside it: whose ConfigMap it is, who is overwritten, what is left alone."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, cast

import msgspec
import orjson
import pytest

from controller.kube import errors
from controller.kube.client import ApiClient, Priority
from controller.pools.keeping import Keeper, Note, NotOursError
from crds import names
from tests.support.builders import POOL, POOL_UID, make_pool

Json = dict[str, Any]
NOTE = Note(1_000.0, [(1, 7_200.0)])


class Maps:
    """An API server that holds one ConfigMap, by resourceVersion as Kubernetes does; what it was asked."""

    def __init__(self) -> None:
        self.stored: Json | None = None
        self.steps: list[str] = []
        self.refuse: Exception | None = None
        self.before_write: Callable[[], None] = lambda: None

    async def get(self, path: str, *, step: str) -> bytes:
        self.steps.append(step)
        assert path == f"/api/v1/namespaces/ns/configmaps/bullpen-history-{POOL}"
        if self.stored is None:
            raise errors.NotFound(404)
        return orjson.dumps(self.stored)

    async def post(self, path: str, obj: Json, *, priority: Priority, step: str) -> bytes:
        self._comes(step, priority)
        assert path == "/api/v1/namespaces/ns/configmaps"
        if self.stored is not None:
            raise errors.AlreadyExists(409)
        return self._store(obj)

    async def merge_patch(self, _path: str, patch: Json, *, priority: Priority, step: str) -> bytes:
        self._comes(step, priority)
        if self.stored is None:
            raise errors.NotFound(404)
        if patch["metadata"]["resourceVersion"] != self.stored["metadata"]["resourceVersion"]:
            raise errors.Conflict(409)
        merged = {key: {**self.stored.get(key, {}), **patch[key]} for key in ("data", "binaryData")}
        return self._store({**self.stored, **merged})

    def _comes(self, step: str, priority: Priority) -> None:
        self.steps.append(step)
        assert priority is Priority.STATUS, "nobody waits for it"
        self.before_write()
        if self.refuse is not None:
            raise self.refuse

    def _store(self, obj: Json) -> bytes:
        before = int(self.stored["metadata"]["resourceVersion"]) if self.stored else 0
        self.stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(before + 1)}}
        return orjson.dumps(self.stored)

    def somebody_writes(self) -> None:
        assert self.stored is not None
        self._store(self.stored)

    @property
    def binary(self) -> dict[str, bytes]:
        assert self.stored is not None
        return {key: base64.b64decode(text) for key, text in self.stored["binaryData"].items()}


@pytest.fixture
def maps() -> Maps:
    return Maps()


@pytest.fixture
def keeper(maps: Maps) -> Keeper:
    return Keeper(cast("ApiClient", maps), make_pool)


async def test_where_nothing_is_kept_nothing_is_found(keeper: Keeper) -> None:
    assert await keeper.read() is None


async def test_what_is_written_is_read_again_by_the_next_leader(keeper: Keeper, maps: Maps) -> None:
    await keeper.write(b"\x00days", NOTE)
    kept = await Keeper(cast("ApiClient", maps), make_pool).read()
    assert kept is not None
    assert (kept.history, kept.note) == (b"\x00days", NOTE)


async def test_it_is_the_pools_so_that_it_goes_with_it_and_nobody_waits_for_it(
    keeper: Keeper, maps: Maps
) -> None:
    await keeper.write(b"days", NOTE)
    assert maps.stored is not None
    meta = maps.stored["metadata"]
    [owner] = meta["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (POOL_UID, True, False)
    assert meta["labels"] == {names.LABEL_POOL: POOL, names.LABEL_POOL_UID: POOL_UID}


async def test_it_is_made_once_and_patched_from_then_on(keeper: Keeper, maps: Maps) -> None:
    for each in (b"one", b"two", b"three"):
        await keeper.write(each, NOTE)
    assert maps.steps == ["pool/history-make", "pool/history-write", "pool/history-write"]
    assert maps.binary == {names.HISTORY_KEY: b"three"}


async def test_what_could_not_be_read_is_set_aside_and_stays_there(keeper: Keeper, maps: Maps) -> None:
    await keeper.write(b"new", NOTE, aside=b"broken")
    await keeper.write(b"newer", NOTE)
    assert maps.binary == {names.HISTORY_KEY: b"newer", names.HISTORY_BROKEN_KEY: b"broken"}


async def test_a_write_of_an_earlier_leader_that_came_late_is_written_over(
    keeper: Keeper, maps: Maps
) -> None:
    await keeper.write(b"one", NOTE)
    maps.somebody_writes()
    await keeper.write(b"two", NOTE)
    assert maps.binary[names.HISTORY_KEY] == b"two"


async def test_one_that_a_person_deleted_is_made_anew(keeper: Keeper, maps: Maps) -> None:
    await keeper.write(b"one", NOTE)
    maps.stored = None
    await keeper.write(b"two", NOTE)
    assert maps.binary[names.HISTORY_KEY] == b"two"


async def test_two_that_write_at_once_do_not_chase_each_other(keeper: Keeper, maps: Maps) -> None:
    await keeper.write(b"one", NOTE)
    maps.before_write = maps.somebody_writes
    with pytest.raises(errors.Conflict):
        await keeper.write(b"two", NOTE)
    assert len(maps.steps) == 4, "one try, one look, one more try"


async def test_what_a_person_added_stays(keeper: Keeper, maps: Maps) -> None:
    await keeper.write(b"one", NOTE)
    assert maps.stored is not None
    maps.stored["metadata"]["annotations"] = {"example.com/backup": "yes"}
    await keeper.write(b"two", NOTE)
    assert maps.stored["metadata"]["annotations"] == {"example.com/backup": "yes"}


def _with(maps: Maps, **metadata: Any) -> None:
    maps.stored = {
        "metadata": {"name": f"bullpen-history-{POOL}", "resourceVersion": "7", **metadata},
        "binaryData": {names.HISTORY_KEY: base64.b64encode(b"theirs").decode()},
    }


async def test_a_persons_config_map_of_that_name_is_never_touched(keeper: Keeper, maps: Maps) -> None:
    _with(maps)
    with pytest.raises(NotOursError, match="give that ConfigMap another name"):
        await keeper.read()
    with pytest.raises(NotOursError):
        await keeper.write(b"ours", NOTE)
    assert maps.binary == {names.HISTORY_KEY: b"theirs"}


async def test_an_earlier_namesakes_history_is_left_to_the_garbage_collector(
    keeper: Keeper, maps: Maps
) -> None:
    _with(maps, labels={names.LABEL_POOL: POOL}, ownerReferences=[{"uid": "earlier"}])
    assert await keeper.read() is None
    with pytest.raises(errors.AlreadyExists):
        await keeper.write(b"ours", NOTE)
    maps.stored = None
    await keeper.write(b"ours", NOTE)
    assert maps.binary == {names.HISTORY_KEY: b"ours"}


async def test_a_history_that_was_kept_when_its_pool_was_deleted_is_gone_on_with(
    keeper: Keeper, maps: Maps
) -> None:
    _with(maps, labels={names.LABEL_POOL: POOL})
    kept = await keeper.read()
    assert kept is not None
    assert kept.history == b"theirs"
    await keeper.write(b"ours", NOTE)
    assert maps.binary == {names.HISTORY_KEY: b"ours"}


@pytest.mark.parametrize("spoilt", ["{", '{"writtenAt": "yesterday"}', "[]"])
async def test_a_note_that_a_person_spoilt_is_none(keeper: Keeper, maps: Maps, spoilt: str) -> None:
    await keeper.write(b"days", NOTE)
    assert maps.stored is not None
    maps.stored["data"][names.HISTORY_NOTE_KEY] = spoilt
    kept = await keeper.read()
    assert kept is not None
    assert kept.note == Note()


async def test_a_write_that_was_refused_or_lost_is_the_callers_to_try_again(
    keeper: Keeper, maps: Maps
) -> None:
    maps.refuse = errors.UnknownOutcome(503)
    with pytest.raises(errors.UnknownOutcome):
        await keeper.write(b"one", NOTE)
    maps.refuse = None
    await keeper.write(b"one", NOTE)


def test_the_note_of_a_later_release_can_be_read() -> None:
    later = b'{"writtenAt": 5.0, "idle": [[7, 1.5]], "more": [1]}'
    assert msgspec.json.decode(later, type=Note) == Note(5.0, [(7, 1.5)])
