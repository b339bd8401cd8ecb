"""What is measured: a fresh control plane, the stand-in, and the controller, which comes and goes.

Every process but this one is a child that ends with it. It must never measure; it starts, waits and reads.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

from benchmarks.bare import Bare, RefusedError
from benchmarks.measure import Reading, cpu_seconds, requests_sent, resident, writes_served
from benchmarks.objects import POOLS, VMIS, VMS, Machine, Shape
from benchmarks.objects import pool as pool_object
from crds import names
from e2e.cluster import start_simulator
from e2e.controlplane.plane import PARTS, ControlPlane
from e2e.install import ROOT, install_crds
from simulator.api import MERGE_PATCH, load_cluster

BOOT = "200ms"
NAMESPACE = "benchmark"
CONTROLLER = (sys.executable, "-m", "controller")
LATE = 1.2  # s after which a pool's status, written once a second, shows what happened before
_FULL_BOUND = 120.0  # s for a pool to fill up
_POLL = 0.1

Log = Callable[[str], None]


class RigError(Exception):
    """The benchmark can't go on; the text says what it waited for."""


class Rig:
    """The running things and how to reach them."""

    def __init__(self, plane: ControlPlane, api: Bare, log: Log) -> None:
        self.plane = plane
        self.api = api
        self.log = log
        self._port = 0

    # ---- the controller

    @property
    def controller(self) -> int:
        """Its process id."""
        return self.plane.pids["controller"]

    def spawn_controller(self) -> None:
        self._port = _free_port()
        address = f"127.0.0.1:{self._port}"
        environ = {**os.environ, "KUBECONFIG": str(self.plane.kubeconfig)}
        self.plane.run_beside("controller", [*CONTROLLER, "--listen", address], ready=None, environ=environ)

    async def start_controller(self) -> None:
        """Start it and wait until it says that it is ready."""
        self.spawn_controller()
        await self.until(self._ready, "the controller is ready")

    async def stop_controller(self) -> None:
        await asyncio.to_thread(self.plane.processes.stop, "controller")

    async def _ready(self) -> bool:
        try:
            await self._scrape("readyz")
        except aiohttp.ClientError:
            if "controller" in [each.name for each in self.plane.processes.dead()]:
                raise RigError(f"the controller ended:\n{self._last_words()}") from None
            return False
        return True

    async def _scrape(self, page: str) -> str:
        url = f"http://127.0.0.1:{self._port}/{page}"
        async with aiohttp.ClientSession(raise_for_status=True) as session, session.get(url) as answer:
            return await answer.text()

    def _last_words(self) -> str:
        told = (each.tail(5) for each in self.plane.processes.started if each.name not in PARTS)
        return "\n".join(told)

    # ---- pools and VMs

    async def make_pool(self, name: str, *, warm: int, most: int, at_once: int = 100) -> None:
        """A pool of the example's template."""
        example = yaml.safe_load((ROOT / "examples" / "pool.yaml").read_text())
        await self.api.send("POST", POOLS.format(NAMESPACE), pool_object(example, name, warm, most, at_once))

    async def change_pool(self, name: str, spec: dict[str, Any]) -> None:
        path = f"{POOLS.format(NAMESPACE)}/{name}"
        await self.api.send("PATCH", path, orjson.dumps({"spec": spec}), MERGE_PATCH)

    async def full(self, name: str, warm: int) -> None:
        """Wait until a pool's status, as of now, says that all is warm and nothing claimed or under way."""
        await asyncio.sleep(LATE)

        async def settled() -> bool:
            pool = orjson.loads(await self.api.send("GET", f"{POOLS.format(NAMESPACE)}/{name}"))
            status = pool.get("status") or {}
            rest = status.get("instances") or {}
            busy = sum(rest.get(key, 0) for key in ("claimed", "draining", "terminating", "provisioning"))
            return bool(status.get("warm", {}).get("ready", 0) >= warm and not busy)

        await self.until(settled, f"pool {name} holds {warm} warm VMs")

    async def pooled(self, pool: str) -> list[dict[str, Any]]:
        """A pool's unclaimed VMs, oldest first."""
        selector = f"labelSelector={names.LABEL_POOL}={pool},{names.LABEL_STATE}=Pooled"
        found = []
        async for items, _ in self.api.pages(VMS.format(NAMESPACE), selector):
            found += [orjson.loads(bytes(item)) for item in items]
        alive = [vm for vm in found if "deletionTimestamp" not in vm["metadata"]]
        return sorted(alive, key=lambda vm: str(vm["metadata"]["creationTimestamp"]))

    async def stock(self, pool: str) -> list[Machine]:
        return [Machine(vm["metadata"]["name"], vm["metadata"]["uid"]) for vm in await self.pooled(pool)]

    async def shape(self, pool: str) -> Shape:
        """After the pool's first VM and its instance."""
        vm = (await self.pooled(pool))[0]
        path = f"{VMIS.format(NAMESPACE)}/{vm['metadata']['name']}"
        return Shape(vm, orjson.loads(await self.api.send("GET", path)))

    async def count(self, path: str) -> int:
        """How many objects a list would have, without listing them."""
        page = orjson.loads(await self.api.send("GET", f"{path}?limit=1"))
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    async def until(self, holds: Callable[[], Any], what: str, bound: float = _FULL_BOUND) -> None:
        """Poll until it holds; RigError when time is up."""
        deadline = time.monotonic() + bound
        while not await holds():
            if time.monotonic() > deadline:
                raise RigError(f"{bound:.0f} s were not enough until {what}\n{self._last_words()}")
            await asyncio.sleep(_POLL)

    # ---- readings

    async def read(self, *, begins: bool) -> Reading:
        """One look; the CPU is read next to the measured time, whose own cost the scraping must not be."""
        cpu = {} if begins else self._cpu()
        served = writes_served((await self.api.send("GET", "/metrics")).decode())
        sent = requests_sent(await self._scrape("metrics")) if "controller" in self.plane.pids else {}
        return Reading(self._cpu() if begins else cpu, served, sent)

    def _cpu(self) -> dict[str, float]:
        return cpu_seconds({**self.plane.pids, "generator": os.getpid()})

    def rss(self) -> int:
        """Bytes that the controller holds."""
        return resident(self.controller)


@asynccontextmanager
async def rig(*, vm_crd: Path | None, log: Log) -> AsyncIterator[Rig]:
    """A fresh one, without the controller; everything is stopped and removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="bullpen-benchmark-"))
    log("starting a control plane and the stand-in")
    try:
        # Started from this thread: what it starts ends with the thread that started it.
        with ControlPlane.start(directory / "plane", log=log) as plane:
            install_crds(plane.kubeconfig, vm_crd)
            start_simulator(plane, ["--profile", "minimal", "--boot", BOOT, "--shutdown", "0s"])
            async with Bare(load_cluster(plane.kubeconfig)) as api:
                await _make_namespace(api)
                yield Rig(plane, api, log)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _make_namespace(api: Bare) -> None:
    try:
        await api.send("POST", "/api/v1/namespaces", orjson.dumps({"metadata": {"name": NAMESPACE}}))
    except RefusedError as refused:
        raise RigError(f"no namespace: {refused}") from refused


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
