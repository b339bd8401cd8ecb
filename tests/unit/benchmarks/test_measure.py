import asyncio
import gc
import math
import os

import pytest

from benchmarks.measure import (
    Heartbeat,
    Overtaken,
    Reading,
    cpu_seconds,
    overtaken,
    quantile,
    requests_sent,
    resident,
    writes_served,
)
from tests.unit.kube.fake_api import eventually

SERVED = """\
# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="kubevirt.io",resource="virtualmachines",scope="resource",subresource="",verb="PATCH",version="v1"} 3
apiserver_request_total{code="422",component="apiserver",dry_run="",group="kubevirt.io",resource="virtualmachines",scope="resource",subresource="",verb="PATCH",version="v1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="",group="kubevirt.io",resource="virtualmachines",scope="resource",subresource="",verb="POST",version="v1"} 1e+03
apiserver_request_total{code="201",component="apiserver",dry_run="All",group="kubevirt.io",resource="virtualmachines",scope="resource",subresource="",verb="POST",version="v1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="bullpen.dev",resource="virtualmachineclaims",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 5
apiserver_request_total{code="200",component="apiserver",dry_run="",group="bullpen.dev",resource="virtualmachineclaims",scope="cluster",subresource="",verb="WATCH",version="v1alpha1"} 9
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 8
apiserver_request_duration_seconds_count{verb="PATCH"} 4
"""  # noqa: E501 - as the API server writes it

SENT = """\
# TYPE bullpen_api_requests_total counter
bullpen_api_requests_total{code="200",step="hand-over/vm"} 10.0
bullpen_api_requests_total{code="422",step="hand-over/vm"} 2.0
bullpen_api_requests_total{code="201",step="pool/create"} 4.0
bullpen_api_requests_created{code="200",step="hand-over/vm"} 1.7e+09
"""


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 5), (0.9, 9), (0.99, 10), (1.0, 10), (0.01, 1), (0.0, 1)]
)
def test_a_quantile_is_a_value_that_was_measured(share: float, expected: float) -> None:
    assert quantile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == expected


def test_the_quantile_of_one_value_is_that_value() -> None:
    assert quantile([3.5], 0.99) == 3.5


def test_the_quantile_of_nothing_is_not_a_number() -> None:
    assert math.isnan(quantile([], 0.5))


def test_nobody_is_overtaken_when_all_are_served_as_they_came() -> None:
    assert overtaken([(0, 5), (1, 6), (2, 7)], slack=1.0) == Overtaken(0, 0.0)


def test_a_claim_that_a_much_younger_one_went_before_was_overtaken() -> None:
    assert overtaken([(0, 9), (1, 3), (4, 5)], slack=1.0) == Overtaken(1, 4)


def test_being_overtaken_within_the_slack_does_not_count_but_is_told() -> None:
    assert overtaken([(0.0, 2.0), (0.75, 1.0)], slack=1.0) == Overtaken(0, 0.75)


def test_those_served_in_the_same_instant_overtake_nobody() -> None:
    assert overtaken([(5, 7), (0, 7)], slack=1.0) == Overtaken(0, 0.0)


def test_every_one_who_was_overtaken_counts() -> None:
    assert overtaken([(0, 8), (1, 9), (10, 3)], slack=1.0) == Overtaken(2, 10)


def test_the_order_of_nobody_is_kept() -> None:
    assert overtaken([], slack=1.0) == Overtaken(0, 0.0)


def test_writes_to_our_kinds_are_counted_by_verb_and_resource_whatever_their_answer() -> None:
    assert writes_served(SERVED) == {
        "PATCH virtualmachines": 4,
        "POST virtualmachines": 1000,
        "PATCH virtualmachineclaims/status": 5,
    }


def test_requests_are_counted_by_step_whatever_their_answer() -> None:
    assert requests_sent(SENT) == {"hand-over/vm": 12, "pool/create": 4}


def test_what_grew_between_two_readings_is_their_difference() -> None:
    before = Reading({"etcd": 1.0}, {"PATCH x": 2, "POST x": 5}, {"hand-over/vm": 1})
    after = Reading({"etcd": 1.5, "controller": 0.25}, {"PATCH x": 6, "POST x": 5}, {"hand-over/vm": 3})
    grown = after.since(before)
    assert grown == Reading({"etcd": 0.5, "controller": 0.25}, {"PATCH x": 4}, {"hand-over/vm": 2})


def test_the_time_and_memory_of_a_process_are_read() -> None:
    assert cpu_seconds({"me": os.getpid()})["me"] > 0
    assert resident(os.getpid()) > 1_000_000


async def test_the_heartbeat_sees_the_loop_being_held_up() -> None:
    async with Heartbeat(interval=0.001) as heart:
        await eventually(lambda: heart.lags)
        held = asyncio.get_running_loop().time() + 0.03
        while asyncio.get_running_loop().time() < held:
            pass
        count = len(heart.lags)
        await eventually(lambda: len(heart.lags) > count)
    assert max(heart.lags) > 0.02


async def test_nothing_is_collected_while_the_heart_beats() -> None:
    async with Heartbeat():
        assert not gc.isenabled()
    assert gc.isenabled()
