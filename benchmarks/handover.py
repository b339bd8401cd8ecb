"""`python -m benchmarks handover`: the product beside the raw floor, block by block in one run.

In each block the floor is measured while no controller runs, and then the product, on the same pool of the
same control plane, with the same stand-in at work beside both.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks import rows
from benchmarks.floor import Floor
from benchmarks.measure import Heartbeat, Reading, overtaken
from benchmarks.objects import Shape
from benchmarks.product import Product, Together
from benchmarks.rig import LATE, NAMESPACE, Rig
from benchmarks.rows import FLOOR, PRODUCT, Row
from benchmarks.workload import Load, Served, burst, closed, open_loop, poisson

POOL = "warm"
_SEED = 20
_SEEN = 0.05  # s in which the controller has seen a change of its pool
_SLACK = 1.0  # s by which nobody may be overtaken


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; times in seconds."""

    warm: int = 300
    workers: tuple[int, ...] = (1, 16, 64)
    warm_up: float = 2.0
    closed: float = 6.0
    stream: float = 60.0  # of each Poisson stream and of the overload
    shares: tuple[float, ...] = (0.25, 0.6)  # of the floor's rate at the middle number of workers
    burst: int = 300
    refill: int = 100
    refill_cycles: int = 3


QUICK = Sizes(
    warm=40, workers=(2, 16), warm_up=0.2, closed=0.8, stream=1.5, burst=40, refill=15, refill_cycles=1
)


class HandOver:
    """One run. `rows` fills up as it goes."""

    def __init__(self, rig: Rig, sizes: Sizes) -> None:
        self.rig = rig
        self.sizes = sizes
        self.rows: list[Row] = []
        self._shape: Shape | None = None

    async def run(self) -> list[Row]:
        await self._fill()
        await self._closed()
        await self._poisson()
        await self._bursts()
        await self._drift()
        return self.rows

    def rate(self, name: str, side: str) -> float:
        """Claims a second of a row that was measured before."""
        return next(
            row.figures["claims_per_second"] for row in self.rows if (row.name, row.side) == (name, side)
        )

    @property
    def _middle(self) -> int:
        return self.sizes.workers[len(self.sizes.workers) // 2]

    # ---- blocks

    async def _fill(self) -> None:
        self.rig.log(f"filling the pool with {self.sizes.warm} VMs")
        await self.rig.start_controller()
        await self.rig.make_pool(POOL, warm=self.sizes.warm, most=5_000)
        await self.rig.full(POOL, self.sizes.warm)
        self._shape = await self.rig.shape(POOL)
        await self.rig.stop_controller()

    async def _closed(self) -> None:
        async def one(side: str, serve: Callable[[], Awaitable[Served]]) -> None:
            for workers in self.sizes.workers:
                await self._stream(
                    f"closed-{workers}",
                    side,
                    lambda workers=workers: closed(  # type: ignore[misc] # mypy can't see the default
                        workers, serve, warm_up=self.sizes.warm_up, seconds=self.sizes.closed
                    ),
                )

        await one(FLOOR, (await self._floor()).serve)
        async with self._product() as product:
            await one(PRODUCT, product.serve)

    async def _poisson(self) -> None:
        rate = self.rate(f"closed-{self._middle}", FLOOR)

        async def one(side: str, serve: Callable[[], Awaitable[Served]]) -> None:
            for share in self.sizes.shares:
                arrivals = poisson(share * rate, self.sizes.stream, _SEED)
                await self._stream(
                    f"poisson-{share:g}",
                    side,
                    lambda arrivals=arrivals: open_loop(arrivals, serve),  # type: ignore[misc] # as above
                )

        await one(FLOOR, (await self._floor()).serve)
        async with self._product() as product:
            await one(PRODUCT, product.serve)

    async def _bursts(self) -> None:
        count = self.sizes.burst
        floor = await self._floor()
        self.rig.log(f"burst of {count}: floor")
        async with Heartbeat() as heart:
            load = await burst(count, floor.serve_and_hold, at_once=max(self.sizes.workers))
        self._add_burst(FLOOR, load, load.ended, heart.lags)
        await floor.release_all()
        async with self._product() as product:
            self.rig.log(f"burst of {count}: product")
            together = Together(count)
            async with Heartbeat() as heart:
                load = await open_loop([0.0] * count, lambda: product.serve(together))
            last = max((each.ready for each in load.served), default=math.nan)
            self._add_burst(PRODUCT, load, last, heart.lags)
            await self.rig.full(POOL, self.sizes.warm)
            await self._refill(product)
            await self._overload(product)

    def _add_burst(self, side: str, load: Load, last: float, lags: list[float]) -> None:
        took = last - load.began
        figures = {
            "claims": len(load.served),
            "failed": len(load.failures),
            "last_ms": took * rows.MS,
            "claims_per_second": len(load.served) / took,
            **rows.latencies(each.ready - each.sent for each in load.served),
            **rows.lag(lags),
        }
        self.rows.append(Row("burst", side, figures, sorted(set(load.failures))[:3]))

    async def _refill(self, product: Product) -> None:
        """So many claims while nothing is refilled, and as many while what they took is."""
        rate = self.sizes.shares[0] * self.rate(f"closed-{self._middle}", FLOOR)
        waits: dict[str, list[float]] = {"refill-none": [], "refill": []}
        failed = dict.fromkeys(waits, 0)
        async with Heartbeat() as heart:
            for cycle in range(self.sizes.refill_cycles):
                self.rig.log(f"hand-overs with and without refill, {cycle + 1}")
                arrivals = poisson(rate, self.sizes.refill / rate, _SEED + cycle)
                for name in waits:
                    await self.rig.change_pool(POOL, {"suspend": name == "refill-none"})
                    await asyncio.sleep(_SEEN)
                    load = await open_loop(arrivals, product.serve)
                    waits[name] += load.waits()
                    failed[name] += len(load.failures)
                await self.rig.full(POOL, self.sizes.warm)
        for name, found in waits.items():
            figures = {"claims": len(found), "failed": failed[name], **rows.latencies(found)}
            self.rows.append(Row(name, PRODUCT, figures | rows.lag(heart.lags)))

    async def _overload(self, product: Product) -> None:
        capacity = self.rate(f"closed-{max(self.sizes.workers)}", PRODUCT)
        arrivals = poisson(2 * capacity, self.sizes.stream, _SEED)
        product.bound, product.cold = 3 * self.sizes.stream + 60, 0
        row = await self._stream("overload", PRODUCT, lambda: open_loop(arrivals, product.serve))
        row.figures["cold"] = product.cold

    async def _drift(self) -> None:
        """The floor once more: how far the machine itself has moved since the beginning."""
        floor = await self._floor()
        run = closed(self._middle, floor.serve, warm_up=self.sizes.warm_up / 2, seconds=self.sizes.closed / 2)
        await self._stream("drift", FLOOR, lambda: run)

    # ---- one row

    async def _floor(self) -> Floor:
        if self._shape is None:
            raise RuntimeError("the pool is filled first")
        return Floor(self.rig.api, self._shape, await self.rig.stock(POOL))

    @asynccontextmanager
    async def _product(self) -> AsyncIterator[Product]:
        """With the controller running and the pool full."""
        await self.rig.start_controller()
        await self.rig.full(POOL, self.sizes.warm)
        async with Product(self.rig.api, NAMESPACE, POOL) as product:
            yield product
        await self.rig.stop_controller()

    async def _stream(self, name: str, side: str, run: Callable[[], Awaitable[Load]]) -> Row:
        """Measure one stream and all that it causes, until the pool is full again."""
        self.rig.log(f"{name}: {side}")
        before = await self.rig.read(begins=True)
        async with Heartbeat() as heart:
            load = await run()
        row = await self._settled(name, side, load, before, heart.lags)
        self.rows.append(row)
        return row

    async def _settled(self, name: str, side: str, load: Load, before: Reading, lags: list[float]) -> Row:
        if side == PRODUCT:
            await self.rig.full(POOL, self.sizes.warm)
        else:
            await asyncio.sleep(LATE)
        grown = (await self.rig.read(begins=False)).since(before)
        row = rows.stream(name, side, load, grown, lags)
        if side == PRODUCT:
            row.figures["rss_mib"] = self.rig.rss() / rows.MIB
        if name == "overload":
            row.figures |= overload(load)
        return row


def overload(load: Load) -> dict[str, float]:
    """What an overload shows: the rate it was served at, the order, and whether everybody was."""
    order = overtaken([(each.added, each.ready) for each in load.served], _SLACK)
    last = max((each.ready for each in load.served), default=load.ended)
    return {
        "offered_per_second": load.offered / (load.ended - load.began),
        "served_per_second": load.usable_per_second(),
        "unserved": load.offered - len(load.served),
        "overtaken": order.count,
        "overtaken_worst_s": order.worst,
        "drained_s": max(0.0, last - load.ended),
    }
