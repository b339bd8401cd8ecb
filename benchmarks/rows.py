"""Rows of figures: what one measured stream of claims cost and how long it took. Pure.

A figure is a number with its unit in its name; a row belongs to a side, the floor or the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.measure import Reading, quantile
from benchmarks.workload import Load

FLOOR, PRODUCT = "floor", "product"
MS = 1000.0
MIB = 1024.0 * 1024.0

HOT = frozenset({"hand-over/vm", "hand-over/claim"})
_READS = ("list", "watch", "get", "lease")  # the lease is written by the clock, not by a claim
_BY_THE_CLOCK = frozenset({"pool/status", "pool/dry-run", "pool/finalizer"})
# The writes that nobody but us and the bare client makes with the stand-in's minimal profile.
COUNTED = ("PATCH virtualmachines", "PATCH virtualmachineclaims/status", "POST virtualmachines")
_COUNTED_STEPS = (*HOT, "pool/create", "claim/status", "claim/queue", "drain/mark", "repair/publish")


@dataclass(slots=True)
class Row:
    """One measured thing on one side."""

    name: str
    side: str
    figures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def latencies(seconds: Iterable[float]) -> dict[str, float]:
    found = list(seconds)
    return {f"p{round(share * 100)}_ms": quantile(found, share) * MS for share in (0.5, 0.9, 0.99)}


def lag(lags: Sequence[float]) -> dict[str, float]:
    """The load generator's own lateness, which is in every latency beside it."""
    return {"lag_p99_ms": quantile(lags, 0.99) * MS, "lag_max_ms": max(lags, default=0.0) * MS}


def costs(grown: Reading, claims: int) -> dict[str, float]:
    """CPU milliseconds and writes for each claim."""
    each = max(1, claims)
    found = {f"cpu_{name}_ms": used * MS / each for name, used in grown.cpu.items() if name != "scheduler"}
    found["server_writes"] = sum(grown.served.get(kind, 0) for kind in COUNTED) / each
    if grown.sent:
        found |= _own_writes(grown.sent, each)
    return found


def _own_writes(sent: Mapping[str, int], each: int) -> dict[str, float]:
    mine = {step: count for step, count in sent.items() if _is_write(step)}
    by_claim = {step: count for step, count in mine.items() if step not in _BY_THE_CLOCK}
    return {
        "hot_writes": sum(by_claim.get(step, 0) for step in HOT) / each,
        "writes": sum(by_claim.values()) / each,
        "status_writes": sum(by_claim.get(step, 0) for step in ("claim/status", "claim/queue")) / each,
        "counted_writes": sum(by_claim.get(step, 0) for step in _COUNTED_STEPS) / each,
        "clock_writes": (sum(mine.values()) - sum(by_claim.values())) / each,
        "refilled": by_claim.get("pool/create", 0) / each,
    }


def _is_write(step: str) -> bool:
    return step not in _READS and "read" not in step


def stream(name: str, side: str, load: Load, grown: Reading, lags: Sequence[float]) -> Row:
    """A stream of claims. Latencies are of the measured time, costs of all that was served."""
    row = Row(name, side)
    row.figures = {
        "claims": len(load.served),
        "failed": len(load.failures),
        "claims_per_second": load.per_second(),
        **latencies(load.waits()),
        **lag(lags),
        **costs(grown, len(load.served)),
    }
    row.notes = sorted(set(load.failures))[:3]
    return row
