"""Pools and claims as hypothesis makes them up: everything that the schema lets in."""

from __future__ import annotations

import string
from datetime import UTC, datetime
from typing import TypeVar

from hypothesis import strategies as st

from crds.claim import (
    Address,
    ClaimedVM,
    ClaimMetadata,
    ClaimSpec,
    ClaimStatus,
    Phase,
    PoolRef,
    QueuePlace,
    WhenEmpty,
    WhenEmptyPolicy,
)
from crds.conditions import Condition, Truth
from crds.durations import seconds
from crds.pool import (
    ClaimOrder,
    ClaimsPolicy,
    LifetimePolicy,
    Limits,
    PoolSpec,
    Readiness,
    ReadinessWhen,
    UpdateStrategy,
    UpdateType,
    VMTemplate,
)
from crds.pool_status import Brake, Demand, InstanceCounts, LeadTime, PoolStatus
from crds.warm import (
    Budget,
    LevelMode,
    ScaleDown,
    Schedule,
    ServiceLevel,
    WarmCapacity,
    WarmPolicy,
    WarmStatus,
    Webhook,
)

Thing = TypeVar("Thing")

counts = st.integers(0, 1_000_000)
words = st.text(string.ascii_letters, min_size=1, max_size=20)
sentences = st.text(max_size=60)
times = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
string_maps = st.dictionaries(words, words, max_size=4)


def durations() -> st.SearchStrategy[str]:
    part = st.tuples(st.integers(0, 99_999), st.sampled_from(["h", "m", "s", "ms"]))
    return st.lists(part, min_size=1, max_size=4).map(lambda parts: "".join(f"{n}{u}" for n, u in parts))


def positive_durations() -> st.SearchStrategy[str]:
    return durations().filter(lambda duration: seconds(duration) > 0)


def maybe(strategy: st.SearchStrategy[Thing]) -> st.SearchStrategy[Thing | None]:
    return st.none() | strategy


def several(strategy: st.SearchStrategy[Thing]) -> st.SearchStrategy[tuple[Thing, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


conditions = st.builds(
    Condition,
    type=words,
    status=st.sampled_from(Truth),
    observed_generation=maybe(counts),
    lastTransitionTime=times,
    reason=words,
    message=sentences,
)

_cron_number = st.integers(0, 23).map(str) | st.just("*") | st.sampled_from(["1-7", "*/5", "1,2,5-7/2"])
crons = st.tuples(
    _cron_number,
    _cron_number,
    st.integers(1, 28).map(str) | st.just("*"),
    st.sampled_from(["*", "1", "jan-MAR", "12"]),
    st.sampled_from(["*", "mon-fri", "0", "7", "Sat,sun", "*/2"]),
).map(" ".join)
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"])
levels = st.integers(5_000, 9_999).map(lambda share: f"{share / 100:.10g}%")
schedules = st.builds(
    Schedule,
    name=words.map(str.lower),
    start=crons,
    timeZone=zones,
    duration=positive_durations(),
    replicas=st.integers(1, 10_000),
)
warm_capacities = st.builds(
    WarmCapacity,
    replicas=st.integers(0, 10_000),
    percent=maybe(st.integers(0, 500).map("{}%".format)),
    max=maybe(st.integers(0, 10_000)),
    service_level=maybe(
        st.builds(
            ServiceLevel,
            target=levels,
            max_wait=durations(),
            window=st.sampled_from(["672h", "24h", "90m"]),
            mode=st.sampled_from(LevelMode),
        )
    ),
    schedules=several(schedules),
    webhook=maybe(st.builds(Webhook, url=st.just("https://forecast.example.com/v1"), timeout=st.just("2s"))),
    scale_down=st.builds(ScaleDown, stabilization=st.sampled_from(["0s", "5m", "24h"])),
    budget=maybe(st.builds(Budget, maxIdleHoursPerDay=st.integers(0, 240_000), timeZone=zones)),
)

pool_specs = st.builds(
    PoolSpec,
    template=st.builds(VMTemplate, spec=st.just({"runStrategy": "Always", "template": {"spec": {}}})),
    warm=warm_capacities,
    limits=st.builds(
        Limits, max_replicas=st.integers(0, 10_000), max_concurrent_creations=st.integers(1, 1_000)
    ),
    readiness=st.builds(
        Readiness,
        when=st.sampled_from(ReadinessWhen),
        conditions=several(words),
        min_ready_seconds=st.integers(0, 3_600),
        deadline=positive_durations(),
        unready_grace=durations(),
    ),
    claims=st.builds(
        ClaimsPolicy,
        order=st.sampled_from(ClaimOrder),
        lifetime=maybe(
            st.builds(LifetimePolicy, default=maybe(positive_durations()), max=maybe(positive_durations()))
        ),
    ),
    update_strategy=st.builds(
        UpdateStrategy,
        type=st.sampled_from(UpdateType),
        max_surge=st.integers(0, 1_000),
        warm_floor=st.integers(0, 100).map("{}%".format),
    ),
    max_warm_age=maybe(positive_durations()),
    suspend=st.booleans(),
)

pool_statuses = st.builds(
    PoolStatus,
    observed_generation=maybe(counts),
    replicas=counts,
    total=counts,
    instances=maybe(st.builds(InstanceCounts, warm=counts, claimed=counts)),
    warm=maybe(
        st.builds(
            WarmStatus,
            ready=counts,
            target=counts,
            decided_by=maybe(words),
            policies=several(
                st.builds(
                    WarmPolicy,
                    name=words,
                    wants=counts,
                    because=sentences,
                    applied=st.sampled_from([None, False]),
                )
            ),
        )
    ),
    current_revision=maybe(words),
    updated_replicas=counts,
    demand=maybe(
        st.builds(
            Demand,
            pending=counts,
            oldest_pending_since=maybe(times),
            lead_time_seconds=maybe(st.builds(LeadTime, p50=maybe(st.floats(0, 1e9)), p95=st.none())),
            claims_per_hour=maybe(st.floats(0, 1e9)),
            hit_ratio=maybe(st.just("99.2%")),
        )
    ),
    brake=maybe(
        st.builds(Brake, open_since=maybe(times), failures=counts, next_probe_time=maybe(times)),
    ),
    selector=maybe(words),
    conditions=several(conditions),
)

claim_specs = st.builds(
    ClaimSpec,
    poolRef=st.builds(PoolRef, name=words),
    when_empty=st.builds(WhenEmpty, policy=st.sampled_from(WhenEmptyPolicy), after=maybe(durations())),
    timeout=maybe(positive_durations()),
    lifetime=maybe(positive_durations()),
    metadata=maybe(st.builds(ClaimMetadata, labels=maybe(string_maps), annotations=maybe(string_maps))),
    ttl_seconds_after_finished=maybe(counts),
)

claim_statuses = st.builds(
    ClaimStatus,
    phase=maybe(st.sampled_from(Phase)),
    pool=maybe(words),
    pool_uid=maybe(words),
    release_policy=maybe(st.just("Delete")),
    virtual_machines=several(
        st.builds(
            ClaimedVM,
            name=words,
            uid=words,
            vmi_uid=maybe(words),
            node=maybe(words),
            addresses=several(st.builds(Address, type=words, address=words)),
            warm=st.booleans(),
        )
    ),
    bound_at=maybe(times),
    expires_at=maybe(times),
    waited=maybe(durations()),
    queue=maybe(st.builds(QueuePlace, position=maybe(counts), estimated_ready_time=maybe(times))),
    conditions=several(conditions),
)
