"""The API server dies under load and comes back; etcd stands still, also for longer than the lease."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from e2e.controlplane.plane import ControlPlane
from tests.integration.own_cluster.conftest import Start
from tests.support.controller import Controller
from tests.support.degraded import auditing_with_gaps
from tests.support.site import CLAIMS, POOLS, Site, named_vm, until

pytestmark = pytest.mark.cluster

LOST_LEASE = 3  # exit code
SHORT = {"lease_duration": "6s"}  # one may be lost here
TOO_LONG = 14.0  # seconds: the lease of six, and a request that hangs
CROWD = [f"claim-{number}" for number in range(12)]


@pytest.fixture
def audited(kubeconfig: Path, site: Site) -> Iterator[None]:
    """Watches break when the API server does: what was missed is not judged."""
    with auditing_with_gaps(kubeconfig, site.namespace):
        yield


def restart_api_server(plane: ControlPlane, number: signal.Signals) -> None:
    """End it so, and start it again on the same etcd. One that is asked waits for its watches a while."""
    [server] = [each for each in plane.processes.started if each.name == "apiserver"]
    command = psutil.Process(server.pid).cmdline()
    if number is signal.SIGKILL:
        server.signal(number)
    plane.processes.stop("apiserver")
    plane.processes.start("apiserver", command)


def still(plane: ControlPlane, seconds: float) -> None:
    """etcd answers nobody for so long."""
    [etcd] = [each for each in plane.processes.started if each.name == "etcd"]
    etcd.signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        etcd.signal(signal.SIGCONT)


def survivor(controller: Controller, start: Start) -> Controller:
    """The controller; a new one if it lost its lease and ended, as it should then."""
    try:
        assert controller.process.wait(10) == LOST_LEASE, controller.said[-2000:]
    except subprocess.TimeoutExpired:
        return controller
    return start(**SHORT)


def all_served_once(site: Site) -> None:
    """Each claim has a VM of its own, and the pool is full again."""
    names = [named_vm(site.bound(each, seconds=90))["name"] for each in CROWD]
    assert len(set(names)) == len(CROWD)
    site.until_condition(POOLS, "pool", "Ready", "True", "Serving", seconds=60)
    site.until_warm(6, seconds=90)
    until("nothing left over", lambda: len(site.vms()), lambda there: there == 6 + len(CROWD), 60)


@pytest.mark.usefixtures("audited")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_api_server_that_is_restarted_in_a_burst_costs_nobody_a_vm(
    site: Site, start: Start, plane: ControlPlane, number: signal.Signals
) -> None:
    controller = start(**SHORT)
    site.pool(warm=6)
    site.until_warm(6)
    for name in CROWD:
        site.claim(name)
    restart_api_server(plane, number)
    until(
        "served again", lambda: site.api.get("/readyz").status == 200 if reachable(site) else False, bool, 60
    )
    survivor(controller, start)
    all_served_once(site)


def reachable(site: Site) -> bool:
    try:
        site.api.get("/readyz")
    except Exception:  # noqa: BLE001 - whatever the connection says
        return False
    return True


@pytest.mark.usefixtures("audited")
def test_an_etcd_that_stands_still_again_and_again_doubles_nothing(
    site: Site, start: Start, plane: ControlPlane
) -> None:
    controller = start(**SHORT)
    site.pool(warm=6)
    site.until_warm(6)
    for name in CROWD:
        site.claim(name)
    for _ in range(3):
        still(plane, 3.0)
        time.sleep(0.5)
    survivor(controller, start)
    all_served_once(site)


@pytest.mark.usefixtures("audited")
def test_when_etcd_stands_still_for_longer_than_the_lease_a_new_start_takes_over_and_doubles_nothing(
    site: Site, start: Start, plane: ControlPlane
) -> None:
    controller = start(**SHORT)
    site.pool(warm=6)
    site.until_warm(6)
    for name in CROWD:
        site.claim(name)
    still(plane, TOO_LONG)
    assert controller.process.wait(30) == LOST_LEASE
    assert "not leading: nothing is written any more" in controller.said
    start(**SHORT)
    all_served_once(site)
    assert site.get(CLAIMS, CROWD[0])["status"]["phase"] == "Bound"
