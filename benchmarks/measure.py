"""What is measured beside the claims: quantiles, CPU time of processes, requests counted, one's own lag.

Readings are differences between two looks; nothing here runs during a measurement but the heartbeat.
"""

from __future__ import annotations

import asyncio
import gc
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Self

import psutil

_SAMPLE = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE", "APPLY"})
_GROUPS = frozenset({"kubevirt.io", "bullpen.dev"})


def quantile(values: Iterable[float], share: float) -> float:
    """The nearest-rank quantile: the smallest value that `share` of the values don't exceed; NaN of none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Overtaken:
    """How many were overtaken by more than the slack, and by how much (seconds) the worst one was."""

    count: int
    worst: float


def overtaken(waits: Sequence[tuple[float, float]], slack: float) -> Overtaken:
    """Judge the order of (arrived, served): how much younger was a claim that was served earlier?"""
    youngest = -math.inf
    count, worst = 0, 0.0
    for arrived, _ in sorted(waits, key=lambda wait: (wait[1], wait[0])):
        by = youngest - arrived
        count += by > slack
        worst = max(worst, by)
        youngest = max(youngest, arrived)
    return Overtaken(count, worst)


class Heartbeat:
    """How late this process' own event loop is, while it is entered: `lags`, in seconds.

    Meanwhile nothing is garbage-collected: ours is the load generator, and its pauses are nobody's latency.
    """

    def __init__(self, interval: float = 0.01) -> None:
        self._interval = interval
        self._task: asyncio.Task[None] | None = None
        self.lags: list[float] = []

    async def __aenter__(self) -> Self:
        gc.collect()
        gc.disable()
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.enable()
        if self._task is not None:
            self._task.cancel()

    async def _beat(self) -> None:
        while True:
            due = perf_counter() + self._interval
            await asyncio.sleep(self._interval)
            self.lags.append(max(0.0, perf_counter() - due))


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU seconds by process, and requests counted so far by whoever serves or sends them."""

    cpu: Mapping[str, float]
    served: Mapping[str, int] = field(default_factory=dict)  # by the API server: "PATCH virtualmachines"
    sent: Mapping[str, int] = field(default_factory=dict)  # by the controller: its steps

    def since(self, before: Reading) -> Reading:
        return Reading(
            {key: value - before.cpu.get(key, 0.0) for key, value in self.cpu.items()},
            _difference(self.served, before.served),
            _difference(self.sent, before.sent),
        )


def _difference(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    return {key: grown for key, value in after.items() if (grown := value - before.get(key, 0))}


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """User and system time of each process so far."""
    found = {}
    for name, pid in pids.items():
        times = psutil.Process(pid).cpu_times()
        found[name] = times.user + times.system
    return found


def resident(pid: int) -> int:
    """Bytes of memory that the process holds."""
    return int(psutil.Process(pid).memory_info().rss)


def writes_served(exposition: str) -> dict[str, int]:
    """Writes to our kinds and KubeVirt's from an API server's /metrics: "PATCH claims/status" → how many."""
    found: Counter[str] = Counter()
    for labels, value in _samples(exposition, "apiserver_request_total"):
        if labels["verb"] in _WRITES and labels["group"] in _GROUPS and not labels["dry_run"]:
            where = f"{labels['resource']}/{labels['subresource']}".rstrip("/")
            found[f"{labels['verb']} {where}"] += int(value)
    return dict(found)


def requests_sent(exposition: str) -> dict[str, int]:
    """Requests by step from the controller's /metrics."""
    found: Counter[str] = Counter()
    for labels, value in _samples(exposition, "bullpen_api_requests_total"):
        found[labels["step"]] += int(value)
    return dict(found)


def _samples(exposition: str, name: str) -> Iterable[tuple[dict[str, str], float]]:
    for line in exposition.splitlines():
        if line.startswith(name + "{"):
            labels, _, value = line[len(name) :].rpartition("} ")
            yield dict(_SAMPLE.findall(labels)), float(value)
