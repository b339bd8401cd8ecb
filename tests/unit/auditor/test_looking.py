"""Two looks and what lies between them; a server that can't keep a list; the namespaces that end."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from auditor import looking
from auditor.connection import METADATA_ONLY, Connection, Refused
from auditor.events import Kind
from auditor.looking import NoSuchNamespaceError, audited, once
from tests.unit.auditor.story import Raw, Story

DATE = "Thu, 01 Jan 2026 13:00:00 GMT"
OF = {"pools": Kind.POOL, "claims": Kind.CLAIM, "machines": Kind.VM}


class Server:
    """Lists what a story left. `then` goes on with it when somebody waits; `refusals` come first."""

    def __init__(self, story: Story, then: Callable[[Story], None] = lambda _story: None) -> None:
        self.story, self.then, self.date = story, then, DATE
        self.asked: list[tuple[str, str]] = []
        self.refusals: dict[str, list[Refused]] = {}
        self.ending: set[str] = set()
        self.waits: list[float] = []

    async def get(self, path: str, _params: dict[str, str], _accept: str = "") -> Raw:
        self._refuse(path)
        return self._namespace(path.rpartition("/")[2])

    async def collection(self, path: str, params: dict[str, str], accept: str = "") -> tuple[list[Raw], int]:
        assert params == {}
        self.asked.append((path.rpartition("/")[2], accept))
        self._refuse(path)
        if path.endswith("namespaces"):
            return [self._namespace(name) for name in ("ns", "other")], self.story.rv
        kind = next(kind for word, kind in OF.items() if path.endswith(word))
        here = [raw for (of, _), raw in self.story.objects.items() if of is kind]
        return copy.deepcopy(here), self.story.rv

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.then(self.story)

    def _namespace(self, name: str) -> Raw:
        gone = {"deletionTimestamp": "2026-01-01T12:59:00Z"} if name in self.ending else {}
        return {"metadata": {"name": name, **gone}}

    def _refuse(self, path: str) -> None:
        for word, left in self.refusals.items():
            if left and path.endswith(word):
                raise left.pop(0)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    """A server, whose clock alone the audit waits by."""

    def made(*arguments: Any) -> Server:
        server = Server(*arguments)
        monkeypatch.setattr(looking, "asyncio", SimpleNamespace(sleep=server.sleep))
        return server

    return made


def connection(server: Server) -> Connection:
    return cast("Connection", server)


def held() -> Story:
    """In the middle of a hand-over."""
    story = Story()
    story.create(Kind.POOL, "pool", metadata={"generation": 1}, status={"observedGeneration": 1})
    story.vm()
    story.claim()
    story.hand_over()
    return story


async def test_a_clean_cluster_is_looked_at_once(cluster: Callable[..., Server]) -> None:
    story = held()
    story.publish()
    server = cluster(story)
    audit = await audited(connection(server), None, 10.0)
    assert audit.findings == []
    assert audit.seen == {"pools": 1, "claims": 1, "VMs": 1}
    assert server.waits == []


async def test_a_hand_over_that_gets_through_meanwhile_is_no_finding(cluster: Callable[..., Server]) -> None:
    server = cluster(held(), lambda story: story.publish())
    assert (await audited(connection(server), None, 10.0)).findings == []
    assert server.waits == [10.0]


async def test_what_stays_is_found(cluster: Callable[..., Server]) -> None:
    audit = await audited(connection(cluster(held())), None, 10.0)
    assert [each.what for each in audit.findings] == ["held-by-nobody"]


async def test_what_is_wrong_in_another_way_than_before_is_still_moving(
    cluster: Callable[..., Server],
) -> None:
    def on_its_way(story: Story) -> None:
        story.status(phase="Failed")

    assert (await audited(connection(cluster(held(), on_its_way)), None, 10.0)).findings == []


async def test_without_settling_one_look_has_to_do(cluster: Callable[..., Server]) -> None:
    server = cluster(held())
    assert len((await audited(connection(server), None, 0.0)).findings) == 1
    assert server.waits == []


async def test_vms_are_asked_for_without_their_specs(cluster: Callable[..., Server]) -> None:
    server = cluster(held())
    await once(connection(server), None)
    assert dict(server.asked)["virtualmachines"] == METADATA_ONLY


async def test_the_time_is_the_servers(cluster: Callable[..., Server]) -> None:
    seen = await once(connection(cluster(held())), "ns")
    assert seen.now.isoformat() == "2026-01-01T13:00:00+00:00"


async def test_a_list_that_took_too_long_is_begun_anew_and_not_for_ever(
    cluster: Callable[..., Server],
) -> None:
    server = cluster(held())
    server.refusals["virtualmachines"] = [Refused(410, "too old"), Refused(410, "too old")]
    assert len((await once(connection(server), None)).vms) == 1
    server.refusals["virtualmachines"] = [Refused(410, "too old")] * 3
    with pytest.raises(Refused, match="too old"):
        await once(connection(server), None)


@pytest.mark.parametrize("namespace", [None, "ns"])
async def test_what_is_in_an_ending_namespace_is_not_judged(
    cluster: Callable[..., Server], namespace: str | None
) -> None:
    server = cluster(held())
    server.ending = {"ns"}
    assert (await audited(connection(server), namespace, 10.0)).findings == []


@pytest.mark.parametrize(("namespace", "path"), [(None, "namespaces"), ("ns", "namespaces/ns")])
async def test_who_may_not_see_namespaces_may_audit(
    cluster: Callable[..., Server], namespace: str | None, path: str
) -> None:
    server = cluster(held())
    server.refusals[path] = [Refused(403, "forbidden")]
    assert len((await once(connection(server), namespace)).vms) == 1


async def test_a_namespace_that_is_not_there_has_nothing_that_could_be_clean(
    cluster: Callable[..., Server],
) -> None:
    server = cluster(held())
    server.refusals["namespaces/typo"] = [Refused(404, "not found")]
    with pytest.raises(NoSuchNamespaceError, match="there is no namespace typo"):
        await once(connection(server), "typo")


async def test_a_refusal_of_anything_else_is_the_callers(cluster: Callable[..., Server]) -> None:
    for word, status in (("namespaces", 500), ("virtualmachinepools", 403), ("virtualmachines", 404)):
        server = cluster(held())
        server.refusals[word] = [Refused(status, "no")]
        with pytest.raises(Refused):
            await once(connection(server), None)
