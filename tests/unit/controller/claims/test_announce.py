"""Why a pool's claims wait, in words; and nobody's hand-over waits for them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.claims import announce
from controller.claims.announce import Announcer, situation
from controller.claims.loop import Namespace
from controller.claims.queue import Queue
from controller.claims.records import PoolRecord
from controller.machines.inventory import Inventory
from tests.support.builders import NOW, make_claim, make_pool


def record(**fields: Any) -> PoolRecord:
    pool = PoolRecord(make_pool(), Inventory("pool-uid"), Queue())
    for name, value in fields.items():
        setattr(pool, name, value)
    return pool


@pytest.mark.parametrize(
    ("pool", "reason", "words"),
    [
        (None, "PoolNotFound", "does not exist"),
        (record(trouble="no domain"), "PoolInvalid", "no domain"),
        (record(denied="not today"), "Queued", "not today"),
        (record(), "Queued", "in line"),
        (record(hindrance="spec.suspend is true"), "Queued", "the pool makes none: spec.suspend is true"),
        (record(pool=make_pool(deleting=True)), "PoolDeleting", "being deleted"),
    ],
    ids=["missing", "broken", "denied", "empty", "hindered", "going"],
)
def test_a_line_is_told_what_stands_between_it_and_a_vm(
    pool: PoolRecord | None, reason: str, words: str
) -> None:
    found = situation("ci", pool, "")
    assert found.reason == reason
    assert words in found.message


def test_while_kubevirt_is_missing_a_line_is_told_that_and_no_pools_trouble() -> None:
    found = situation("ci", record(trouble="no domain"), "", "install KubeVirt")
    assert (found.reason, found.message) == ("KubeVirtMissing", "install KubeVirt")


class Slow:
    """A namespace in which telling a claim takes until somebody lets it."""

    def __init__(self, *claims: str) -> None:
        self.line = Queue()
        for name in claims:
            self.line.push(make_claim(name), NOW - 60)
        self.accepted = True
        self.told: list[str] = []
        self.hushed: list[str] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.router = SimpleNamespace(queues={"ci": self.line}, pools={}, misfits={})
        self.aftercare = self
        self.desk = SimpleNamespace(start=asyncio.ensure_future, missing="")

    def now(self) -> float:
        return NOW

    async def tell(self, entry: Any, *_: object) -> bool:
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.hushed.append(entry.claim.name)
            raise
        self.told.append(entry.claim.name)
        if len(self.told) + len(self.hushed) == len(self.line.line):
            self.line.line.clear()
        return self.accepted


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announce, "FIRST", 0.0)
    monkeypatch.setattr(announce, "INTERVAL", 0.0)


async def test_a_claim_that_is_served_is_not_told_any_more_and_the_others_are() -> None:
    space = Slow("a", "b")
    announcer = Announcer(cast("Namespace", space))
    announcer.wake("ci")
    await asyncio.wait_for(space.begun.wait(), 5)
    announcer.hush("b-uid")
    space.go_on.set()
    async with asyncio.timeout(5):
        while space.line.line:
            await asyncio.sleep(0)
    assert (space.told, space.hushed) == (["a"], ["b"])


async def test_hushing_a_claim_that_nobody_tells_anything_harms_nobody() -> None:
    Announcer(cast("Namespace", Slow())).hush("a-uid")


@pytest.mark.parametrize(("accepted", "known"), [(True, 1), (False, 2)], ids=["told", "refused"])
async def test_a_place_that_could_not_be_told_is_not_known(accepted: bool, known: int) -> None:  # noqa: FBT001 - a case
    space = Slow("first")
    space.accepted = accepted
    space.go_on.set()
    [entry] = space.line.waiting()
    entry.tell(2, NOW - 60)
    await Announcer(cast("Namespace", space))._pass("ci", space.line)
    assert space.told == ["first"]
    assert (entry.told_position, entry.told_at) == (known, NOW)
