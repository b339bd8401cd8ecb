"""When a pool says that what its template refers to changed, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controller.pools.changes import Data, Found, Read, Unread, changed, seen
from controller.pools.references import Reference
from controller.pools.status import status
from crds.conditions import PoolReason, Truth
from crds.pool_status import ReferencedObject
from tests.support.builders import NOW, at, make_snapshot

INIT = Reference("Secret", "init")
PULL = Reference("Secret", "pull", held=False)
MAYBE = Reference("ConfigMap", "maybe", optional=True)
ONE, TWO, REMADE = Found("a", "1"), Found("a", "2"), Found("b", "9")
OLD, YOUNG = NOW - 100, NOW + 100


def looked(*reads: Read, reference: Reference = INIT) -> Data:
    """What is known after these looks, one after the other; the n-th one began n seconds after NOW."""
    data = Data()
    for second, read in enumerate(reads):
        data = seen(data.objects, {reference: read}, NOW + second)
    return data


def since(data: Data) -> float | None:
    """Seconds from NOW to the change that is told."""
    [entry] = data.objects
    return entry.changed_at.timestamp() - NOW if entry.changed_at else None


@pytest.mark.parametrize(
    ("reads", "when"),
    [
        ([ONE], None),
        ([ONE, ONE], None),
        ([ONE, TWO], 1),
        ([ONE, TWO, TWO], 1),
        ([ONE, TWO, ONE], 2),
        ([ONE, REMADE], 1),
        ([ONE, None, ONE], None),
        ([ONE, None, REMADE], 2),
        ([ONE, Unread("forbidden"), TWO], 2),
        ([ONE, Unread("forbidden"), ONE], None),
        ([None, ONE], None),
        ([Unread("forbidden"), ONE], None),
    ],
    ids=[
        "seen for the first time",
        "the same again",
        "another version",
        "another version, and then the same again",
        "changed back is a change as well",
        "another object of its name",
        "away for a moment",
        "away, and made anew",
        "changed while it could not be read",
        "the same after it could not be read",
        "made after the pool",
        "allowed after the pool was made",
    ],
)
def test_a_change_is_told_from_when_it_was_looked_for(reads: list[Read], when: float | None) -> None:
    assert since(looked(*reads)) == when


def test_what_no_vm_holds_is_not_remembered_and_never_changes() -> None:
    assert looked(ONE, TWO, reference=PULL) == Data(watched=True)


def test_what_the_template_names_no_more_is_forgotten() -> None:
    assert seen(looked(ONE, TWO).objects, {MAYBE: ONE}, NOW).objects[0].name == "maybe"


def test_what_a_status_says_reads_back_after_a_restart() -> None:
    before = looked(ONE, TWO)
    stored = [ReferencedObject.model_validate(each.as_json()) for each in before.objects]
    assert seen(stored, {INIT: TWO}, NOW + 60) == before


@pytest.mark.parametrize(
    ("data", "created", "truth", "reason"),
    [
        (looked(ONE), [OLD], Truth.FALSE, PoolReason.DATA_UNCHANGED),
        (looked(ONE, TWO), [OLD, YOUNG], Truth.TRUE, PoolReason.DATA_CHANGED),
        (looked(ONE, TWO), [YOUNG], Truth.FALSE, PoolReason.DATA_UNCHANGED),
        (looked(ONE, TWO), [NOW + 1], Truth.FALSE, PoolReason.DATA_UNCHANGED),
        (looked(ONE, TWO), [], Truth.FALSE, PoolReason.DATA_UNCHANGED),
        (looked(None), [], Truth.TRUE, PoolReason.DATA_MISSING),
        (looked(None, reference=PULL), [], Truth.TRUE, PoolReason.DATA_MISSING),
        (looked(None, reference=MAYBE), [], Truth.FALSE, PoolReason.DATA_UNCHANGED),
        (looked(ONE, TWO, None), [OLD], Truth.TRUE, PoolReason.DATA_MISSING),
        (looked(Unread("no right")), [OLD], Truth.UNKNOWN, PoolReason.DATA_UNREADABLE),
        (looked(ONE, TWO, Unread("no right")), [OLD], Truth.TRUE, PoolReason.DATA_CHANGED),
    ],
    ids=[
        "nothing changed",
        "a VM is older than the change",
        "all VMs are younger",
        "made in the second in which it was looked for",
        "there are no VMs",
        "it is not there",
        "a pull secret is not there",
        "an optional one is not there",
        "it changed and then went",
        "it may not be read",
        "what is known to have changed stays so when it can't be read any more",
    ],
)
def test_what_the_condition_says(data: Data, created: list[float], truth: Truth, reason: PoolReason) -> None:
    verdict = changed(data, created)
    assert verdict is not None
    assert verdict[:2] == (truth, reason)


@pytest.mark.parametrize("data", [None, Data()], ids=["not looked yet", "the template refers to nothing"])
def test_where_nothing_is_known_or_named_there_is_no_verdict(data: Data | None) -> None:
    assert changed(data, [OLD]) is None


def test_the_sentence_names_what_changed_since_when_how_many_vms_and_what_to_do() -> None:
    verdict = changed(looked(ONE, TWO), [OLD, OLD, YOUNG])
    assert verdict is not None
    assert verdict[2] == (
        f"Secret init changed (seen at {at(1)}), 2 unclaimed VMs were made before: they may hold what it "
        "said then. To have them replaced set updateStrategy.type to RollingUpdate and change the template, "
        "for instance an annotation in spec.template.metadata"
    )


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        (("Secret a",), "Secret a does not exist: no VM can start until it is there"),
        (
            ("Secret a", "Secret b"),
            "Secret a and Secret b do not exist: no VM can start until they are there",
        ),
    ],
)
def test_the_sentence_names_what_is_missing(missing: tuple[str, ...], sentence: str) -> None:
    verdict = changed(Data(missing=missing, watched=True), [])
    assert verdict is not None
    assert verdict[2] == sentence


# ---- in the pool's status


def types(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["type"] for each in found["conditions"]]


def test_the_status_lists_what_was_seen_and_never_what_is_in_it() -> None:
    found = status(make_snapshot(data=looked(ONE, TWO), unclaimed_since=[OLD]), {})
    assert found["referencedData"] == [
        {"kind": "Secret", "name": "init", "uid": "a", "resourceVersion": "2", "changedAt": at(1)}
    ]
    [condition] = [each for each in found["conditions"] if each["type"] == "ReferencedDataChanged"]
    assert (condition["status"], condition["reason"]) == ("True", "DataChanged")


def test_a_new_leader_says_what_the_last_one_said_until_it_has_looked() -> None:
    before = status(make_snapshot(data=looked(ONE, TWO), unclaimed_since=[OLD]), {})
    assert status(make_snapshot(unclaimed_since=[OLD]), before) == before


def test_a_pool_that_refers_to_nothing_says_nothing_of_it() -> None:
    before = status(make_snapshot(data=looked(ONE)), {})
    found = status(make_snapshot(data=Data()), before)
    assert "ReferencedDataChanged" not in types(found)
    assert "referencedData" not in found


def test_times_are_whole_seconds_of_the_servers_clock() -> None:
    data = seen(looked(ONE).objects, {INIT: TWO}, NOW + 0.9)
    assert data.objects[0].changed_at == datetime.fromtimestamp(NOW, UTC)
