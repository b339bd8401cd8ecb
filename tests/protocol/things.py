"""Immutable values with an identity, so that millions of states can share them and compare them by it.

A `Thing` is one version of one object as the API server stores it; equal versions are the same Thing. Works,
requests and answers are made unique in the same way. Nothing here knows the protocol's rules.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from controller.claims.objects import Claim
from controller.claims.protocol import Done, FoundClaim, FoundVM
from controller.machines.objects import VirtualMachine
from crds.pool import VirtualMachinePool, parse_pool

Json = dict[str, Any]
T = TypeVar("T", bound=Hashable)
K = TypeVar("K")

VM, CLAIM, POOL = "VM", "claim", "pool"


class Numbered(Generic[T]):
    """Values by small numbers: a state of millions is a tuple of these."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self._values: list[T] = []

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, number: int) -> T:
        return self._values[number]

    def number(self, value: T) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self._values)
            self._values.append(value)
        return found


class Thing:
    """One version of one object. Compared by identity: get it from `thing`."""

    def __init__(self, kind: str, raw: Json) -> None:
        self.kind = kind
        self.raw = raw
        self.meta: Json = raw["metadata"]
        self.name: str = self.meta["name"]
        self.uid: str = self.meta["uid"]
        self.labels: dict[str, str] = self.meta.get("labels", {})
        self.going = "deletionTimestamp" in self.meta
        self.finalizers: tuple[str, ...] = tuple(self.meta.get("finalizers", ()))
        self.owners: tuple[tuple[str, str], ...] = tuple(
            (owner["kind"], owner["uid"]) for owner in self.meta.get("ownerReferences", ())
        )

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.uid}>"

    @cached_property
    def vm(self) -> VirtualMachine:
        return kept(msgspec.convert(self.raw, VirtualMachine))

    @cached_property
    def claim(self) -> Claim:
        return kept(msgspec.convert(self.raw, Claim))

    @cached_property
    def pool(self) -> VirtualMachinePool:
        return parse_pool(self.raw)

    @cached_property
    def found(self) -> FoundClaim:
        answer = FoundClaim(self.claim)
        _behind[id(answer)] = self
        return answer

    @cached_property
    def status(self) -> Json:
        return self.raw.get("status") or {}

    @cached_property
    def phase(self) -> str:
        return self.status.get("phase") or "Pending"

    @cached_property
    def named(self) -> tuple[str, ...]:
        return tuple(each["uid"] for each in self.status.get("virtualMachines", ()))


_things: dict[tuple[str, bytes], Thing] = {}
_keep: dict[int, Any] = {}
_found: dict[tuple[int, float], FoundVM] = {}
_behind: dict[int, Thing] = {}


def thing(kind: str, raw: Json) -> Thing:
    """The one Thing of this content. `raw` must never be changed afterwards."""
    key = (kind, orjson.dumps(raw, option=orjson.OPT_SORT_KEYS))
    found = _things.get(key)
    if found is None:
        found = _things[key] = Thing(kind, orjson.loads(key[1]))
    return found


def found_vm(what: Thing, now: float) -> FoundVM:
    key = (id(what), now)
    answer = _found.get(key)
    if answer is None:
        answer = _found[key] = FoundVM(what.vm, now)
        _behind[id(answer)] = what
    return answer


def behind(answer: FoundVM | FoundClaim) -> Thing:
    """What an answer shows."""
    return _behind[id(answer)]


def kept(value: K) -> K:
    """Never freed, so that its identity can stand for it in `mark`."""
    _keep[id(value)] = value
    return value


def mark(value: Any) -> Hashable:
    """What tells this value from others: by identity where it is a kept one, else by its content."""
    if id(value) in _keep:
        return id(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.json.encode(value)
    if isinstance(value, dict | list):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if isinstance(value, tuple):
        return tuple(mark(each) for each in value)
    if hasattr(value, "__dataclass_fields__"):
        return (type(value), *(mark(getattr(value, each.name)) for each in fields(value)))
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False, slots=True)
class Request:
    """A step of a procedure, made unique."""

    step: Any
    key: Hashable
    writes: bool


class Work:
    """A procedure's present state, made unique: what it asks for next, and what comes of each answer."""

    def __init__(self, procedure: Any) -> None:
        self.procedure = procedure
        following = procedure.next()
        self.done = following if isinstance(following, Done) else None
        self.request = None if self.done else request(following)
        self._after: dict[int, Work] = {}

    def after(self, answer: Any) -> Work:
        """Answers are kept for ever, so their identity will do."""
        found = self._after.get(id(answer))
        if found is None:
            found = self._after[id(answer)] = work(self.procedure.observe(answer))
            _keep[id(answer)] = answer
        return found


_works: dict[Hashable, Work] = {}
_requests: dict[Hashable, Request] = {}


def work(procedure: Any) -> Work:
    key = mark(procedure)
    found = _works.get(key)
    if found is None:
        found = _works[key] = Work(procedure)
    return found


def request(step: Any) -> Request:
    key = mark(step)
    found = _requests.get(key)
    if found is None:
        reads = type(step).__name__.startswith(("Read", "List"))
        found = _requests[key] = Request(step, key, not reads)
    return found


def forget() -> None:
    """Between two explorations of other code: a work remembers what the code of its time answered."""
    _works.clear()
    _requests.clear()
