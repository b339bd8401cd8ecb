"""The audit log's account of who wrote after his time: found when it is there, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.audit_log import Entry, after_their_time, holders, read

LEASE = "leader"


def entry(
    agent: str, at: float, verb: str = "patch", resource: str = "virtualmachines", **more: object
) -> Entry:
    given = {"name": "vm", "status": 200, "received": at - 0.01, "answered": at, **more}
    return Entry(agent=agent, verb=verb, resource=resource, **given)  # type: ignore[arg-type]  # as the test says


def holds(agent: str, at: float, name: str = LEASE, status: int = 200) -> Entry:
    return entry(agent, at, "update", "leases", name=name, status=status)


def test_what_is_written_before_another_one_leads_is_in_time() -> None:
    story = [holds("a", 1), entry("a", 2), entry("a", 3), holds("b", 4), entry("b", 5)]
    assert after_their_time(story, LEASE) == []


def test_what_lands_from_a_former_leader_is_found_in_whatever_order_it_is_told() -> None:
    late = entry("a", 5)
    story = [late, holds("a", 1), holds("b", 4), entry("b", 6), holds("a", 2)]
    assert after_their_time(story, LEASE) == [late]


def test_reads_refusals_and_trials_change_nothing() -> None:
    story = [
        *(holds("a", 1), holds("b", 4), entry("a", 5, "list"), entry("a", 6, status=422)),
        *(entry("a", 7, "create", dry_run=True), holds("a", 8, status=409)),
    ]
    assert after_their_time(story, LEASE) == []


def test_a_lease_of_another_name_ends_nobodys_time() -> None:
    assert after_their_time([holds("a", 1), holds("b", 2, name="other"), entry("a", 3)], LEASE) == []


def test_renewals_are_no_new_leaders() -> None:
    story = [holds("a", 1), holds("a", 2), holds("b", 4), holds("b", 5), holds("a", 6)]
    assert holders(story, LEASE) == ["a", "b", "a"]


def test_who_leads_again_may_write_again() -> None:
    story = [holds("a", 1), holds("b", 2), holds("a", 3), entry("a", 4), entry("b", 5)]
    assert after_their_time(story, LEASE) == [entry("b", 5)]


def test_a_log_is_read_without_the_line_that_is_being_written(tmp_path: Path) -> None:
    event = {
        "stage": "ResponseComplete",
        "verb": "create",
        "userAgent": "bullpen/one",
        "requestURI": "/apis/kubevirt.io/v1/namespaces/n/virtualmachines?dryRun=All",
        "objectRef": {"resource": "virtualmachines", "subresource": "status", "name": "vm"},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": "2026-01-01T12:00:00.250000Z",
        "stageTimestamp": "2026-01-01T12:00:01.500000Z",
    }
    early = {**event, "stage": "ResponseStarted"}
    path = tmp_path / "audit.jsonl"
    path.write_text(f'{json.dumps(early)}\n{json.dumps(event)}\n{{"stage": "Respo')
    [found] = read(path)
    assert (found.agent, found.resource, found.status) == ("bullpen/one", "virtualmachines/status", 201)
    assert found.answered - found.received == 1.25
    assert found.dry_run
    assert not found.writes
