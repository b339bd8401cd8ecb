"""What is to be replayed: out of options, files, the pool and its history. Nothing is replayed here."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import typer
from numpy.typing import NDArray

from capacity.history import History, Past
from capacity.sketch import LeadTimes
from cli import options, traces
from cli.pools import Recorded
from cli.trouble import CouldNotLookError
from crds.durations import seconds, text
from crds.pool import Limits, VirtualMachinePool
from crds.ratios import fraction
from crds.warm import ServiceLevel, WarmCapacity

DEFAULT_LEVEL = "99%"
_DRAWN = 1000
"""So many quantiles stand for a distribution that is told by two."""
_P95 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The service level that is asked about."""

    level: float
    wait: float


@dataclass(frozen=True, slots=True)
class Boots:
    """How long VMs take to be ready, the two figures that are told of it (seconds), and where it is from."""

    times: LeadTimes
    p50: float
    p95: float
    where: str = "boots as given"


@dataclass(frozen=True, slots=True)
class Question:
    """Claims, lead times, and what is set: all that a replay needs.

    `arrivals`: epoch seconds, sorted. `today`: the capacity that is set now; None: nothing is known of it.
    """

    of: str
    arrivals: NDArray[np.float64]
    since: float
    until: float
    history: History
    boots: Boots
    wanted: Wanted
    limits: Limits
    deadline: float
    today: WarmCapacity | None
    notes: tuple[str, ...] = ()

    @property
    def past(self) -> Past:
        """The history for the engine, with the lead times that are replayed."""
        return replace(self.history.snapshot(self.until), leads=self.boots.times)


def boot(written: str) -> Boots:
    """Lead times out of `16s,27s`: half within the first, 19 of 20 within the second.

    Between them and beyond they are taken for log-normal, as boot times mostly are.

    Raises:
        BadParameter: it is not two lengths of time, the second no shorter.
    """
    parts = written.split(",")
    if len(parts) != 2:  # noqa: PLR2004 - median and 95th percentile
        raise typer.BadParameter(f"{written!r} is not two lengths of time: write p50,p95 like 16s,27s")
    p50, p95 = (options.duration(part.strip()) for part in parts)
    if not 0 < p50 <= p95 <= traces.MOST_LEAD:
        raise typer.BadParameter(
            f"{written!r}: the first must be more than 0s, and the second at least that and at most a day"
        )
    spread = math.log(p95 / p50) / _P95
    leads = LeadTimes()
    for number in range(_DRAWN):
        leads.add(p50 * math.exp(spread * NormalDist().inv_cdf((number + 0.5) / _DRAWN)))
    return Boots(leads, p50, p95)


def level(written: str) -> float:
    """A service level as the pool's field takes it.

    Raises:
        BadParameter: it is none.
    """
    try:
        ServiceLevel(target=written)
    except ValueError:
        raise typer.BadParameter(
            f"{written!r} is no service level: write a share from 50% to 99.99%, like 99%"
        ) from None
    return fraction(written)


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for beside the pool."""

    level: float | None = None
    wait: float | None = None
    boot: Boots | None = None
    lead_times: Path | None = None
    units: int | None = None


def of_pool(
    name: str, namespace: str, pool: VirtualMachinePool, recorded: Recorded, wanted: Options
) -> Question:
    """The claims that a pool recorded.

    Raises:
        CouldNotLookError: nothing was recorded, or not how long VMs take.
        TraceError, OSError: the file of lead times can't be used.
    """
    history = recorded.history
    if history is None:
        raise CouldNotLookError(recorded.missing)
    arrivals = np.asarray(history.arrivals, dtype=np.float64)
    if not arrivals.size:
        raise CouldNotLookError(
            f"no claims were recorded for pool {name} in the last seven days: there is nothing to replay"
        )
    notes = (history.note,) if history.note else ()
    return _question(
        f"wp/{name} in namespace {namespace}",
        arrivals,
        max(history.since, history.detail_since),
        max(recorded.until or 0.0, float(arrivals[-1])),
        history,
        pool,
        wanted,
        notes,
    )


def of_trace(
    path: Path, wanted: Options, pool: VirtualMachinePool | None = None, recorded: Recorded | None = None
) -> Question:
    """The claims in a file; what is set, and how long VMs take, from a pool if one is named.

    Raises:
        TraceError, OSError: a file can't be used.
        CouldNotLookError: it is not known how long VMs take.
    """
    arrivals = traces.arrivals(path)
    if arrivals[0] == arrivals[-1]:
        raise traces.TraceError(
            f"{path}: all claims came at the same moment, and what stands ready is told by the day: "
            "take the claims of some hours or days"
        )
    since = math.floor(arrivals[0])
    history = History(float(since))
    for at, count in zip(*np.unique(arrivals, return_counts=True), strict=True):
        history.arrive(float(at), int(count))
    if recorded is not None and recorded.history is not None:
        history.leads = recorded.history.leads
    return _question(str(path), arrivals, float(since), float(arrivals[-1]), history, pool, wanted)


def _question(
    of: str,
    arrivals: NDArray[np.float64],
    since: float,
    until: float,
    history: History,
    pool: VirtualMachinePool | None,
    wanted: Options,
    notes: tuple[str, ...] = (),
) -> Question:
    today = pool.spec.warm if pool else None
    if wanted.units is not None:
        today = WarmCapacity(replicas=wanted.units)
    return Question(
        of=of,
        arrivals=arrivals,
        since=since,
        until=until,
        history=history,
        boots=_boots(history, until, pool, wanted),
        wanted=_wanted(wanted, pool.spec.warm.service_level if pool else None),
        limits=pool.spec.limits if pool else Limits(),
        deadline=seconds(pool.spec.readiness.deadline) if pool else math.inf,
        today=today,
        notes=notes,
    )


def _wanted(asked: Options, set_level: ServiceLevel | None) -> Wanted:
    """What was asked for, else what the pool has, else the defaults."""
    usual = set_level or ServiceLevel(target=DEFAULT_LEVEL)
    return Wanted(
        fraction(usual.target) if asked.level is None else asked.level,
        seconds(usual.max_wait) if asked.wait is None else asked.wait,
    )


def _boots(history: History, now: float, pool: VirtualMachinePool | None, wanted: Options) -> Boots:
    """What was said first, then what was measured."""
    if wanted.boot is not None:
        return wanted.boot
    if wanted.lead_times is not None:
        times = LeadTimes()
        for length in traces.lead_times(wanted.lead_times):
            times.add(float(length))
        return _measured(times, f"boots from {wanted.lead_times}")
    times = history.snapshot(now).leads
    if times.count:
        return _measured(times, f"boots as measured ({times.count:,} VMs)")
    seen = pool.status.demand.lead_time_seconds if pool and pool.status and pool.status.demand else None
    if seen is not None and seen.p50 and seen.p95:
        told = boot(f"{text(seen.p50)},{text(max(seen.p50, seen.p95))}")
        return replace(told, where="boots as the pool's status has them")
    raise CouldNotLookError(
        "it is not known how long a VM takes to be ready: say so with --boot p50,p95 (like 16s,27s) "
        "or with --lead-times FILE"
    )


def _measured(times: LeadTimes, where: str) -> Boots:
    return Boots(times, times.quantile(0.5) or 0.0, times.quantile(0.95) or 0.0, where)
