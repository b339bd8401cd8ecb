"""Whatever happens in a roll-out, in virtual time: the floor holds, bounds hold, and it comes to an end."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.pools.plan import Why
from statemachines.instance import State
from tests.support.virtual_pool import VirtualPool

Json = dict[str, Any]
FILLED = 120.0  # s after which a pool of any size below is full


def update(kind: str = "RollingUpdate", surge: int = 1, share: int = 100) -> Json:
    return {"type": kind, "maxSurge": max(surge, 1) if share == 100 else surge, "warmFloor": f"{share}%"}


updates = st.builds(update, st.just("RollingUpdate"), st.integers(0, 4), st.sampled_from([0, 50, 80, 100]))
seeds = st.integers(0, 2**16)
arrivals = st.lists(st.floats(0, 300), max_size=25)


def pool_of(warm: int, strategy: Json, seed: int, **more: Any) -> VirtualPool:
    """A pool that is full."""
    limits = {"maxReplicas": 60, "maxConcurrentCreations": 4, "maxConcurrentDeletions": 4}
    stumbles = more.pop("stumbles", 0.0)
    spec = {"warm": warm, "update": strategy, "limits": limits, "readiness": {"unreadyGrace": "10s"}, **more}
    pool = VirtualPool(spec, seed, stumbles=stumbles)
    pool.run(FILLED)
    pool.lowest, pool.most = 10**9, 0
    return pool


def _check_floor(warm: int, strategy: Json, seed: int) -> None:
    pool = pool_of(warm, strategy, seed)
    pool.change(2)
    pool.run(1500)
    floor = -(-int(strategy["warmFloor"].removesuffix("%")) * warm // 100)
    assert pool.complaints == []
    assert pool.lowest >= floor, "fewer were ready than the floor though nobody claimed any"
    assert pool.most <= warm + strategy["maxSurge"]
    if strategy["maxSurge"] or floor < warm:
        assert (pool.of_other_templates(), pool.ready, len(list(pool.stock()))) == (0, warm, warm)
    stale = [name for _, name, why in pool.removed if why is Why.STALE]
    assert len(stale) <= warm, "one was replaced twice"
    assert pool.made <= 2 * warm + strategy["maxSurge"]


@settings(max_examples=25)
@given(warm=st.integers(1, 8), strategy=updates, seed=seeds)
def test_without_claims_never_fewer_are_ready_than_the_floor(warm: int, strategy: Json, seed: int) -> None:
    _check_floor(warm, strategy, seed)


@pytest.mark.thorough
@settings(max_examples=1500)
@given(warm=st.integers(1, 12), strategy=updates, seed=seeds)
def test_without_claims_never_fewer_are_ready_than_the_floor_in_many_worlds(
    warm: int, strategy: Json, seed: int
) -> None:
    _check_floor(warm, strategy, seed)


def _check_storm(
    warm: int,
    strategy: Json,
    seed: int,
    claims: list[float],
    changes: list[tuple[float, bool]],
    stumbles: float,
) -> None:
    """Claims, guests that stumble, templates that change again and again, some of them broken."""
    pool = pool_of(warm, strategy, seed, stumbles=stumbles)
    for at in claims:
        pool.at(FILLED + at, pool.claim)
    for generation, (at, broken) in enumerate(sorted(changes), start=2):
        pool.at(FILLED + at, partial(pool.change, generation, broken=broken))
    pool.run(600)
    pool.stumbles = 0.0
    pool.change(99, update={**strategy, "maxSurge": 1})
    pool.run(2500)
    assert pool.complaints == []
    assert len(pool.record.queue) == 0, "a claim was not served"
    assert (pool.of_other_templates(), pool.ready, len(list(pool.stock()))) == (0, warm, warm)
    assert pool.inventory.count(State.FAILED) == 0


storms = {
    "warm": st.integers(0, 8),
    "strategy": updates,
    "seed": seeds,
    "claims": arrivals,
    "changes": st.lists(st.tuples(st.floats(0, 300), st.booleans()), max_size=4),
    "stumbles": st.sampled_from([0.0, 0.3]),
}


@settings(max_examples=15)
@given(**storms)
def test_in_a_storm_no_removal_of_ours_passes_the_floor_and_all_comes_to_rest(**storm: Any) -> None:
    _check_storm(**storm)


@pytest.mark.thorough
@settings(max_examples=1000)
@given(**storms)
def test_in_many_storms_no_removal_of_ours_passes_the_floor_and_all_comes_to_rest(**storm: Any) -> None:
    _check_storm(**storm)


@settings(max_examples=15)
@given(warm=st.integers(1, 6), strategy=updates, seed=seeds)
def test_a_broken_template_takes_no_more_than_the_floor_allows_and_its_correction_ends_it(
    warm: int, strategy: Json, seed: int
) -> None:
    pool = pool_of(warm, strategy, seed)
    before = {each.name for each in pool.stock()}
    pool.change(2, broken=True)
    pool.run(900)
    kept = before & {each.name for each in pool.stock()}
    share = int(strategy["warmFloor"].removesuffix("%"))
    assert len(kept) >= -(-share * warm // 100)
    assert pool.loop._boots.brake.open or strategy["maxSurge"] == 0
    pool.change(3, back_to=1)
    pool.run(900)
    assert kept <= {each.name for each in pool.stock()}, (
        "one was replaced though its template is current again"
    )
    assert (pool.ready, pool.complaints) == (warm, [])


@settings(max_examples=10)
@given(
    warm=st.integers(1, 8),
    surge=st.integers(1, 3),
    seed=seeds,
    kind=st.sampled_from(["Replenish", "Recreate"]),
)
def test_vms_that_were_made_together_are_not_replaced_together(
    warm: int, surge: int, seed: int, kind: str
) -> None:
    pool = pool_of(warm, update(kind, surge), seed, max_warm_age="600s")
    first = {each.name for each in pool.stock()}
    pool.run(1100)
    assert pool.complaints == []
    assert pool.lowest == warm, "fewer were ready although nobody claimed any"
    assert not first & {each.name for each in pool.stock()}
    assert {why for _, _, why in pool.removed} <= {Why.TOO_OLD}
    assert pool.most <= warm + surge, "more than the surge were there besides those on their way out"


def test_recreate_has_no_two_templates_at_once() -> None:
    pool = pool_of(5, update("Recreate"), 7)
    pool.change(2)
    pool.run(5)
    assert {why for _, _, why in pool.removed} == {Why.STALE}
    assert pool.ready == 0
    pool.run(60)
    assert (pool.of_other_templates(), pool.ready) == (0, 5)
