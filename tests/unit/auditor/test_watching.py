"""The auditor's own life: how it comes to rest, or says that it can't, and that it never fails silently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from auditor import feed, watching
from auditor.events import Change, Event, Kind, Rule
from auditor.watching import Auditor
from tests.unit.auditor.story import Raw, Story


class Cluster:
    """Stands for the connection: lists what the story left, and shows each watch nothing."""

    def __init__(self, story: Story) -> None:
        self.story = story

    async def get(self, path: str, _params: dict[str, str], _accept: str = "") -> Raw:
        kinds = {"pools": Kind.POOL, "claims": Kind.CLAIM, "machines": Kind.VM, "namespaces": Kind.NAMESPACE}
        kind = next(kind for word, kind in kinds.items() if path.endswith(word))
        items = [raw for (of, _), raw in self.story.objects.items() if of is kind]
        return {"metadata": {"resourceVersion": str(self.story.rv)}, "items": items}

    async def collection(self, path: str, params: dict[str, str], _accept: str = "") -> tuple[list[Raw], int]:
        return (await self.get(path, params))["items"], self.story.rv

    async def stream(self, _path: str, _params: dict[str, str]) -> Any:
        return Silence()


class Silence:
    """A watch on which nothing happens."""

    connection = None

    def __init__(self) -> None:
        self.content = self
        self.closed = asyncio.Event()

    async def iter_any(self) -> AsyncIterator[bytes]:
        await self.closed.wait()
        yield b""

    def close(self) -> None:
        self.closed.set()


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "QUIET", 0.1)
    monkeypatch.setattr(watching, "_PACE", 0.05)
    monkeypatch.setattr(watching, "_PATIENCE", 0.1)
    monkeypatch.setattr(feed, "GRACE", 0.02)


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
async def auditor(story: Story) -> AsyncIterator[Auditor]:
    cluster: Any = Cluster(story)
    auditor = Auditor(cluster, "ns", None)
    await auditor._start()
    yield auditor
    await auditor._stop()


def show(auditor: Auditor, story: Story, since: int) -> None:
    for event in story.events:
        if event.rv > since:
            stream = next(one for one in auditor._streams if one.source.kind is event.kind)
            stream._take({"type": event.change, "object": event.objects[0]})


async def test_a_quiet_cluster_is_at_rest_at_once(auditor: Auditor) -> None:
    async with asyncio.timeout(5):
        assert await auditor.settled(30) == []


async def test_events_of_one_kind_are_judged_although_the_others_are_silent(
    auditor: Auditor, story: Story
) -> None:
    since = story.rv
    story.claim()
    story.status(phase="Bound")
    show(auditor, story, since)

    async with asyncio.timeout(10):
        while not auditor.violations:
            await asyncio.sleep(0.01)
    assert [found.rule for found in auditor.violations] == [Rule.I2]


async def test_a_leak_is_waited_for_and_then_reported(auditor: Auditor, story: Story) -> None:
    since = story.rv
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    show(auditor, story, since)

    assert [found.rule for found in await auditor.settled(0.5)] == [Rule.LEAK]
    assert [found.rule for found in auditor.violations] == [Rule.LEAK]


async def test_a_leak_that_heals_while_it_is_waited_for_is_none(auditor: Auditor, story: Story) -> None:
    since = story.rv
    story.pool()
    story.vm()
    story.claim()
    story.hand_over()
    show(auditor, story, since)
    settled = asyncio.create_task(auditor.settled(20))
    await asyncio.sleep(0)
    since = story.rv
    story.publish()
    show(auditor, story, since)

    assert await settled == []


async def test_a_cluster_that_never_rests_is_a_violation(auditor: Auditor) -> None:
    async def tick() -> None:
        while True:
            auditor._deliver(Event(Kind.NAMESPACE, Change.MODIFIED, 1))
            await asyncio.sleep(0.02)

    ticking = asyncio.create_task(tick())
    (found,) = [one for one in await auditor.settled(0.3) if one.rule is not Rule.GAP]
    ticking.cancel()

    assert found.rule is Rule.REST
    assert "did not come to rest within 0.3 s: events went on and on" in found.message


async def test_a_watch_that_is_down_is_named_when_rest_cannot_be_told(auditor: Auditor) -> None:
    auditor._streams[0].trouble = "503: not now"

    (found,) = await auditor.settled(0.2)

    assert "the watch of VirtualMachinePool is down: 503: not now" in found.message


async def test_rest_is_not_told_while_an_event_still_waits_for_its_turn(auditor: Auditor) -> None:
    auditor._deliver(Event(Kind.VM, Change.MODIFIED, 101, ()))  # and no list shows that much yet

    (found,) = await auditor.settled(0.2)

    assert found.rule is Rule.REST


async def test_a_gap_is_a_violation_and_can_be_told_apart(auditor: Auditor) -> None:
    auditor._deliver(Event(Kind.VM, Change.DARK, 100, until=100, why="410: too old"))

    found = await auditor.settled(5)

    assert [one.rule for one in found] == [Rule.GAP]
    assert auditor.gaps == found


async def test_an_auditor_that_broke_does_not_look_like_one_that_found_nothing(
    auditor: Auditor, story: Story
) -> None:
    story.rv = 101
    auditor._deliver(Event(Kind.VM, Change.MODIFIED, 101, ({"no": "metadata"},)))

    with pytest.raises(KeyError):
        await auditor.settled(5)
