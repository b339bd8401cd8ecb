import math
from typing import Any

import pytest

from benchmarks.handover import overload
from benchmarks.measure import Reading
from benchmarks.rows import PRODUCT, costs, lag, latencies, stream
from benchmarks.workload import Load, Served

SENT = {
    "hand-over/vm": 10,
    "hand-over/claim": 10,
    "release/delete": 10,
    "pool/create": 9,
    "claim/queue": 5,
    "pool/status": 3,
    "pool/dry-run": 1,
    "repair/read-vm": 7,
    "lease": 4,
    "list": 4,
    "watch": 4,
    "get": 2,
}


def load(*waits: float, **fields: Any) -> Load:
    return Load(0.0, 10.0, [Served(1.0, 1.0 + wait, 2.0 + wait, added=1.0) for wait in waits], **fields)


def test_latencies_are_in_milliseconds() -> None:
    found = latencies([0.010, 0.020, 0.030])
    assert found == {
        "p50_ms": pytest.approx(20.0),
        "p90_ms": pytest.approx(30.0),
        "p99_ms": pytest.approx(30.0),
    }


def test_latencies_of_nobody_are_not_numbers() -> None:
    assert all(math.isnan(value) for value in latencies([]).values())


def test_a_loop_that_never_was_late_has_no_lag() -> None:
    assert lag([0.0, 0.0]) == {"lag_p99_ms": 0.0, "lag_max_ms": 0.0}


def test_cpu_is_told_for_each_claim_and_process_but_the_idle_scheduler() -> None:
    found = costs(Reading({"apiserver": 0.1, "etcd": 0.02, "scheduler": 1.0}), 10)
    assert found["cpu_apiserver_ms"] == pytest.approx(10.0)
    assert found["cpu_etcd_ms"] == pytest.approx(2.0)
    assert "cpu_scheduler_ms" not in found


def test_hot_writes_are_the_two_of_the_hand_over() -> None:
    assert costs(Reading({}, {}, SENT), 10)["hot_writes"] == 2.0


def test_all_writes_are_those_that_claims_cause_and_no_reads() -> None:
    found = costs(Reading({}, {}, SENT), 10)
    assert found["writes"] == 4.4
    assert found["status_writes"] == 0.5
    assert found["clock_writes"] == 0.4
    assert found["refilled"] == 0.9


def test_what_the_api_server_counted_stands_beside_what_we_counted() -> None:
    served = {
        "PATCH virtualmachines": 10,
        "PATCH virtualmachineclaims/status": 15,
        "POST virtualmachines": 9,
        "POST virtualmachineinstances": 9,  # the stand-in's
        "DELETE virtualmachines": 20,  # ours, and the garbage collector's
    }
    found = costs(Reading({}, served, SENT), 10)
    assert found["server_writes"] == found["counted_writes"] == 3.4


def test_the_floor_has_no_writes_of_a_controller() -> None:
    assert "writes" not in costs(Reading({}, {"PATCH virtualmachines": 4}), 2)


def test_costs_of_nobody_divide_by_nothing() -> None:
    assert costs(Reading({"etcd": 1.0}), 0)["cpu_etcd_ms"] == 1000.0


def test_a_row_shows_failures_once_each_and_counts_them_all() -> None:
    row = stream("closed-1", PRODUCT, load(0.1, failures=["no", "no", "never"]), Reading({}), [])
    assert row.figures["failed"] == 3
    assert row.notes == ["never", "no"]


def test_a_row_holds_the_rate_and_the_latencies() -> None:
    row = stream("closed-1", PRODUCT, load(0.1, 0.3), Reading({}), [0.001])
    assert row.figures["claims"] == 2
    assert row.figures["claims_per_second"] == pytest.approx(0.2)
    assert row.figures["p50_ms"] == pytest.approx(100.0)
    assert row.figures["lag_max_ms"] == pytest.approx(1.0)


def test_an_overload_is_told_by_its_rates_and_by_who_is_left() -> None:
    figures = overload(load(1.0, 12.0, offered=3))
    assert figures["offered_per_second"] == 0.3
    assert figures["served_per_second"] == 0.1  # the second was served after the end
    assert figures["unserved"] == 1
    assert figures["drained_s"] == 3.0


def test_an_overload_in_which_nobody_was_served_drains_nothing() -> None:
    figures = overload(load(offered=2))
    assert figures["unserved"] == 2
    assert figures["drained_s"] == 0.0
