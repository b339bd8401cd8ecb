"""Pools that size themselves: what is remembered, over restarts; webhooks; schedules; a service level."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from crds import names
from e2e.controlplane.plane import ControlPlane
from tests.integration.own_cluster.conftest import Start
from tests.support import histories
from tests.support.forecast import Forecast, serving
from tests.support.site import POOLS, Json, Site, holds, until, until_equal, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), pytest.mark.usefixtures("auditor")]

OFTEN = {"sizing_interval": "1s"}
SHORT = {"lease_duration": "6s"}


def arrivals(site: Site) -> int:
    found = histories.history(site)
    return len(found.arrivals) if found else 0


def served(site: Site, *claims: str) -> None:
    for name in claims:
        site.claim(name)
        site.bound(name)


# ---- what is remembered


def test_what_is_asked_of_a_pool_is_kept_beside_it_and_gone_on_with_after_a_restart(
    site: Site, start: Start
) -> None:
    first = start(**OFTEN)
    pool = site.pool(warm=2)
    site.until_warm(2)
    served(site, "one", "two", "three")
    until_equal(lambda: arrivals(site), 3)
    kept = histories.kept(site)
    assert [each["uid"] for each in kept["metadata"]["ownerReferences"]] == [pool["metadata"]["uid"]]
    site.claim("four")
    site.bound("four")
    assert first.stop() == 0
    assert arrivals(site) == 4, "a clean stop keeps what came since"
    start(**OFTEN)
    served(site, "five")
    until_equal(lambda: arrivals(site), 5)
    ratio = until("the ratio told", lambda: site.get(POOLS, "pool")["status"]["demand"].get("hitRatio"))
    assert ratio.endswith("%")


def test_claims_that_came_while_nobody_led_are_counted_once(site: Site, start: Start) -> None:
    first = start(**OFTEN, **SHORT)
    site.pool(warm=1)
    site.until_warm(1)
    served(site, "one")
    until_equal(lambda: arrivals(site), 1)
    first.kill()
    site.claim("two")
    site.claim("three")
    start(**OFTEN, **SHORT)
    site.bound("two")
    until_equal(lambda: arrivals(site), 3)
    holds("counted once", lambda: arrivals(site), lambda count: count == 3, 3)


def test_a_history_that_cannot_be_read_is_set_aside_and_told_and_claims_are_served(
    site: Site, start: Start
) -> None:
    histories.write(site, b"no history", time.time())
    start(**OFTEN)
    site.pool(warm={"replicas": 1, "serviceLevel": {"target": "99%"}})
    said = site.until_condition(POOLS, "pool", "PoliciesMet", "False", "HistoryLost")
    assert "set aside" in said["message"]
    site.until_warm(1)
    served(site, "one")
    kept = until(  # by the same write as the one that begins anew: before it there is nothing to read
        "set aside", lambda: histories.kept(site)["binaryData"], lambda data: names.HISTORY_BROKEN_KEY in data
    )
    assert base64.b64decode(kept[names.HISTORY_BROKEN_KEY]) == b"no history"
    until_equal(lambda: arrivals(site), 1)


def test_somebody_elses_config_map_of_that_name_is_left_alone(site: Site, start: Start) -> None:
    everything = histories.path(site).rpartition("/")[0]
    mine: Json = {"metadata": {"name": "bullpen-history-pool"}, "data": {"mine": "yes"}}
    assert site.api.post(everything, mine).ok
    running = start(**OFTEN)
    site.pool(warm=1)
    site.until_warm(1)
    served(site, "one")
    running.wait_until_says("history not kept")
    assert histories.kept(site)["data"] == {"mine": "yes"}


def test_the_history_goes_with_its_pool(site: Site, start: Start) -> None:
    start(**OFTEN)
    site.pool(warm=1)
    site.until_warm(1)
    until("kept", lambda: histories.kept(site))
    site.delete(POOLS, "pool")
    # The garbage collector overlooks new definitions for up to half a minute.
    until("gone", lambda: histories.kept(site), lambda found: not found, 90)


# ---- a webhook


@pytest.fixture
def forecast(plane: ControlPlane) -> Iterator[Forecast]:
    certificates = plane.directory / "certificates"
    with serving(certificates / "apiserver.crt", certificates / "apiserver.key") as found:
        yield found


def target(site: Site) -> int:
    return int(site.get(POOLS, "pool").get("status", {}).get("warm", {}).get("target", -1))


def test_a_webhook_says_how_many_and_while_it_fails_its_last_word_counts(
    site: Site, start: Start, forecast: Forecast
) -> None:
    start(**OFTEN)
    forecast.answer = {"replicas": 4}
    warm = {"replicas": 1, "webhook": forecast.spec, "scaleDown": {"stabilization": "1s"}}
    pool = site.pool(warm=warm)
    status = site.until_warm(4)["status"]
    assert status["warm"]["decidedBy"] == "webhook"
    assert forecast.asked[0]["pool"] == {
        "namespace": site.namespace,
        "name": "pool",
        "uid": pool["metadata"]["uid"],
    }
    site.until_condition(POOLS, "pool", "PoliciesMet", "True", "AsAsked")
    forecast.answer = None
    said = site.until_condition(POOLS, "pool", "PoliciesMet", "False", "WebhookFailing")
    assert "it answered 500, not 200" in said["message"]
    holds("four all the same", lambda: target(site), lambda now: now == 4, 3)
    forecast.answer = {"replicas": 2}
    site.until_warm(2)
    site.until_condition(POOLS, "pool", "PoliciesMet", "True", "AsAsked")


def test_a_webhook_whose_certificate_is_another_cas_is_not_believed(
    site: Site, start: Start, forecast: Forecast
) -> None:
    start(**OFTEN)
    forecast.answer = {"replicas": 4}
    site.pool(warm={"replicas": 1, "webhook": {"url": forecast.spec["url"]}})
    said = site.until_condition(POOLS, "pool", "PoliciesMet", "False", "WebhookFailing")
    assert "certificate" in said["message"].lower()
    assert target(site) == 1


def test_a_webhook_that_hangs_holds_up_no_claim(site: Site, start: Start, forecast: Forecast) -> None:
    start(**OFTEN)
    forecast.hangs = True
    site.pool(warm={"replicas": 2, "webhook": {**forecast.spec, "timeout": "20s"}})
    site.until_warm(2)
    began = time.monotonic()
    served(site, "one")
    assert time.monotonic() - began < 15
    said = site.until_condition(POOLS, "pool", "PoliciesMet", "False", "WebhookFailing", seconds=60)
    assert "no answer within 20s" in said["message"]


# ---- a schedule


@pytest.mark.timeout(600)
def test_a_schedule_opens_early_and_is_full_in_time_ten_at_a_time(site: Site, start: Start) -> None:
    """Twenty VMs of two seconds, ten at a time, are two boots: begun in the minute before the slot opens."""
    start(**OFTEN)
    template = vm_template(boot="2s")
    site.pool(warm=1, template=template, limits={"maxConcurrentCreations": 10})
    site.until_warm(1)
    opens = (int(time.time()) // 60 + 4) * 60  # in three to four minutes: boots nobody measured take one
    at = datetime.fromtimestamp(opens, UTC)
    slot = {"name": "office", "start": f"{at.minute} {at.hour} * * *", "timeZone": "UTC", "duration": "1h"}
    site.patch(POOLS, "pool", {"spec": {"warm": {"schedules": [{**slot, "replicas": 20}]}}})
    seen: list[tuple[float, int, int]] = []
    while not seen or (seen[-1][2] < 20 and seen[-1][0] < 30):
        warm = site.get(POOLS, "pool")["status"]["warm"]
        seen.append((round(time.time() - opens, 1), warm["target"], warm["ready"]))
        time.sleep(0.2)
    shown = [each for each, before in zip(seen[1:], seen, strict=False) if each[1:] != before[1:]]
    print("seconds to the opening, target, warm:", *shown)
    began = next(at for at, wanted, _ in seen if wanted == 20)
    full = next(at for at, _, ready in seen if ready == 20)
    assert began < full < 0, shown
    assert began > -240
    assert site.get(POOLS, "pool")["status"]["warm"]["decidedBy"] == "schedule/office"
