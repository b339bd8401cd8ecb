"""The stand-in as a process: restarts, the minimal profile, nodes. On a control plane of its own."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path

import orjson
import pytest

from e2e.controlplane.binaries import NoBinariesError
from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from tests.support.vm_watching import VMIS, VMS, VMWatch, watching

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def own_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Without a stand-in: two of them would both run every VM."""
    try:
        plane = ControlPlane.start(tmp_path_factory.mktemp("own"))
    except NoBinariesError as error:  # with a cluster of somebody else's nothing needs to be here
        pytest.skip(str(error))
    with plane:
        install_crds(plane.kubeconfig)
        yield plane.kubeconfig


@pytest.fixture
async def vms(own_plane: Path, request: pytest.FixtureRequest) -> AsyncIterator[VMWatch]:
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60].strip("-")
    async with watching(own_plane, name) as watch:
        await watch.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
        yield watch


@contextlib.asynccontextmanager
async def stand_in(kubeconfig: Path, *flags: str) -> AsyncIterator[Process]:
    """Running and synced; ended by SIGTERM, of which it must not die but stop."""
    command = [sys.executable, "-m", "simulator", "kubevirt", "--kubeconfig", str(kubeconfig), *flags]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    try:
        said = await asyncio.wait_for(process.stdout.readline(), 30)
        assert said == b"ready\n"
        yield process
        if process.returncode is None:
            process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) == 0
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def writes_told(process: Process) -> str:
    """The last line of its log, after a SIGTERM: what it wrote, by verb."""
    process.terminate()
    _, errors = await asyncio.wait_for(process.communicate(), 10)
    return errors.decode().strip().splitlines()[-1]


async def test_vms_that_run_are_adopted_by_a_restart_without_a_write(own_plane: Path, vms: VMWatch) -> None:
    async with stand_in(own_plane):
        await asyncio.gather(*(vms.create(f"vm-{number}", boot="200ms") for number in range(10)))
        await vms.until_ready(VMS, count=10)
    before = len(vms.events)
    async with stand_in(own_plane) as process:
        await vms.create("new", boot="300ms")
        await vms.until_ready(VMS, count=11)
        assert {each.object["metadata"]["name"] for each in vms.events[before:]} == {"new"}
        assert "create 1" in await writes_told(process)


async def test_a_boot_that_a_restart_interrupts_is_brought_to_its_end(own_plane: Path, vms: VMWatch) -> None:
    async with stand_in(own_plane):
        await vms.create(boot="1h")
        await vms.until("Scheduling", lambda events: any(each.shown == "Scheduling" for each in events))
    await vms.patch({"metadata": {"annotations": {"simulator.bullpen.dev/boot": "200ms"}}})
    async with stand_in(own_plane):
        await vms.until_ready(VMS)
    assert len({each.object["metadata"]["uid"] for each in vms.of(VMIS)}) == 1


async def test_vms_made_and_deleted_while_it_was_away_are_caught_up_with(
    own_plane: Path, vms: VMWatch
) -> None:
    async with stand_in(own_plane):
        await vms.create("old", boot="100ms")
        await vms.until_ready(VMS)
    await vms.api.delete(vms.path(VMS, "old"))
    await vms.create("new", boot="100ms")
    async with stand_in(own_plane):
        await vms.until_gone(VMS)
        await vms.until_ready(VMS, count=2)


async def test_in_the_minimal_profile_a_vm_gets_no_write_and_its_vmi_one(
    own_plane: Path, vms: VMWatch
) -> None:
    async with stand_in(own_plane, "--profile", "minimal", "--boot", "300ms"):
        made = await vms.create()
        vmi = await vms.until_ready(VMIS)
        assert vmi["status"]["phase"] == "Running"
        assert vmi["status"]["interfaces"][0]["ipAddress"]
        await vms.api.delete(vms.path(VMS, "vm"))
        await vms.until_gone(VMS)
        await vms.until_gone(VMIS)
    assert [each.type for each in vms.of(VMS)] == ["ADDED", "DELETED"]
    assert [each.type for each in vms.of(VMIS)] == ["ADDED", "DELETED"]
    assert "status" not in made


async def test_in_the_minimal_profile_a_crash_gives_a_new_vmi(own_plane: Path, vms: VMWatch) -> None:
    async with stand_in(own_plane, "--profile", "minimal", "--boot", "100ms"):
        await vms.create(crash_after="200ms")
        await vms.until_ready(VMIS, count=2)
    assert len(vms.of(VMS)) == 1


async def until_collected(vms: VMWatch) -> None:
    """The garbage collector knows VMIs: it overlooks a new definition for up to half a minute."""
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "absent", "uid": "absent"}
    vmi = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "collected", "ownerReferences": [owner]},
        "spec": {"domain": {"devices": {}}},
    }
    await vms.api.post(vms.path(VMIS), vmi)
    await vms.until("collected", lambda events: any(each.type == "DELETED" for each in events), 60)
    vms.events.clear()


async def test_in_the_minimal_profile_an_orphan_delete_leaves_the_vmi(own_plane: Path, vms: VMWatch) -> None:
    await until_collected(vms)
    async with stand_in(own_plane, "--profile", "minimal", "--boot", "100ms"):
        await vms.create()
        await vms.until_ready(VMIS)
        orphan = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
        await vms.api.request("DELETE", vms.path(VMS, "vm"), orphan)
        await vms.until("gone", lambda _: vms.of(VMS, "DELETED"), 60)
        await vms.create("other")
        await vms.until_ready(VMIS, count=2)
        await vms.api.delete(vms.path(VMS, "other"))
        await vms.until_gone(VMIS)
    assert [e.object["metadata"]["name"] for e in vms.of(VMIS, "DELETED")] == ["other"]


async def test_nodes_are_there_with_leases_and_take_the_guests(own_plane: Path, vms: VMWatch) -> None:
    async with stand_in(own_plane, "--nodes", "2"):
        nodes = orjson.loads(await vms.api.get("/api/v1/nodes"))["items"]
        assert {node["metadata"]["name"] for node in nodes} == {"node-1", "node-2"}
        assert all(node["status"]["capacity"]["cpu"] == "64" for node in nodes)
        await asyncio.gather(*(vms.create(f"vm-{number}", boot="100ms") for number in range(4)))
        await vms.until_ready(VMIS, count=4)
    landed = {each.object["status"]["nodeName"] for each in vms.of(VMIS) if each.ready}
    assert landed == {"node-1", "node-2"}


async def renewed(vms: VMWatch, node: str) -> datetime:
    lease = await vms.api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}")
    return datetime.fromisoformat(orjson.loads(lease)["spec"]["renewTime"])


async def test_a_lost_node_takes_its_guests_and_stops_its_lease(own_plane: Path, vms: VMWatch) -> None:
    async with stand_in(own_plane, "--nodes", "2", "--node-grace", "1s"):
        await asyncio.gather(*(vms.create(f"vm-{number}", boot="100ms") for number in range(4)))
        await vms.until_ready(VMIS, count=4)
        await vms.create("loser", boot="100ms", fail="lost-node")
        loser = await vms.until_ready(VMIS, count=5)
        lost = loser["status"]["nodeName"]
        beside = {
            e.object["metadata"]["name"] for e in vms.of(VMIS) if e.object["status"].get("nodeName") == lost
        }
        assert len(beside) == 3

        def gone_quiet() -> set[str]:
            last = {each.object["metadata"]["name"]: each for each in vms.of(VMIS)}
            return {name for name, each in last.items() if not each.ready}

        await vms.until("its guests not Ready", lambda _: gone_quiet() == beside)
        other = ({"node-1", "node-2"} - {lost}).pop()
        async with asyncio.timeout(30):
            while await renewed(vms, other) <= await renewed(vms, lost):
                await asyncio.sleep(0.1)
        await vms.create("later", boot="100ms")
        await vms.until_ready(VMIS, count=6)
    later = next(e for e in vms.of(VMIS) if e.object["metadata"]["name"] == "later" and e.ready)
    assert later.object["status"]["nodeName"] == other
