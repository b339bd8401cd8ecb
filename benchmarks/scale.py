"""`python -m benchmarks scale`: what many VMs cost: memory, time to the first hand-over, CPU a claim.

The VMs are made by a bare client after the pattern of one that the controller made, while no controller runs.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

from benchmarks import rows
from benchmarks.measure import Heartbeat
from benchmarks.objects import VMIS, VMS, Shape
from benchmarks.product import Product, Together
from benchmarks.rig import NAMESPACE, Rig
from benchmarks.rows import PRODUCT, Row
from benchmarks.workload import Served, burst, open_loop, poisson

AT_ONCE = 32
_SEED = 4
_FIRST_BOUND = 120.0  # s from the controller's start to its first hand-over
_BOOT_BOUND = 300.0  # s for the stand-in to boot what was made


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many VMs, over how many pools; `rate` claims a second for `seconds`."""

    counts: tuple[int, ...] = (1_000, 10_000)
    pools: int = 1
    rate: float = 20.0
    seconds: float = 20.0
    idle: float = 3.0
    held: float = 0.1  # claims that are held in the end, for each VM


QUICK = Sizes(counts=(40, 120), seconds=2.0, idle=3.0)


class Scale:
    """One run, growing on one control plane."""

    def __init__(self, rig: Rig, sizes: Sizes) -> None:
        self.rig = rig
        self.sizes = sizes
        self.pools = [f"warm-{number}" for number in range(sizes.pools)]

    async def run(self) -> list[Row]:
        shapes = await self._first_vms()
        return [await self._measure(count, shapes) for count in self.sizes.counts]

    async def _first_vms(self) -> list[Shape]:
        """One VM of each pool, made by the controller."""
        await self.rig.start_controller()
        for pool in self.pools:
            await self.rig.make_pool(pool, warm=1, most=10_000)
        shapes = []
        for pool in self.pools:
            await self.rig.full(pool, 1)
            shapes.append(await self.rig.shape(pool))
        await self.rig.stop_controller()
        return shapes

    async def _measure(self, count: int, shapes: list[Shape]) -> Row:
        row = Row(f"vms-{count}", PRODUCT, {"vms": count})
        await self._grow(count, shapes)
        row.figures["list_s"] = await self._list()
        async with Product(self.rig.api, NAMESPACE, self.pools[0], bound=_FIRST_BOUND) as product:
            row.figures["first_s"] = await self._start(product)
            for pool in self.pools:
                await self.rig.full(pool, count // len(self.pools))
            row.figures["rss_start_mib"] = self.rig.rss() / rows.MIB
            row.figures |= await self._claims(product, count // len(self.pools))
            row.figures |= await self._hold(product, round(count * self.sizes.held))
        await self.rig.stop_controller()
        return row

    async def _grow(self, count: int, shapes: list[Shape]) -> None:
        each = count // len(self.pools)
        self.rig.log(f"making VMs until there are {count}")
        vms = VMS.format(NAMESPACE)
        bodies = self._bodies(each - len(await self.rig.stock(self.pools[0])), shapes)

        async def make() -> Served:
            began = perf_counter()
            await self.rig.api.send("POST", vms, next(bodies))
            return Served(began, began, began)

        for pool in self.pools:
            await self.rig.change_pool(pool, {"warm": {"replicas": each}})
        missing = count - await self.rig.count(vms)
        load = await burst(missing, make, at_once=AT_ONCE)
        if load.failures:
            raise RuntimeError(f"{len(load.failures)} VMs were not made: {load.failures[0]}")

        async def booted() -> bool:
            return await self.rig.count(VMIS.format(NAMESPACE)) >= count

        await self.rig.until(booted, f"{count} VMs have booted", _BOOT_BOUND)

    def _bodies(self, missing: int, shapes: list[Shape]) -> Iterator[bytes]:
        prefix = secrets.token_hex(2)
        for number in range(missing):
            for shape in shapes:
                yield shape.vm(f"{shape.pool}-{prefix}{number:05}")

    async def _list(self) -> float:
        """Seconds in which a bare client reads the same objects, in pages, without looking into them."""
        began = perf_counter()
        for path in (VMS, VMIS):
            async for _ in self.rig.api.pages(path.format(NAMESPACE)):
                pass
        return perf_counter() - began

    async def _start(self, product: Product) -> float:
        """Seconds from the start of the controller's process to the hand-over of a claim that waits."""
        waiting = asyncio.create_task(product.serve())
        await asyncio.sleep(0.5)
        self.rig.log("starting the controller")
        began = perf_counter()
        self.rig.spawn_controller()
        return (await waiting).ready - began

    async def _claims(self, product: Product, warm: int) -> dict[str, float]:
        """The CPU of claims at a modest rate, less what the idle controller uses in the same time."""
        self.rig.log(f"{self.sizes.rate:g} claims a second")
        idle = await self._idle()
        arrivals = poisson(self.sizes.rate, self.sizes.seconds, _SEED)
        before, began = await self.rig.read(begins=True), perf_counter()
        async with Heartbeat() as heart:
            load = await open_loop(arrivals, product.serve)
        for pool in self.pools:
            await self.rig.full(pool, warm)
        grown, took = (await self.rig.read(begins=False)).since(before), perf_counter() - began
        served = max(1, len(load.served))
        found = rows.stream("", PRODUCT, load, grown, heart.lags).figures
        found["cpu_controller_ms"] = max(0.0, grown.cpu["controller"] - idle * took) * rows.MS / served
        return found | {"idle_cores": idle}

    async def _idle(self) -> float:
        before, began = await self.rig.read(begins=True), perf_counter()
        await asyncio.sleep(self.sizes.idle)
        grown = (await self.rig.read(begins=False)).since(before)
        return grown.cpu["controller"] / (perf_counter() - began)

    async def _hold(self, product: Product, count: int) -> dict[str, float]:
        """Memory with that many claims bound at once."""
        self.rig.log(f"{count} claims held")
        together = Together(count)
        holding = asyncio.create_task(open_loop([0.0] * count, lambda: product.serve(together)))
        await together.wait()
        found = {"held": count, "rss_mib": self.rig.rss() / rows.MIB}
        load = await holding
        return found | {"failed": len(load.failures)}
