"""Keeps one pool's history in a ConfigMap beside the pool: reads it, makes it, writes it. Decides nothing.

The ConfigMap is the pool's by owner reference, so it goes with it. One that is not ours is never touched, and
a write is refused where another writer was faster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from controller.claims.protocol import StepName
from controller.kube import errors
from controller.kube.client import ApiClient, Priority
from controller.kube.objects import ObjectMeta
from crds import names
from crds.pool import VirtualMachinePool

Json = dict[str, Any]


class Note(msgspec.Struct, rename="camel", frozen=True):
    """What is written down beside the history: when (epoch seconds), and `capacity.idle`'s pairs."""

    written_at: float = 0.0
    idle: list[tuple[int, float]] = []


class _ConfigMap(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Kept:
    """What was found: the history as it was written, and the note beside it."""

    history: bytes
    note: Note


class NotOursError(Exception):
    """Something else has the name; the message says so to people."""


_DECODER = msgspec.json.Decoder(_ConfigMap)
_NOTE = msgspec.json.Decoder(Note)


class Keeper:
    """Of one pool; `pool` is it as it is now."""

    def __init__(self, client: ApiClient, pool: Callable[[], VirtualMachinePool]) -> None:
        self._client = client
        self._pool = pool
        self._version = ""

    @property
    def name(self) -> str:
        return f"{names.HISTORY_PREFIX}{self._pool().metadata.name}"

    async def read(self) -> Kept | None:
        """What is kept of this pool; None if nothing is. Raises ApiError and NotOursError."""
        self._version = ""
        try:
            found = _DECODER.decode(await self._client.get(self._one, step=StepName.POOL_HISTORY_READ))
        except errors.NotFound:
            return None
        if not self._ours(found.metadata):
            return None
        self._version = found.metadata.resource_version
        return Kept(found.binary_data.get(names.HISTORY_KEY, b""), _noted(found))

    async def write(self, history: bytes, note: Note, aside: bytes = b"") -> None:
        """Keep it; `aside` is what could not be read before. Raises ApiError and NotOursError.

        Where somebody wrote since our last read it is read, and written over: one leads, and that is us.
        """
        body = _contents(history, note, aside)
        try:
            await self._write(body)
        except (errors.Conflict, errors.NotFound, errors.AlreadyExists):
            await self.read()
            await self._write(body)

    async def _write(self, body: Json) -> None:
        if self._version:
            guarded = {**body, "metadata": {"resourceVersion": self._version}}
            answer = await self._client.merge_patch(
                self._one, guarded, priority=Priority.STATUS, step=StepName.POOL_HISTORY_WRITE
            )
        else:
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self._metadata(), **body}
            answer = await self._client.post(
                self._all, made, priority=Priority.STATUS, step=StepName.POOL_HISTORY_MAKE
            )
        self._version = _DECODER.decode(answer).metadata.resource_version

    def _ours(self, found: ObjectMeta) -> bool:
        """Whether it is this pool's. An earlier namesake's is collected soon, a person's is left alone.

        One without an owner was kept on purpose: a pool of this name was deleted with --cascade=orphan.
        """
        meta = self._pool().metadata
        if found.labels.get(names.LABEL_POOL) != meta.name:
            raise NotOursError(
                f"ConfigMap {self.name} is not Bullpen's, so what is asked of this pool is forgotten when "
                "the controller stops: give that ConfigMap another name"
            )
        return all(owner.uid == meta.uid for owner in found.owner_references)

    def _metadata(self) -> Json:
        meta = self._pool().metadata
        return {
            "name": self.name,
            "namespace": meta.namespace,
            "labels": {names.LABEL_POOL: meta.name, names.LABEL_POOL_UID: meta.uid},
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.POOL_KIND,
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,  # a pool never waits for it
                }
            ],
        }

    @property
    def _all(self) -> str:
        return f"/api/v1/namespaces/{self._pool().metadata.namespace}/configmaps"

    @property
    def _one(self) -> str:
        return f"{self._all}/{self.name}"


def _contents(history: bytes, note: Note, aside: bytes) -> Json:
    binary = {names.HISTORY_KEY: history} | ({names.HISTORY_BROKEN_KEY: aside} if aside else {})
    return {
        "data": {names.HISTORY_NOTE_KEY: msgspec.json.encode(note).decode()},
        "binaryData": msgspec.to_builtins(binary),
    }


def _noted(found: _ConfigMap) -> Note:
    """A note that a person spoilt is none."""
    try:
        return _NOTE.decode(found.data.get(names.HISTORY_NOTE_KEY, "{}"))
    except msgspec.MsgspecError:
        return Note()
