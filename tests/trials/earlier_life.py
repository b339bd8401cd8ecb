"""Thousands of VMs of an earlier life: of a pool that is gone, and foreign ones with copied labels.

They must be left alone and must not hold up a start: `python -m tests.trials.earlier_life --vms 10000`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from crds import names
from e2e.cluster import start_simulator
from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from simulator.api import Api, load_cluster
from tests.support.controller import Controller, running_controller
from tests.support.manifests import claim_manifest, pool_manifest
from tests.support.site import guest, metric, vm_template

Json = dict[str, Any]

GONE_POOL = "11111111-2222-4333-8444-555555555555"
NAMESPACE = "earlier-life"
VMS = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
BULLPEN = f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}"
AT_ONCE = 16  # creations
LONGEST_START = 10.0  # seconds, on a machine with nothing else to do
_PATIENCE = 120.0
_TOUCHES = ("drain/mark", "drain/delete", "release/delete", "repair/destroy", "resync/labels")


class EarlierLifeError(AssertionError):
    """Something was touched, counted, or never came."""


@dataclass(frozen=True)
class Found:
    """How it went; times in seconds from the start of the controller's process."""

    vms: int
    creating: float
    ready: float
    first_hand_over: float


def vm(number: int, *, owned: bool) -> Json:
    """One that does not run: labelled as a pool's, and owned by a pool that is gone or by nobody."""
    labels = {
        names.LABEL_POOL: "pool",
        names.LABEL_POOL_UID: GONE_POOL,
        names.LABEL_STATE: names.Mark.POOLED.value,
    }
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "VirtualMachinePool",
        "name": "pool",
        "uid": GONE_POOL,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: Json = {"name": f"earlier-{number:05}", "labels": labels}
    if owned:
        metadata["ownerReferences"] = [owner]
    spec = {"runStrategy": "Halted", "template": {"spec": guest()}}
    return {
        "apiVersion": names.KUBEVIRT_API_VERSION,
        "kind": "VirtualMachine",
        "metadata": metadata,
        "spec": spec,
    }


async def earlier_life(plane: ControlPlane, directory: Path, count: int) -> Found:
    """Run it on a control plane without a stand-in, which is started here.

    Raises:
        EarlierLifeError: something was touched, counted, or never came.
    """
    start_simulator(plane, ["--profile", "minimal", "--boot", "100ms"])
    async with Api(load_cluster(plane.kubeconfig)) as api:
        await api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        with running_controller(plane.kubeconfig, directory, lease_duration="30s"):
            manifest = pool_manifest("pool", template=vm_template(), warm={"replicas": 2})
            await api.post(f"{BULLPEN}/{names.POOLS}", manifest)
            await _until(api, f"{names.POOLS}/pool", lambda pool: _warm(pool) == 2)
        began = time.monotonic()
        await _make(api, count)
        creating = time.monotonic() - began
        foreign = await _foreign(api)
        await api.post(f"{BULLPEN}/{names.CLAIMS}", claim_manifest("first", "pool"))
        began = time.monotonic()
        with running_controller(plane.kubeconfig, directory, lease_duration="30s") as controller:
            ready = time.monotonic() - began
            await _until(api, f"{names.CLAIMS}/first", lambda claim: _phase(claim) == "Bound")
            served = time.monotonic() - began
            pool = await _until(
                api, f"{names.POOLS}/pool", lambda pool: _warm(pool) == 2 and pool["status"]["total"] >= 3
            )
            _judge(pool, controller)
        if await _foreign(api) != foreign:
            raise EarlierLifeError("a foreign VM was changed")
    return Found(count, creating, ready, served)


async def _make(api: Api, count: int) -> None:
    """Half of them owned by a pool that is gone, half by nobody."""
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await api.post(VMS, vm(number, owned=number % 2 == 0))

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


async def _foreign(api: Api) -> dict[str, str]:
    """The foreign VMs and their versions."""
    found: dict[str, str] = {}
    path, more = f"{VMS}?limit=500&labelSelector={names.LABEL_POOL_UID}={GONE_POOL}", ""
    while True:
        page = orjson.loads(await api.get(path + (f"&continue={more}" if more else "")))
        for each in page["items"]:
            if not each["metadata"].get("ownerReferences"):
                found[each["metadata"]["name"]] = each["metadata"]["resourceVersion"]
        more = page["metadata"].get("continue", "")
        if not more:
            return found


def _judge(pool: Json, controller: Controller) -> None:
    total = pool["status"]["total"]
    if total != 3:
        raise EarlierLifeError(f"the pool counts {total} VMs as its own")
    touched = {step: metric(controller, "bullpen_api_requests_total", step=step) for step in _TOUCHES}
    if any(touched.values()):
        raise EarlierLifeError(f"something was removed or labelled: {touched}")


async def _until(api: Api, what: str, fits: Any) -> Json:
    deadline = time.monotonic() + _PATIENCE
    while True:
        found: Json = orjson.loads(await api.get(f"{BULLPEN}/{what}"))
        if fits(found):
            return found
        if time.monotonic() > deadline:
            raise EarlierLifeError(f"{what}: {found.get('status')}")
        await asyncio.sleep(0.02)


def _warm(pool: Json) -> int:
    return int((pool.get("status") or {}).get("warm", {}).get("ready", -1))


def _phase(claim: Json) -> str:
    return str((claim.get("status") or {}).get("phase", ""))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--vms", type=int, default=10_000, metavar="N", help="how many (default: %(default)s)"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane.start(Path(folder) / "plane") as plane:
        install_crds(plane.kubeconfig)
        found = asyncio.run(earlier_life(plane, Path(folder), chosen.vms))
    print(
        f"{found.vms} VMs of an earlier life (made in {found.creating:.0f} s): "
        f"ready after {found.ready:.1f} s, first hand-over after {found.first_hand_over:.1f} s"
    )
    return int(found.first_hand_over > LONGEST_START)


if __name__ == "__main__":
    sys.exit(main())
