"""The metrics, by Prometheus' conventions: base units, bounded labels. Definitions only."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_WAITS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)

CLAIM_WAIT = Histogram(
    "bullpen_claim_wait_seconds",
    "From the claim's arrival to its hand-over.",
    ("pool", "outcome"),
    buckets=_WAITS,
)
CLAIMS = Counter("bullpen_claims_total", "Claims by how they came out: warm, waited, failed.", ("outcome",))
HAND_OVERS_REFUSED = Counter(
    "bullpen_hand_overs_refused_total", "Hand-overs that ended without a bind.", ("outcome",)
)
REPAIRS = Counter("bullpen_repairs_total", "VMs that repair looked at, by what became of them.", ("outcome",))
WARM = Gauge("bullpen_warm", "VMs of a pool by state.", ("namespace", "pool", "state"))
WARM_TARGET = Gauge(
    "bullpen_warm_target",
    "What each policy asks for, and under the policy `target` what is aimed at.",
    ("namespace", "pool", "policy"),
)
HIT_RATIO = Gauge(
    "bullpen_hit_ratio",
    "Share of the claims of seven days that got a VM in time.",
    ("namespace", "pool"),
)
IDLE_SECONDS = Counter(
    "bullpen_idle_vm_seconds_total",
    "Seconds that VMs stood ready (or nearly) and unclaimed, together.",
    ("namespace", "pool"),
)
CURVE_SECONDS = Histogram("bullpen_curve_seconds", "How long a pool's curve of demand took to draw.")
DRAINED = Counter(
    "bullpen_vms_drained_total",
    "Unclaimed VMs that were removed, by why: failed, stale, too-old, surplus, draining, pool-deleted.",
    ("pool", "reason"),
)
LEAD_TIME = Histogram(
    "bullpen_lead_time_seconds",
    "From a VM's creation to warm.",
    ("pool",),
    buckets=(
        0.5,
        1,
        2.5,
        5,
        10,
        15,
        20,
        30,
        45,
        60,
        120,
        300,
        900,
    ),
)
FOREIGN = Gauge("bullpen_foreign_labelled_vms", "VMs with our labels that are not ours.", ("namespace",))
ILLEGAL = Counter(
    "bullpen_illegal_transitions_total", "Moves that a state machine does not have, refused.", ("machine",)
)
REQUESTS = Counter("bullpen_api_requests_total", "Requests to the API server.", ("step", "code"))
REQUEST_SECONDS = Histogram("bullpen_api_request_seconds", "How long they took.", ("step",))
TASKS = Gauge("bullpen_tasks", "Tasks of the event loop that have not ended.")
LOOP_LAG = Gauge("bullpen_loop_lag_seconds", "How late the event loop last was.")
HOST_CLOCK_AHEAD = Gauge(
    "bullpen_host_clock_ahead_seconds", "How far this host's clock is ahead of the API server's."
)
LEADING = Gauge("bullpen_leading", "1 while this process holds the lease.")


class _Held(Collector):
    """Entries by table, all from one count for each scrape: it goes over every namespace."""

    def __init__(self) -> None:
        self.count: Callable[[], Mapping[str, int]] = dict

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "bullpen_held_entries",
            "Entries in memory by table: without objects of ours there are none.",
            labels=("table",),
        )
        for table, number in self.count().items():
            family.add_metric((table,), number)
        yield family


HELD = _Held()
REGISTRY.register(HELD)
