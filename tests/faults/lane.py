"""One namespace with a controller of its own behind a proxy of its own, and an auditor: runs happen here.

Many lanes stand side by side on one control plane: each proxy shows its controller nothing but the lane's
namespace. A controller that was killed is started anew at once. The dead one's Lease is taken from it by
hand, since otherwise each kill would cost the length of a lease; that asks more of the protocol than a lease
does, for what the dead one sent may then land while the next one is at work.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Self

from auditor import Auditor
from simulator.api import ApiError, Cluster, load_cluster
from tests.faults.people import People
from tests.faults.proxy import Proxy
from tests.support.controller import Controller, running_controller
from tests.trials.stage import Stage, errors_in

LEASE = "6s"  # its third is the controller's time-out for a request, with a second of grace
READY = 60.0  # seconds for a controller to lead and to have read the cluster
LOST_LEASE = 3  # the exit code of a controller that has lost its lease
_LOOK = 0.03
# Who leads counts what came within two sizing intervals before: a death takes some seconds.
_SETTINGS = {"lease_duration": LEASE, "brake_delay": "1s", "resync_interval": "2s", "sizing_interval": "5s"}

Json = dict[str, Any]


class FaultError(AssertionError):
    """Something is not as it must be after a fault."""


@dataclass
class Lane:
    """`async with Lane.open(stage) as lane:`."""

    stage: Stage
    namespace: str
    proxy: Proxy
    auditor: Auditor
    people: People
    kubeconfig: Path
    restarts: int = 0
    trouble: str = ""
    while_nobody_leads: Callable[[], Awaitable[None]] | None = None
    controller: Controller = field(init=False)
    _living: ExitStack = field(default_factory=ExitStack)
    _up: asyncio.Event = field(default_factory=asyncio.Event)
    _killed: bool = False

    @classmethod
    @asynccontextmanager
    async def open(cls, stage: Stage) -> AsyncIterator[Self]:
        """A fresh namespace and a controller that leads; all of it is stopped at the end."""
        namespace = f"lane-{secrets.token_hex(3)}"
        await stage.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        cluster = load_cluster(stage.kubeconfig)
        record = stage.recordings / f"{namespace}.jsonl" if stage.recordings else None
        async with (
            Proxy.running(cluster, namespace) as proxy,
            Auditor.watching(stage.kubeconfig, namespace, record=record) as auditor,
        ):
            kubeconfig = stage.directory / f"{namespace}.kubeconfig"
            kubeconfig.write_text(json.dumps(_kubeconfig(proxy.url, cluster)))
            people = People(stage.api, namespace, auditor)
            lane = cls(stage, namespace, proxy, auditor, people, kubeconfig)
            proxy.kill, proxy.vanish, people.restart = lane.kill, people.vanish, lane.stop
            async with lane._supervised():
                yield lane
        with suppress(ApiError):
            await stage.api.delete(f"/api/v1/namespaces/{namespace}")

    @asynccontextmanager
    async def _supervised(self) -> AsyncIterator[None]:
        with self._living:
            self._start()
            await self._ready()
            supervising = asyncio.create_task(self._supervise())
            try:
                yield
            finally:
                supervising.cancel()
                await asyncio.gather(supervising, return_exceptions=True)

    # ---- the controller

    async def kill(self) -> None:
        """SIGKILL; returns when it is dead. The next one is started by the supervision."""
        process = self.controller.process  # the supervision puts the next one there
        self._up.clear()
        self._killed = True
        process.kill()
        while process.poll() is None:
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """A clean stop; the supervision starts the next one."""
        process = self.controller.process
        self._up.clear()
        self._killed = True
        process.terminate()
        while process.poll() is None:
            await asyncio.sleep(_LOOK)

    async def alive(self) -> None:
        """Wait until a controller leads, whatever happened to the one before. Raises FaultError."""
        deadline = monotonic() + READY
        while not self._up.is_set():
            if monotonic() > deadline:
                raise FaultError(f"no controller leads: {self.trouble or self.controller.said[-1500:]}")
            await asyncio.sleep(_LOOK)
        if self.trouble:
            raise FaultError(self.trouble)

    @property
    def complaints(self) -> list[str]:
        """The errors in the log of the controller that leads now."""
        return errors_in(self.controller)

    def _start(self) -> None:
        self._killed = False
        lease = f"bullpen-{self.namespace}"
        self.controller = self._living.enter_context(
            running_controller(self.kubeconfig, self.stage.directory, lease=lease, wait=False, **_SETTINGS)
        )

    async def _ready(self) -> bool:
        """Whether it leads; False when it ended before it did."""
        deadline = monotonic() + READY
        while '"event": "ready"' not in self.controller.said:
            if self.controller.process.poll() is not None:
                return False
            if monotonic() > deadline:
                raise FaultError(f"it never led: {self.controller.said[-1500:]}")
            await asyncio.sleep(_LOOK)
        self._up.set()
        return True

    async def _supervise(self) -> None:
        while True:
            while (code := self.controller.process.poll()) is None:
                await asyncio.sleep(_LOOK)
            self._up.clear()
            if not self._killed and code != LOST_LEASE:
                self.trouble = f"the controller ended with {code}: {self.controller.said[-1500:]}"
            if self._killed and self.while_nobody_leads is not None:
                hook, self.while_nobody_leads = self.while_nobody_leads, None
                await hook()
            await self._free_the_lease()
            self.restarts += 1
            self._start()
            try:
                await self._ready()
            except FaultError as error:
                self.trouble = str(error)

    async def _free_the_lease(self) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/bullpen-{self.namespace}"
        with suppress(ApiError):
            await self.stage.api.merge_patch(path, {"spec": {"holderIdentity": ""}})


def _kubeconfig(server: str, cluster: Cluster) -> Json:
    token = (cluster.authorization() or "").removeprefix("Bearer ")
    context = {"cluster": "proxy", "user": "admin"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "proxy", "context": context}],
        "current-context": "proxy",
    }
