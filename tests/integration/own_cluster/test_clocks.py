"""The clocks of the API server and of the host are set, and an API server that is busy: nobody loses a VM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.own_cluster.conftest import Start
from tests.support.altering import Altering, altering
from tests.support.controller import Controller
from tests.support.degraded import stays_calm
from tests.support.site import CLAIMS, POOLS, VMS, Site, holds, metric, until, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("auditor")]

HOUR = 3600.0
SET = "the API server's clock was set"
PARTED = "the host's clock and the API server's do not agree"


@pytest.fixture
def way(kubeconfig: Path) -> Iterator[Altering]:
    with altering(kubeconfig) as found:
        yield found


def until_ahead(controller: Controller, seconds: float) -> None:
    """The controller has noticed how its host's clock stands to the API server's."""
    name = "bullpen_host_clock_ahead_seconds"
    until(name, lambda: metric(controller, name), lambda ahead: abs(ahead - seconds) < 3.0)


def furnish(site: Site) -> None:
    """Whatever waits for a time that is less than an hour away: warm, booting, bound, waiting."""
    site.pool(warm=1, maxWarmAge="50m")
    site.pool("slow", warm=1, template=vm_template(boot="30m"), readiness={"deadline": "40m"})
    site.until_warm(1)
    site.claim(lifetime="30m")
    site.bound()
    site.claim("patient", pool="slow", timeout="30m", whenEmpty={"policy": "Wait"})
    site.until_condition(CLAIMS, "patient", "Bound", "False", "Queued")
    site.until_warm(1)
    until("one boots", lambda: site.vm_names("slow"), lambda names: len(names) == 1)
    until("one warm, one bound, one booting", lambda: all_there(site), lambda there: len(there) == 3)
    site.until(POOLS, "pool", "counted", lambda pool: pool["status"]["total"] == 2)
    site.until_warm(1)


def untouched(site: Site, number: int) -> None:
    """Everything is looked at anew, and nothing has ended."""
    before = all_there(site)
    assert len(before) == 3
    note = {"metadata": {"annotations": {"look": f"again-{number}"}}}
    for plural, name in ((CLAIMS, "claim"), (CLAIMS, "patient"), (POOLS, "pool"), (POOLS, "slow")):
        site.patch(plural, name, note)
    for vm in before:
        site.patch(VMS, vm, note)
    holds("all there", lambda: all_there(site), lambda now: now == before, 1.5)
    assert site.get(CLAIMS, "claim")["status"]["phase"] == "Bound"
    assert site.get(CLAIMS, "patient")["status"]["phase"] == "Pending"


def all_there(site: Site) -> dict[str, str]:
    """The VMs that nobody has marked for going, by name."""
    vms = [*site.vms(), *site.vms("slow")]
    return {
        vm["metadata"]["name"]: vm["metadata"]["uid"]
        for vm in vms
        if "deletionTimestamp" not in vm["metadata"]
    }


def test_a_server_whose_clock_is_set_ends_nothing_early_and_what_is_new_in_time(
    site: Site, way: Altering, start: Start, tmp_path: Path
) -> None:
    account = way.kubeconfig(tmp_path / "way")
    controller = start(account=account)
    furnish(site)
    for number, ahead in enumerate((HOUR, 0.0, -HOUR, HOUR)):
        way.ahead = ahead
        until_ahead(controller, -ahead)
        untouched(site, number)
    assert SET in controller.said
    assert PARTED in controller.said
    site.claim("new", lifetime="2s")
    site.until_phase("new", "Released")
    assert controller.process.poll() is None, "the lease goes by another clock"
    site.until_warm(1)
    controller.stop()
    again = start(account=account)
    again.wait_until_says(PARTED)
    untouched(site, 9)


def test_a_host_whose_clock_is_off_ends_nothing_early_and_is_told(
    site: Site, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ahead").write_text("0")
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib, time\n"
        "true, ahead = time.time, pathlib.Path(__file__).with_name('ahead')\n"
        "time.time = lambda: true() + float(ahead.read_text() or 0)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    controller = start()
    furnish(site)
    for number, ahead in enumerate((HOUR, -HOUR)):
        (tmp_path / "ahead").write_text(str(ahead))
        until_ahead(controller, ahead)
        untouched(site, number)
    assert PARTED in controller.said
    site.claim("new", lifetime="2s")
    site.until_phase("new", "Released")


def test_a_busy_api_server_is_left_alone_and_then_all_goes_on(
    site: Site, way: Altering, start: Start, tmp_path: Path
) -> None:
    controller = start(account=way.kubeconfig(tmp_path / "way"))
    site.pool(warm=4)
    site.until_warm(4)
    way.busy = True
    crowd = [f"claim-{number}" for number in range(8)]
    for name in crowd:
        site.claim(name)
    until("turned away", lambda: way.turned_away, bool)
    stays_calm(controller, 4.0, calm=20.0)  # each of some fifteen writes waits the second it was told to
    way.busy = False
    for name in crowd:
        site.bound(name, seconds=60)
    site.until_warm(4, seconds=60)
    site.until_condition(POOLS, "pool", "Ready", "True", "Serving", seconds=60)
    assert '"level": "error"' not in controller.said
