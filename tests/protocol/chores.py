"""Sequences of requests that the product's event loop makes without a procedure of their own.

Each mirrors one method, named in its docstring, and decides nothing that the product decides in pure code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from controller.claims import patches
from controller.claims.protocol import (
    Accepted,
    Answer,
    Done,
    FoundVM,
    Missing,
    NotApplied,
    PatchVM,
    ReadVM,
    StepName,
    TestRefused,
    Unknown,
)
from controller.claims.resync import missing_labels, put_back
from controller.machines.ownership import controller_reference
from crds import names
from tests.protocol.apiserver import CreateVM, DeleteClaim, Exists, ListOwned, Owned, PatchPool
from tests.protocol.things import Json


@dataclass(frozen=True)
class Creation:
    """`PoolWriter.create`: the same creation until the answer is definite; AlreadyExists is looked at."""

    name: str
    body: Json
    looks: bool = False
    done: Done | None = None

    def next(self) -> object:
        if self.done is not None:
            return self.done
        if self.looks:
            return ReadVM(StepName.POOL_READ, self.name)
        return CreateVM(StepName.POOL_CREATE, self.name, self.body)

    def observe(self, answer: object) -> Creation:
        match answer:
            case FoundVM() | Missing():
                return replace(self, done=Done("made"))
            case Exists():
                return replace(self, looks=True)
            case Unknown() | NotApplied():
                return self
            case _:
                return replace(self, done=Done("refused"))


def creation(name: str, body: Json) -> Creation:
    """`body` as rendered, under the name that this world's dice have thrown."""
    meta = body["metadata"]
    kept = {key: meta[key] for key in ("namespace", "labels", "annotations", "ownerReferences")}
    return Creation(name, {"metadata": {**kept, "name": name, "uid": f"{name}-uid"}})


@dataclass(frozen=True)
class Dropping:
    """`PoolLoop._drop_finalizer`: the pool may go only when an uncached list shows no VM that it owns."""

    name: str
    uid: str
    finalizers: tuple[str, ...]
    listed: bool = False
    done: Done | None = None

    def next(self) -> object:
        if self.done is not None:
            return self.done
        if not self.listed:
            return ListOwned(StepName.POOL_READ, self.uid)
        left = [each for each in self.finalizers if each != names.FINALIZER_POOL]
        ops = (
            patches.test("/metadata/uid", self.uid),
            patches.test("/metadata/finalizers", list(self.finalizers)),
            patches.add("/metadata/finalizers", left),
        )
        return PatchPool(StepName.POOL_FINALIZER, self.name, ops)

    def observe(self, answer: object) -> Dropping:
        match answer:
            case Owned(names=found) if found or names.FINALIZER_POOL not in self.finalizers:
                return replace(self, done=Done("owned"))
            case Owned():
                return replace(self, listed=True)
            case Unknown() | NotApplied() if not self.listed:
                return self
            case _:
                return replace(self, done=Done("dropped" if isinstance(answer, Accepted) else "refused"))


@dataclass(frozen=True)
class RemoveClaim:
    """`Aftercare._remove`: a finished claim whose time to live is over."""

    name: str
    uid: str
    done: Done | None = None

    def next(self) -> object:
        return self.done or DeleteClaim(StepName.CLAIM_TTL, self.name, self.uid)

    def observe(self, answer: object) -> RemoveClaim:
        return replace(self, done=Done("removed" if isinstance(answer, Accepted) else "refused"))


@dataclass(frozen=True)
class Mending:
    """`Resync._mend` on one VM of an uncached list; `claim` finds the cached claim that owns it."""

    name: str
    claims: tuple[object, ...]
    found: object = None
    done: Done | None = None

    def next(self) -> object:
        if self.done is not None:
            return self.done
        if self.found is None:
            return ReadVM(StepName.RESYNC, self.name)
        meta = self.found.metadata  # type: ignore[attr-defined]
        return PatchVM(StepName.RESYNC_LABELS, self.name, put_back(meta, self._missing()))

    def _missing(self) -> dict[str, str]:
        meta = self.found.metadata  # type: ignore[attr-defined]
        owner = controller_reference(meta)
        if owner is None or meta.deletion_timestamp is not None:
            return {}
        claim = next((each for each in self.claims if each.uid == owner.uid), None)  # type: ignore[attr-defined]
        return missing_labels(meta, claim)  # type: ignore[arg-type]

    def observe(self, answer: Answer) -> Mending:
        match answer:
            case FoundVM(vm) if self.found is None:
                looked = replace(self, found=vm)
                return looked if looked._missing() else replace(self, done=Done("fine"))
            case FoundVM() | Missing() | TestRefused():
                return replace(self, done=Done("looked"))
            case Unknown() | NotApplied() if self.found is None:
                return self
            case _:
                return replace(self, done=Done("refused"))
