"""What the engine costs with a week of a hundred thousand claims: seconds of CPU, bytes, memory."""

from __future__ import annotations

import gc
import tracemalloc
from time import process_time, thread_time_ns

import numpy as np

from benchmarks.capacity.outcomes import ENGINE
from benchmarks.capacity.pilot import UNBOUNDED, Controls, Memory
from benchmarks.capacity.report import Table
from benchmarks.capacity.traces import DAY, Book, Demand
from benchmarks.rows import Row
from capacity.archive import decode, encode

NAME = "a week of 100,000 claims"
_CLAIMS = 100_000
_DECISIONS = 2_000
_BUILDS = 5


def measure(book: Book) -> Row:
    """Office hours of which the last week has 100,000 claims, after three weeks before it."""
    demand = book.draw(book.shortened(book.only("office-hours"), (28, 0)), 0)
    thinned = _thinned(demand)
    memory = Memory(demand.start)
    tracemalloc.start()
    memory.arrive(thinned)
    memory.booted(demand.leads[: thinned.size : 10])
    memory.history.roll(demand.end)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    memory.refresh(demand.end)
    gc.collect()
    both, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    builds = []
    for _ in range(_BUILDS):
        began = process_time()
        memory.refresh(demand.end)
        builds.append(process_time() - began)
    written = encode(memory.history)
    assert decode(written).snapshot(demand.end).arrivals.size == len(memory.history.arrivals)
    decisions = _decisions(memory, demand.end)
    return Row(
        NAME,
        ENGINE,
        {
            "claims": len(memory.history.arrivals),
            "curve_s": float(np.median(builds)),
            "decide_ms": float(np.median(decisions)),
            "decide_p99_ms": float(np.quantile(decisions, 0.99)),
            "history_kb": len(written) / 1_000,
            "history_mib": held / 2**20,
            "curve_mib": (both - held) / 2**20,
            "peak_mib": peak / 2**20,
        },
    )


def _thinned(demand: Demand) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The demand with 100,000 claims in its last week."""
    last = int((demand.arrivals >= demand.end - 7 * DAY).sum())
    keep = np.random.default_rng(1).random(demand.arrivals.size) < _CLAIMS / last
    return demand.arrivals[keep]


def _decisions(memory: Memory, end: float) -> list[float]:
    """Milliseconds of CPU of decisions spread over the week to come."""
    controls = Controls.of(0.99, UNBOUNDED)
    found = []
    for step in range(_DECISIONS):
        at = end + step * (7 * DAY / _DECISIONS)
        began = thread_time_ns()
        controls.decide(at, memory)
        found.append((thread_time_ns() - began) / 1e6)
    return found


def table(row: Row) -> Table:
    drawn = Table("Cost: a week of 100,000 claims", ("", "measured"))
    figures = row.figures
    lines = [
        ("claims kept one by one", f"{figures['claims']:,.0f}"),
        ("a decision (CPU), median", f"{figures['decide_ms']:.2f} ms"),
        ("a decision (CPU), p99", f"{figures['decide_p99_ms']:.2f} ms"),
        ("a curve (CPU)", f"{figures['curve_s']:.2f} s"),
        ("the history, written down", f"{figures['history_kb']:.0f} kB"),
        ("the history in memory", f"{figures['history_mib']:.1f} MiB"),
        ("a curve in memory", f"{figures['curve_mib']:.1f} MiB"),
        ("while a curve is built, at most", f"{figures['peak_mib']:.1f} MiB"),
    ]
    drawn.lines.extend(lines)
    return drawn
