"""What the API server itself refuses in spec.warm, with one sentence that says what to write instead."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from crds.calendar import HOW_TO_WRITE_A_RANGE, HOW_TO_WRITE_A_ZONE, HOW_TO_WRITE_CRON
from crds.ratios import HOW_TO_WRITE_A_LEVEL, HOW_TO_WRITE_WIDE
from e2e.rest import Rest
from tests.integration.test_crds_refusals import DURATION, Case, causes, dry_run
from tests.support.manifests import pool_manifest

pytestmark = pytest.mark.cluster

SLOT = {"name": "a", "start": "0 8 * * mon-fri", "timeZone": "UTC", "duration": "10h", "replicas": 2}
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").decode()
URL = "write an https:// address without user, query or fragment"


def slot(**changed: Any) -> dict[str, Any]:
    return {"schedules": [{**SLOT, **changed}]}


def level(**fields: Any) -> dict[str, Any]:
    return {"serviceLevel": {"target": "99%", **fields}}


def hook(**fields: Any) -> dict[str, Any]:
    return {"webhook": {"url": "https://a.example.com", **fields}}


def slot_field(name: str) -> str:
    return f"schedules[0].{name}"


CASES = {
    "a percentage over five wholes": Case({"percent": "501%"}, "percent", HOW_TO_WRITE_WIDE),
    "a percentage that is a number": Case({"percent": 20}, "percent", "must be of type string"),
    "a level of all": Case(level(target="100%"), "serviceLevel.target", HOW_TO_WRITE_A_LEVEL),
    "a level of five nines": Case(level(target="99.999%"), "serviceLevel.target", HOW_TO_WRITE_A_LEVEL),
    "no level": Case({"serviceLevel": {}}, "serviceLevel.target", "Required value"),
    "a window over the history": Case(
        level(window="673h"), "serviceLevel.window", "window must not be longer than 672h"
    ),
    "a window in days": Case(level(window="28d"), "serviceLevel.window", f'"28d": {DURATION}'),
    "a wait in words": Case(level(maxWait="soon"), "serviceLevel.maxWait", DURATION),
    "a mode that is none": Case(
        level(mode="Auto"), "serviceLevel.mode", 'Unsupported value: "Auto": supported values: "Recommend"'
    ),
    "a slot without a zone": Case(
        {"schedules": [{k: v for k, v in SLOT.items() if k != "timeZone"}]},
        slot_field("timeZone"),
        "Required value",
    ),
    "cron with seconds": Case(slot(start="0 0 8 * * *"), slot_field("start"), HOW_TO_WRITE_CRON),
    "cron by nickname": Case(slot(start="@daily"), slot_field("start"), HOW_TO_WRITE_CRON),
    "a night as a range": Case(slot(start="0 22-6 * * *"), slot_field("start"), HOW_TO_WRITE_A_RANGE),
    "a weekend as a range": Case(slot(start="0 8 * * Fri-mon"), slot_field("start"), HOW_TO_WRITE_A_RANGE),
    "a winter as a range": Case(slot(start="0 8 * nov-feb *"), slot_field("start"), HOW_TO_WRITE_A_RANGE),
    "the zone of the server": Case(slot(timeZone="Local"), slot_field("timeZone"), HOW_TO_WRITE_A_ZONE),
    "a zone as an offset": Case(slot(timeZone="+01:00"), slot_field("timeZone"), HOW_TO_WRITE_A_ZONE),
    "a zone with a typing error": Case(
        slot(timeZone="Europe/Berln"), slot_field("timeZone"), "unknown time zone Europe/Berln"
    ),
    "a zone in small letters": Case(
        slot(timeZone="europe/berlin"), slot_field("timeZone"), HOW_TO_WRITE_A_ZONE
    ),
    "a slot of no time": Case(slot(duration="0s"), slot_field("duration"), "must be longer than 0s"),
    "a slot of nothing": Case(slot(replicas=0), slot_field("replicas"), "greater than or equal to 1"),
    "a slot in capitals": Case(slot(name="Morning"), slot_field("name"), "write a name in small letters"),
    "one name twice": Case({"schedules": [SLOT, SLOT]}, "schedules[1]", "Duplicate value"),
    "too many slots": Case(
        {"schedules": [{**SLOT, "name": f"s{n}"} for n in range(17)]},
        "schedules",
        "must have at most 16 items",
    ),
    "a webhook in the clear": Case(hook(url="http://a.example.com"), "webhook.url", URL),
    "a webhook with a password": Case(hook(url="https://u:p@a.example.com"), "webhook.url", URL),
    "a webhook with a query": Case(hook(url="https://a.example.com/?q=1"), "webhook.url", URL),
    "a bundle that is no base64": Case(hook(caBundle="no!"), "webhook.caBundle", "byte"),
    "a webhook that may take a minute": Case(
        hook(timeout="1m"), "webhook.timeout", "timeout must not be longer than 30s"
    ),
    "a stabilization of days": Case(
        {"scaleDown": {"stabilization": "48h"}},
        "scaleDown.stabilization",
        "stabilization must not be longer than 24h",
    ),
    "a budget of nothing in particular": Case({"budget": {}}, "budget.maxIdleHoursPerDay", "Required value"),
    "a budget below nothing": Case(
        {"budget": {"maxIdleHoursPerDay": -1}}, "budget.maxIdleHoursPerDay", "greater than or equal to 0"
    ),
    "a budget in a zone that is none": Case(
        {"budget": {"maxIdleHoursPerDay": 9, "timeZone": "Mars/Olympus"}},
        "budget.timeZone",
        "unknown time zone Mars/Olympus",
    ),
}

FULL = {
    "replicas": 2,
    "percent": "20%",
    "max": 60,
    "serviceLevel": {"target": "99.9%", "maxWait": "2s", "window": "168h", "mode": "Apply"},
    "schedules": [
        {**SLOT, "name": "office", "start": "30 7 * * mon-fri", "timeZone": "Europe/Berlin"},
        {**SLOT, "name": "night", "start": "0 22 * * *", "timeZone": "Asia/Kathmandu"},
    ],
    "webhook": {"url": "https://forecast.example.com/v1/warm", "caBundle": PEM, "timeout": "2s"},
    "scaleDown": {"stabilization": "10m"},
    "budget": {"maxIdleHoursPerDay": 240, "timeZone": "Europe/Berlin"},
}  # fmt: skip


@pytest.fixture(scope="module")
def room(admin: Rest) -> Iterator[str]:
    """One namespace for all cases: nothing is ever made in it."""
    name = "crd-warm"
    admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_cannot_be_is_refused_with_one_sentence(admin: Rest, room: str, case: Case) -> None:
    answer = dry_run(admin, room, pool_manifest("a", warm=case.spec))
    assert answer.status == 422, answer.message
    [(field, sentence)] = causes(answer)
    assert field == f"spec.warm.{case.field}"
    assert case.sentence in sentence


def test_every_field_at_once_is_let_in_as_it_was_written(admin: Rest, room: str) -> None:
    answer = dry_run(admin, room, pool_manifest("a", warm=FULL))
    assert answer.status == 201, answer.message
    assert answer.body["spec"]["warm"] == FULL


@pytest.mark.parametrize(
    "start", ["*/15 0-6,22,23 1,15 JAN-Mar 1-5", "59 23 31 12 7", "5/10 * * * *", "0 0 * * Sun,wed-sat"]
)
def test_cron_as_everybody_writes_it_is_let_in(admin: Rest, room: str, start: str) -> None:
    assert dry_run(admin, room, pool_manifest("a", warm=slot(start=start))).status == 201


@pytest.mark.parametrize("zone", ["UTC", "GMT", "Etc/GMT+5", "America/Argentina/Buenos_Aires"])
def test_every_iana_zone_is_let_in(admin: Rest, room: str, zone: str) -> None:
    assert dry_run(admin, room, pool_manifest("a", warm=slot(timeZone=zone))).status == 201


def test_sixteen_slots_are_within_what_the_rules_may_cost(admin: Rest, room: str) -> None:
    slots = [
        {**SLOT, "name": f"s{number}", "start": "*/5 0-6,22,23 1,15 jan-mar mon-fri"} for number in range(16)
    ]
    assert dry_run(admin, room, pool_manifest("a", warm={"schedules": slots})).status == 201


def test_a_level_a_slot_and_a_budget_get_no_more_than_their_defaults(admin: Rest, room: str) -> None:
    written = {"serviceLevel": {"target": "99%"}, "budget": {"maxIdleHoursPerDay": 9}, **slot(), **hook()}
    stored = dry_run(admin, room, pool_manifest("a", warm=written)).body["spec"]["warm"]
    assert stored == {
        "replicas": 1,
        "serviceLevel": {"target": "99%", "maxWait": "0s", "window": "672h", "mode": "Recommend"},
        "budget": {"maxIdleHoursPerDay": 9, "timeZone": "UTC"},
        "schedules": [SLOT],
        "webhook": {"url": "https://a.example.com", "timeout": "5s"},
        "scaleDown": {"stabilization": "5m"},
    }
