"""Nodes that are full, and nodes that may not be listed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.cluster import start_simulator
from e2e.controlplane.plane import ControlPlane
from tests.integration.own_cluster.conftest import Start
from tests.support.degraded import stays_calm
from tests.support.site import CLAIMS, POOLS, Site, condition, holds, until, until_still

pytestmark = pytest.mark.cluster


@pytest.fixture
def four_places(plane: ControlPlane) -> Iterator[None]:
    """The stand-in's three nodes take two VMs each; two of the places are somebody else's."""
    plane.processes.stop("simulator")
    start_simulator(plane, ["--room", "2"])
    yield
    plane.processes.stop("simulator")
    start_simulator(plane)


@pytest.mark.usefixtures("four_places", "auditor")
def test_a_full_cluster_stops_refills_is_told_and_goes_on_when_there_is_room(
    site: Site, start: Start
) -> None:
    controller = start(watch_namespaces=site.namespace)
    site.pool("other", warm=4)
    site.until_warm(4, "other")
    site.pool(warm=5, limits={"maxConcurrentCreations": 2}, readiness={"deadline": "2s"})
    site.until_warm(2)
    told = site.until_condition(POOLS, "pool", "CapacityAvailable", "False", "Unschedulable")
    assert "VMs wait for a node with room: add nodes, or lower warm.replicas" in told["message"]
    waiting = until_still(lambda: len(site.vms())) - 2
    assert 1 <= waiting <= 2
    site.claim("warm")
    site.bound("warm")
    site.claim("next")
    site.bound("next")
    site.claim("third")
    why = site.until_condition(CLAIMS, "third", "Bound", "False", "Queued")
    assert "wait for a node with room" in why["message"]
    holds("no more made", site.vms, lambda vms: len(vms) == 2 + waiting, 2.5)
    stays_calm(controller)
    pool = site.get(POOLS, "pool")
    assert pool["status"]["brake"]["failures"] == 0, "the deadline does not count while there is no room"
    assert condition(pool, "Ready")["reason"] == "Serving"
    site.patch(POOLS, "other", {"spec": {"warm": {"replicas": 0}}})
    site.bound("third")
    until("going on", site.vms, lambda vms: len(vms) > 2 + waiting)
    site.delete(POOLS, "pool")
    for name in ("warm", "next", "third"):
        site.delete(CLAIMS, name)
    until("all gone", site.vms, lambda vms: not vms)
