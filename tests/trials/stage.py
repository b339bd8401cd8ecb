"""Where trials happen: a control plane of their own, one namespace and one Lease for each trial.

A trial may kill whatever stands here, so nothing on it is shared with a test or another trial's controller.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson
import psutil

from auditor import Auditor, Rule
from crds.names import API_VERSION, CLAIMS, POOLS
from e2e.cluster import start_simulator
from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from simulator.api import Api, ApiError, load_cluster
from tests.support.controller import Controller, running_controller
from tests.support.manifests import pool_manifest
from tests.support.site import vm_template
from tests.trials.accounts import complaints, running_out
from tests.trials.crowd import Crowd

Json = dict[str, Any]

LEASE = "6s"
VMS = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines"
BOOT = "300ms..800ms"
_REST = 90.0  # seconds for everything to be repaired: a dead leader's lease, the garbage collector, boots
_LOOK = 0.25
QUIET = 3.0  # seconds at rest over which a controller is watched for spinning
_SOON = 10.0  # seconds in which nothing may change by time alone: the auditor's judgement, and QUIET
_IDLE_STEPS = ("lease", "watch", "list", "resync")


class TrialError(AssertionError):
    """A trial found something wrong."""


@dataclass(frozen=True)
class Stage:
    """A running control plane with the stand-in. `say` is told of each round when it is over.

    `account` is a kubeconfig of the controllers' own, if they are to have one.
    """

    plane: ControlPlane
    api: Api
    directory: Path
    say: Callable[[object], None]
    recordings: Path | None = None
    account: Path | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.plane.kubeconfig

    @asynccontextmanager
    async def scene(self, trial: str) -> AsyncIterator[Scene]:
        """A namespace with a crowd and an auditor; the auditor's findings fail the trial."""
        namespace = f"{trial}-{secrets.token_hex(3)}"
        async with (
            self.auditor(namespace, namespace) as auditor,
            self.scene_before(auditor, namespace) as scene,
        ):
            yield scene

    @asynccontextmanager
    async def auditor(self, name: str, namespace: str | None = None) -> AsyncIterator[Auditor]:
        """One that watches this namespace, or all of them; its events are kept under this name."""
        record = self.recordings / f"{name}.jsonl" if self.recordings else None
        async with Auditor.watching(self.kubeconfig, namespace, record=record) as auditor:
            yield auditor

    @asynccontextmanager
    async def scene_before(self, auditor: Auditor, namespace: str) -> AsyncIterator[Scene]:
        """A namespace with a crowd, before an auditor who watches others as well."""
        await self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        async with Crowd.gathered(self.api, namespace) as crowd:
            yield Scene(self, namespace, crowd, auditor, f"bullpen-{namespace}")
        with suppress_missing():
            await self.api.delete(f"/api/v1/namespaces/{namespace}")


@contextmanager
def suppress_missing() -> Iterator[None]:
    """For what may be gone already."""
    try:
        yield
    except ApiError as error:
        if error.status != 404:
            raise


@contextmanager
def own_plane(directory: Path, stand_in: Sequence[str] = ()) -> Iterator[ControlPlane]:
    """A control plane with our definitions and the stand-in (with these flags), for trials alone."""
    with ControlPlane.start(directory / "plane") as plane:
        install_crds(plane.kubeconfig)
        start_simulator(plane, stand_in)
        yield plane


@asynccontextmanager
async def stage(
    plane: ControlPlane,
    directory: Path,
    *,
    say: Callable[[object], None] = lambda _: None,
    recordings: Path | None = None,
    account: Path | None = None,
) -> AsyncIterator[Stage]:
    """Trials on this control plane; the auditor's events of each go into `recordings`, if given."""
    async with Api(load_cluster(plane.kubeconfig)) as api:
        yield Stage(plane, api, directory, say, recordings, account)


@dataclass
class Scene:
    """One trial's namespace. `warm` is what its pools want in all."""

    stage: Stage
    namespace: str
    crowd: Crowd
    auditor: Auditor
    lease: str
    warm: dict[str, int] = field(default_factory=dict)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)  # one person at a time changes a pool

    # ---- the product

    @contextmanager
    def controller(self, *, lease: str = "", duration: str = LEASE) -> Iterator[Controller]:
        """One more controller, on this trial's Lease or another one; it is not waited for."""
        settings = {"lease_duration": duration, "brake_delay": "1s", "resync_interval": "5s"}
        with running_controller(
            self.stage.account or self.stage.kubeconfig,
            self.stage.directory,
            lease=lease or self.lease,
            wait=False,
            **settings,
        ) as found:
            yield found

    async def ready(self, controller: Controller, seconds: float = 60.0) -> None:
        """Wait until it leads and has read the cluster."""
        await asyncio.to_thread(controller.wait_until_says, '"event": "ready"', seconds)

    async def make_pool(
        self, name: str, warm: int, *, at_once: int = 50, most: int = 250, boot: str = BOOT
    ) -> None:
        limits = {
            "maxReplicas": most,
            "maxConcurrentCreations": at_once,
            "maxConcurrentDeletions": at_once,
        }
        template = vm_template(boot=boot)
        manifest = pool_manifest(name, template=template, warm={"replicas": warm}, limits=limits)
        await self.stage.api.post(f"{self._bullpen}/{POOLS}", manifest)
        self.warm[name] = warm

    async def scale(self, name: str, warm: int) -> None:
        async with self._writing:
            path = f"{self._bullpen}/{POOLS}/{name}"
            await self.stage.api.merge_patch(path, {"spec": {"warm": {"replicas": warm}}})
            self.warm[name] = warm

    async def replace_pool(self, name: str) -> None:
        """Delete the pool, wait until it is gone, and make one of the same name and size."""
        path = f"{self._bullpen}/{POOLS}/{name}"
        pool = orjson.loads(await self.stage.api.get(path))
        await self.stage.api.delete(f"{path}?propagationPolicy=Background")
        deadline = time.monotonic() + _REST
        while await self._is_there(path):
            if time.monotonic() > deadline:
                raise TrialError(f"pool {name} was deleted and stayed")
            await asyncio.sleep(_LOOK)
        async with self._writing:
            spec = {**pool["spec"], "warm": {"replicas": self.warm[name]}}
            made = {"apiVersion": API_VERSION, "kind": pool["kind"], "metadata": {"name": name}, "spec": spec}
            await self.stage.api.post(f"{self._bullpen}/{POOLS}", made)

    async def _is_there(self, path: str) -> bool:
        try:
            await self.stage.api.get(path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    # ---- what is there

    @property
    def _bullpen(self) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}"

    async def claims(self) -> list[Json]:
        return await self._listed(f"{self._bullpen}/{CLAIMS}")

    async def vms(self) -> list[Json]:
        return await self._listed(VMS.format(self.namespace))

    async def dump(self, path: Path) -> None:
        """Write down what is there, for somebody who looks for a reason."""
        pools = await self._listed(f"{self._bullpen}/{POOLS}")
        there = {"pools": pools, "claims": await self.claims(), "vms": await self.vms()}
        await asyncio.to_thread(path.write_bytes, orjson.dumps(there, option=orjson.OPT_INDENT_2))

    async def _listed(self, path: str) -> list[Json]:
        listing = await self.stage.api.list(path)
        return [orjson.loads(bytes(item)) for item in listing.items]

    async def at_rest(self, seconds: float = _REST, *, gaps: bool = False) -> None:
        """Wait until the books balance and will for a while, the pools say so, and the auditor is content.

        `gaps`: whether the auditor may have missed something, because the API server itself was away.

        Raises:
            TrialError: something is left over, or an invariant was broken; the text says what.
        """
        await self.balanced(seconds)
        found = await self.auditor.settled(30)
        if broken := [each for each in found if not (gaps and each.rule is Rule.GAP)]:
            raise TrialError("the auditor says: " + "; ".join(map(str, broken[:8])))
        if left := await self._unrest(QUIET):
            raise TrialError(f"at rest, and then not any more: {'; '.join(left[:8])}")

    async def balanced(self, seconds: float = _REST, soon: float = _SOON) -> list[str]:
        """Wait until the books balance, as they will `soon`, and the pools say so; what was waited for last.

        Raises:
            TrialError: they don't; the text says what is left over.
        """
        deadline, last = time.monotonic() + seconds, []
        while left := await self._unrest(soon):
            last = left
            if time.monotonic() > deadline:
                raise TrialError(f"not at rest after {seconds:g} s: {'; '.join(left[:8])}")
            await asyncio.sleep(_LOOK)
        return last

    async def _unrest(self, soon: float) -> list[str]:
        try:
            claims, vms = await self.claims(), await self.vms()
            pools = await self._listed(f"{self._bullpen}/{POOLS}")
        except ApiError as error:
            return [str(error)]
        found = complaints(claims, vms, sum(self.warm.values())) + running_out(claims, time.time(), soon)
        for pool in pools:
            name = pool["metadata"]["name"]
            ready = pool.get("status", {}).get("warm", {}).get("ready")
            if ready != self.warm[name]:
                found.append(f"pool {name} says that {ready} of {self.warm[name]} VMs are warm")
            found += [f"pool {name} rolls out still: {why}" for why in _rolling(pool)]
        return found


def _rolling(pool: Json) -> Iterator[str]:
    """Why its roll-out is not over, if it is not: only then does it come to rest."""
    strategy = pool["spec"].get("updateStrategy", {}).get("type", "Replenish")
    for each in pool.get("status", {}).get("conditions", ()):
        if each["type"] == "RolledOut" and each["status"] != "True" and strategy != "Replenish":
            yield f"{each['reason']}: {each['message']}"


# ---- a controller, from outside


@dataclass(frozen=True)
class Idling:
    """What a controller does while nothing happens: writes and reads a second, share of one CPU."""

    requests: float
    cpu: float
    steps: str = ""

    @property
    def spins(self) -> bool:
        return self.requests > 1.0 or self.cpu > 0.2


async def idling(controller: Controller, seconds: float = QUIET) -> Idling:
    """Watch a controller at rest. Its lease, its watches and its resync don't count."""
    process = psutil.Process(controller.process.pid)
    before, cpu, began = await requests(controller), process.cpu_times(), time.monotonic()
    await asyncio.sleep(seconds)
    after, used, took = await requests(controller), process.cpu_times(), time.monotonic() - began
    sent = {step: number - before.get(step, 0.0) for step, number in after.items()}
    extra = {step: number for step, number in sent.items() if number and not step.startswith(_IDLE_STEPS)}
    busy = used.user + used.system - cpu.user - cpu.system
    steps = ", ".join(f"{number:g} {step}" for step, number in extra.items())
    return Idling(round(sum(extra.values()) / took, 2), round(busy / took, 4), steps)


async def requests(controller: Controller) -> dict[str, float]:
    """How many requests it has sent so far, by step."""
    text = await asyncio.to_thread(scrape, controller.listen)
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("bullpen_api_requests_total{"):
            labels, number = line.rsplit(" ", 1)
            step = labels.split('step="', 1)[1].split('"', 1)[0]
            found[step] = found.get(step, 0.0) + float(number)
    return found


def scrape(listen: str) -> str:
    """Its metrics."""
    with urllib.request.urlopen(f"http://{listen}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def resident(controller: Controller) -> float:
    """MiB of memory that it holds."""
    return float(psutil.Process(controller.process.pid).memory_info().rss) / 2**20


def errors_in(controller: Controller) -> list[str]:
    """The errors in its log."""
    lines = (line for line in controller.said.splitlines() if line.startswith("{"))
    return [line for line in lines if msgspec.json.decode(line).get("level") in {"error", "critical"}]
