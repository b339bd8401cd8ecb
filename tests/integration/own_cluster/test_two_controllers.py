"""Two controllers started by mistake or on purpose: one works, the other waits and takes over."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request

import pytest

from tests.integration.own_cluster.conftest import Start
from tests.support.auditing import AuditorThread
from tests.support.controller import Controller
from tests.support.site import POOLS, VMS, Site, metric, named_vm, until

pytestmark = pytest.mark.cluster

LEASE = 6.0  # seconds, where one has to be outlived
SHORT = {"lease_duration": f"{LEASE:g}s"}
READY = '"event": "ready"'


def leads(controller: Controller) -> bool:
    return metric(controller, "bullpen_leading") == 1


def is_ready(controller: Controller) -> bool:
    try:
        with urllib.request.urlopen(f"http://{controller.listen}/readyz", timeout=5):
            return True
    except urllib.error.URLError:
        return False


def standby(start: Start, **settings: str) -> Controller:
    """A second controller that has seen who holds the lease, and all that is there."""
    second = start(wait=False, **settings)
    second.wait_until_says("waiting for the lease")
    until("ready", lambda: is_ready(second))
    return second


def test_the_second_controller_waits_and_says_for_whom(
    site: Site, auditor: AuditorThread, start: Start
) -> None:
    first, second = start(), standby(start)
    site.pool(warm=2)
    site.until_warm(2)
    site.claim()
    site.bound()
    site.until(POOLS, "pool", "refilled", lambda pool: pool["status"]["total"] == 3)
    assert (leads(first), leads(second)) == (True, False)
    holder = re.search('"holder": "([^"]+)", "event": "waiting for the lease"', second.said)
    assert holder
    assert holder[1] in first.said
    for step in ("pool/create", "pool/status", "hand-over/vm"):
        assert metric(first, "bullpen_api_requests_total", step=step) > 0
        assert metric(second, "bullpen_api_requests_total", step=step) == 0
    assert metric(second, "bullpen_api_requests_total", step="list") > 0
    assert auditor.settled() == []
    assert auditor.seen["VMs"] == 3


def test_the_second_takes_over_when_the_first_is_killed(
    site: Site, auditor: AuditorThread, start: Start
) -> None:
    first, second = start(**SHORT), standby(start, **SHORT)
    site.pool(warm=2)
    site.until_warm(2)
    site.claim("before")
    before = named_vm(site.bound("before"))
    died = time.monotonic()
    first.kill()
    site.claim("meanwhile")
    second.wait_until_says(READY, 60)
    assert time.monotonic() - died < LEASE + 20
    assert named_vm(site.bound("meanwhile"))["uid"] != before["uid"]
    site.until_warm(2)
    assert named_vm(site.bound("before")) == before
    site.kubectl("delete", "vmc/before", "-n", site.namespace)
    site.until_gone(VMS, before["name"])
    assert auditor.violations == []


def test_the_second_takes_over_at_once_when_the_first_is_stopped(
    site: Site, auditor: AuditorThread, start: Start
) -> None:
    first, second = start(), standby(start)
    site.pool(warm=1)
    site.until_warm(1)
    assert first.stop() == 0
    stopped = time.monotonic()
    second.wait_until_says(READY)
    assert time.monotonic() - stopped < 15, "it does not wait for the lease of half a minute to run out"
    site.claim()
    site.bound()
    site.until_condition(POOLS, "pool", "Ready", "True", "Serving")
    assert auditor.violations == []


@pytest.mark.parametrize("moment", ['"event": "leading"', '"event": "compared"', '"event": "ready"'])
def test_one_that_is_stopped_while_it_takes_over_leaves_it_to_the_next(
    site: Site, auditor: AuditorThread, start: Start, moment: str
) -> None:
    first, second = start(), standby(start)
    site.pool(warm=1)
    site.until_warm(1)
    assert first.stop() == 0
    second.wait_until_says(moment)
    assert second.stop() == 0
    third = start()
    assert "waiting for the lease" not in third.said, "nobody waits for a lease that nobody holds"
    site.claim()
    site.bound()
    assert '"level": "error"' not in second.said
    assert auditor.violations == []


def test_after_a_clean_stop_a_pool_says_that_nobody_watches_it(
    site: Site, auditor: AuditorThread, start: Start
) -> None:
    first = start()
    site.pool(warm=1)
    site.until_warm(1)
    site.claim()
    site.bound()
    site.until(POOLS, "pool", "refilled", lambda pool: pool["status"]["total"] == 2)
    assert first.stop() == 0
    said = site.until_condition(POOLS, "pool", "Ready", "Unknown", "ControllerStopped", seconds=2)
    assert "no controller runs: no VM is made, handed over or removed until one does" in said["message"]
    pool = site.get(POOLS, "pool")
    assert pool["status"]["instances"]["claimed"] == 1, "what was last seen stays to be read"
    second = start()
    site.until_condition(POOLS, "pool", "Ready", "True", "Serving")
    assert '"level": "error"' not in first.said + second.said
    assert auditor.violations == []


def test_what_happened_while_no_controller_ran_is_made_up_for(
    site: Site, auditor: AuditorThread, start: Start
) -> None:
    first = start(**SHORT)
    site.pool(warm=2)
    site.until_warm(2)
    site.claim("one")
    one = named_vm(site.bound("one"))
    site.claim("two")
    two = named_vm(site.bound("two"))
    site.until(POOLS, "pool", "refilled", lambda pool: pool["status"]["total"] == 4)
    first.kill()
    auditor.excuse(two["uid"], "a person deletes it")
    site.delete(VMS, two["name"])
    site.until_gone(VMS, two["name"])
    site.delete("virtualmachineclaims", "one")
    site.claim("three")
    site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 1}}})
    start(**SHORT)
    site.until_phase("two", "Lost")
    site.until_gone(VMS, one["name"])
    site.bound("three")
    until("one warm and one claimed", site.vms, lambda vms: len(vms) == 2)
    site.until_warm(1)
