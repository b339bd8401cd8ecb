"""What may be written in spec.warm, and the sentence for what may not."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
import yaml
from cronsim import CronSim, CronSimError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crds import calendar
from crds.calendar import CRON_PATTERN, HOW_TO_WRITE_A_RANGE, HOW_TO_WRITE_A_ZONE, HOW_TO_WRITE_CRON
from crds.pool import parse_pool
from crds.ratios import HOW_TO_WRITE_A_LEVEL, HOW_TO_WRITE_WIDE, at_least, fraction
from crds.warm import LevelMode, Schedule, ServiceLevel, WarmCapacity
from e2e.install import ROOT
from tests.support.manifests import pool_manifest
from tests.unit.crds import strategies

SLOT = {"name": "a", "start": "0 8 * * *", "timeZone": "UTC", "duration": "1h", "replicas": 2}
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").decode()


def read(**warm: Any) -> WarmCapacity:
    return parse_pool(pool_manifest(warm=warm)).spec.warm


def refusal(**warm: Any) -> str:
    with pytest.raises(ValueError, match=r"^spec\.warm") as refused:
        read(**warm)
    return str(refused.value)


def slot(**changed: Any) -> dict[str, Any]:
    return {"schedules": [{**SLOT, **changed}]}


def test_a_level_alone_recommends_for_claims_that_do_not_wait_over_four_weeks() -> None:
    assert read(serviceLevel={"target": "99%"}).service_level == ServiceLevel(
        target="99%", max_wait="0s", window="672h", mode=LevelMode.RECOMMEND
    )


def test_the_example_and_every_fragment_of_the_page_can_be_written() -> None:
    example = yaml.safe_load((ROOT / "examples" / "warm-capacity.yaml").read_text())
    assert read(**example["spec"]["warm"]).sizes_itself
    page = (ROOT / "docs" / "warm-capacity.md").read_text()
    fragments = re.findall(r"^```yaml\n(    \w.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(fragments) == 4
    for fragment in fragments:
        written = yaml.safe_load(fragment.replace("LS0tLS1CRUdJTi...", PEM))
        assert read(**written) != WarmCapacity()


def test_a_pool_sizes_itself_when_anything_but_its_floor_and_bounds_is_written() -> None:
    assert not read(replicas=3, max=9, budget={"maxIdleHoursPerDay": 9}).sizes_itself
    assert read(percent="0%").sizes_itself
    assert read(serviceLevel={"target": "90%"}).sizes_itself
    assert read(webhook={"url": "https://a.example.com"}).sizes_itself
    assert read(**slot()).sizes_itself


@pytest.mark.parametrize("level", ["50%", "95%", "99.9%", "99.99%", "87.5%", "99.00%"])
def test_a_level_is_a_share_under_the_whole(level: str) -> None:
    assert read(serviceLevel={"target": level}).service_level is not None
    assert 0.5 <= fraction(level) < 1


@pytest.mark.parametrize(
    "level", ["100%", "49%", "0.99", "99", "99.999%", "99,9%", "9%", "", "%", "101%", "99.%"]
)
def test_a_level_that_no_buffer_can_promise_is_refused(level: str) -> None:
    assert refusal(serviceLevel={"target": level}).endswith(HOW_TO_WRITE_A_LEVEL)


@pytest.mark.parametrize("share", ["0%", "9%", "20%", "100%", "101%", "499%", "500%"])
def test_a_percentage_may_be_more_than_the_whole(share: str) -> None:
    assert read(percent=share).percent == share


@pytest.mark.parametrize("share", ["501%", "-1%", "20", "2.5%", "05%", "1000%", "%", "600%"])
def test_a_percentage_of_another_form_is_refused(share: str) -> None:
    assert refusal(percent=share).endswith(HOW_TO_WRITE_WIDE)


@pytest.mark.parametrize(
    ("share", "whole", "units"), [("20%", 10, 2), ("20%", 11, 3), ("500%", 3, 15), ("0%", 9, 0), ("1%", 1, 1)]
)
def test_a_share_is_rounded_up(share: str, whole: int, units: int) -> None:
    assert at_least(share, whole) == units


@pytest.mark.parametrize(
    "start",
    [
        "0 8 * * *", "30 7 * * mon-fri", "*/15 0-6,22,23 1,15 JAN-Mar 1-5", "59 23 31 12 7", "0 0 * * Sun",
        "05 08 01 01 0", "5/10 * * * *", "0 0 29 2 *",
    ],
)  # fmt: skip
def test_cron_as_everybody_writes_it_is_let_in(start: str) -> None:
    assert read(**slot(start=start)).schedules[0].start == start


@pytest.mark.parametrize(
    "start",
    [
        "", "8", "0 8 * *", "0 0 8 * * *", "60 8 * * *", "0 24 * * *", "0 8 0 * *", "0 8 32 * *",
        "0 8 * 13 *", "0 8 * * 8", "@daily", "0 8 * * monday", "0 8 L * *", "0 8 * * 1#2", "0  8 * * *",
        " 0 8 * * *", "0 8 * * ?", "*/0 * * * *", "0 8 * mon *", "H 8 * * *", "0 8 * * *\n",
    ],
)  # fmt: skip
def test_what_is_no_cron_of_five_fields_gets_the_sentence_that_says_how(start: str) -> None:
    assert refusal(**slot(start=start)).endswith(HOW_TO_WRITE_CRON)


@pytest.mark.parametrize(
    "start", ["0 22-6 * * *", "0 8 * * fri-mon", "0 8 * nov-feb *", "0 8 28-3 * *", "0 8 * * fri-1"]
)
def test_a_range_over_the_turn_is_refused_with_what_to_write_in_its_place(start: str) -> None:
    assert HOW_TO_WRITE_A_RANGE in refusal(**slot(start=start))


def test_a_day_that_no_month_has_is_let_in_as_the_api_server_lets_it_in() -> None:
    assert read(**slot(start="0 8 31 4 *")).schedules[0].start == "0 8 31 4 *"
    assert read(**slot(start="0 8 30-31 2 *")).schedules[0].start == "0 8 30-31 2 *"


@given(st.text("0123456789*/-, monfrijan", max_size=16) | strategies.crons)
def test_whatever_the_pattern_lets_in_cronsim_reads_or_refuses_in_words(start: str) -> None:
    if re.fullmatch(CRON_PATTERN, start):
        try:
            CronSim(start, calendar._ANY_DAY)
        except CronSimError as error:
            assert "Bad" in str(error)  # noqa: PT017 - either outcome is fine, and no other exception


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "GMT"]
)
def test_a_zone_is_an_iana_name(zone: str) -> None:
    assert read(**slot(timeZone=zone)).schedules[0].time_zone == zone


@pytest.mark.parametrize(
    "zone",
    [
        "Local",
        "europe/berlin",
        "Europe/Berln",
        "+01:00",
        "",
        "Europe",
        "../etc/passwd",
        "CEST",
        "/etc",
        "A/B/C/D",
    ],
)
def test_a_zone_that_nobody_knows_is_refused(zone: str) -> None:
    assert refusal(**slot(timeZone=zone)).endswith(HOW_TO_WRITE_A_ZONE)
    assert refusal(budget={"maxIdleHoursPerDay": 1, "timeZone": zone}).endswith(HOW_TO_WRITE_A_ZONE)


@pytest.mark.parametrize("missing", SLOT)
def test_every_field_of_a_slot_is_needed(missing: str) -> None:
    written = {name: value for name, value in SLOT.items() if name != missing}
    assert refusal(schedules=[written]) == f"spec.warm.schedules.0.{missing}: Field required"


@pytest.mark.parametrize("name", ["Morning", "a b", "-a", "a-", "", "a/b", "ä"])
def test_a_slots_name_is_one_that_the_status_can_show(name: str) -> None:
    assert refusal(**slot(name=name)).endswith('like "office-hours"')


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example.com", "a.example.com", "https://", "https://u:p@a.example.com", "https://a.example.com/?q=1",
        "https://a.example.com/#x", "ftp://a", "https:// a", "https://a.example.com/b c", "",
    ],
)  # fmt: skip
def test_a_webhook_is_called_by_https_without_secrets_in_its_address(url: str) -> None:
    assert "write an https:// address without user, query or fragment" in refusal(webhook={"url": url})


@pytest.mark.parametrize(
    "url", ["https://a", "https://a.b.svc:8443", "https://a.example.com/v1/warm/", "https://[::1]:1/x"]
)
def test_an_address_may_have_a_port_and_a_path(url: str) -> None:
    webhook = read(webhook={"url": url, "caBundle": PEM}).webhook
    assert webhook is not None
    assert (webhook.url, webhook.timeout, webhook.ca_bundle) == (url, "5s", PEM)


@pytest.mark.parametrize(
    "bundle", ["not base64!", base64.b64encode(b"hello").decode(), "-----BEGIN CERTIFICATE-----"]
)
def test_a_bundle_is_pem_in_base64(bundle: str) -> None:
    sentence = refusal(webhook={"url": "https://a", "caBundle": bundle})
    assert sentence.endswith("write the PEM certificates of the CA, encoded in base64")


@pytest.mark.parametrize(
    ("warm", "sentence"),
    [
        ({"serviceLevel": {"target": "99%", "window": "673h"}}, "must not be longer than 672h"),
        ({"serviceLevel": {"target": "99%", "window": "0s"}}, "must be longer than 0s"),
        ({"serviceLevel": {}}, "target: Field required"),
        ({"scaleDown": {"stabilization": "25h"}}, "must not be longer than 24h"),
        ({"webhook": {"url": "https://a", "timeout": "31s"}}, "must not be longer than 30s"),
        ({"webhook": {"url": "https://a", "timeout": "0s"}}, "must be longer than 0s"),
        ({"budget": {}}, "maxIdleHoursPerDay: Field required"),
        ({"budget": {"maxIdleHoursPerDay": -1}}, "greater than or equal to 0"),
        (slot(replicas=0), "greater than or equal to 1"),
        (slot(duration="0s"), "must be longer than 0s"),
        ({"schedules": [SLOT] * 17}, "at most 16"),
    ],
)
def test_a_bound_is_told(warm: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(**warm)


def test_fields_of_a_slot_have_no_defaults_which_gitops_tools_would_see_as_differences() -> None:
    assert all(field.is_required() for field in Schedule.model_fields.values())


def test_a_slot_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Schedule.model_validate(SLOT).replicas = 3  # type: ignore[misc]  # the case
