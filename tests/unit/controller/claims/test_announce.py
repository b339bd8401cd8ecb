"""Why a claim waits, in words, and what is known of boots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.claims.announce import situation
from controller.claims.queue import Queue
from controller.claims.records import BOOTS_KEPT, BootTimes, PoolRecord
from controller.machines.inventory import Inventory
from crds.conditions import ClaimReason
from tests.support.builders import make_pool


def _record(*, deleting: bool = False, trouble: str = "", denied: str = "") -> PoolRecord:
    pool = make_pool(deleting=deleting)
    return PoolRecord(pool, Inventory("pool-uid"), Queue(), trouble=trouble, denied=denied)


@pytest.mark.parametrize(
    ("record", "reason", "says"),
    [
        pytest.param(None, ClaimReason.POOL_NOT_FOUND, "the claim binds when it does", id="no pool"),
        pytest.param(
            _record(deleting=True), ClaimReason.POOL_DELETING, "being deleted", id="a pool that goes"
        ),
        pytest.param(_record(trouble="no MAC"), ClaimReason.POOL_INVALID, "no MAC", id="a bad template"),
        pytest.param(_record(denied="policy"), ClaimReason.QUEUED, "policy", id="a refusal"),
        pytest.param(_record(), ClaimReason.QUEUED, "is in line", id="nothing warm"),
        pytest.param(
            _record(deleting=True, trouble="x", denied="y"),
            ClaimReason.POOL_DELETING,
            "being deleted",
            id="everything at once",
        ),
    ],
)
def test_a_claim_waits_because_of(record: PoolRecord | None, reason: ClaimReason, says: str) -> None:
    found = situation("pool", record)
    assert found.reason is reason
    assert says in found.message
    assert "pool pool" in found.message


def test_a_pool_that_can_not_be_read_is_not_called_missing() -> None:
    found = situation("pool", None, "spec.claims.order: write Oldest or Newest")
    assert found.reason is ClaimReason.POOL_INVALID
    assert found.message == "pool pool can't be read: spec.claims.order: write Oldest or Newest"
    assert situation("pool", _record(), "newer than what stands").reason is ClaimReason.QUEUED


def test_nothing_is_known_before_the_first_boot() -> None:
    assert BootTimes().median is None
    assert BootTimes().quantile(0.95) is None


@given(boots=st.lists(st.floats(0, 1e4), min_size=1, max_size=120), share=st.floats(0, 1))
def test_a_quantile_is_one_of_the_last_boots_and_as_many_were_faster(
    boots: list[float], share: float
) -> None:
    times = BootTimes()
    for boot in boots:
        times.add(boot)
    last = boots[-BOOTS_KEPT:]
    found = times.quantile(share)
    assert found in last
    assert sum(boot <= found for boot in last) >= share * len(last)


@pytest.mark.parametrize(
    ("lifetime", "found"),
    [
        (None, (None, None)),
        ({}, (None, None)),
        ({"default": "1h"}, (3600.0, None)),
        ({"max": "2h"}, (None, 7200.0)),
        ({"default": "1h", "max": "2h"}, (3600.0, 7200.0)),
    ],
)
def test_a_pools_lifetimes_are_in_seconds(
    lifetime: dict[str, str] | None, found: tuple[float | None, float | None]
) -> None:
    pool = make_pool(claims={} if lifetime is None else {"lifetime": lifetime})
    assert PoolRecord(pool, Inventory("pool-uid"), Queue()).lifetimes() == found
