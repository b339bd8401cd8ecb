"""The raw floor: a claim's six writes by one bare client, with nobody between.

Create the claim, hand the VM over, publish it in the status, delete the claim, delete the VM, create another:
one after the other, with the product's guards and contents. It watches nothing and waits for nothing.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable
from time import perf_counter

from benchmarks.bare import Bare, uid_of
from benchmarks.objects import CLAIMS, VMS, Machine, Shape, claim, delete_options
from benchmarks.workload import Served
from simulator.api import JSON_PATCH


class Floor:
    """Serves claims from a stock of VMs, oldest first, and puts a new VM in for each one that it takes."""

    def __init__(self, api: Bare, shape: Shape, stock: Iterable[Machine]) -> None:
        self._api = api
        self._shape = shape
        self._stock = deque(stock)
        self._claims = CLAIMS.format(shape.namespace)
        self._vms = VMS.format(shape.namespace)
        self._prefix = secrets.token_hex(2)
        self._made = 0
        self._held: list[tuple[str, Machine]] = []

    async def serve(self) -> Served:
        """All six writes; usable after the first three."""
        sent = perf_counter()
        name, vm = await self._hand_over()
        ready = perf_counter()
        await self._release(name, vm)
        await self._refill()
        return Served(sent, ready, perf_counter())

    async def serve_and_hold(self) -> Served:
        """The four writes of a burst: the hand-over and its refill. `release_all` does the rest."""
        sent = perf_counter()
        self._held.append(await self._hand_over())
        ready = perf_counter()
        await self._refill()
        return Served(sent, ready, perf_counter())

    async def release_all(self) -> None:
        held, self._held = self._held, []
        for name, vm in held:
            await self._release(name, vm)

    async def _hand_over(self) -> tuple[str, Machine]:
        vm = self._stock.popleft()
        name = self._name("f")
        uid = uid_of(await self._api.send("POST", self._claims, claim(self._shape.pool, name)))
        write_1 = self._shape.hand_over(vm, name, uid)
        await self._api.send("PATCH", f"{self._vms}/{vm.name}", write_1, JSON_PATCH)
        write_2 = self._shape.publish(vm, uid)
        await self._api.send("PATCH", f"{self._claims}/{name}/status", write_2, JSON_PATCH)
        return name, vm

    async def _release(self, name: str, vm: Machine) -> None:
        await self._api.remove(f"{self._claims}/{name}")
        await self._api.remove(f"{self._vms}/{vm.name}", delete_options(vm.uid))

    async def _refill(self) -> None:
        name = self._name(self._shape.pool)
        made = await self._api.send("POST", self._vms, self._shape.vm(name))
        self._stock.append(Machine(name, uid_of(made)))

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._prefix}{self._made:05}"
