"""Release: Recycle as designed, explored ahead of the product: see `recycle`. No product code is tried."""

from __future__ import annotations

import pytest

from tests.protocol.recycle import Rules, explore

MISTAKES = {
    "the guest is reset by its name": (Rules(by_name=True), "I3: the guest of claim 2"),
    "the guest is recorded by the write that marks": (Rules(record_at_mark=True), "I5: the VM"),
    "whose the VM is and what was recorded is not tested": (Rules(offer_untested=True), "I5: the VM"),
    "no other guest is looked for before the offer": (Rules(unproven=True), "I5: the VM"),
    "the claim's finalizer goes by the cache": (Rules(finalizer_by_cache=True), "F: claim 1"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("crashes", "faults", "restarts"),
    [
        pytest.param(0, 1, 0, id="a write of unknown outcome"),
        pytest.param(1, 0, 1, id="a crash, and a guest that dies by itself"),
    ],
)
def test_the_reset_breaks_nothing_and_comes_to_rest_with(crashes: int, faults: int, restarts: int) -> None:
    found = explore(Rules(), crashes=crashes, faults=faults, restarts=restarts)
    assert found.ways == {}
    assert found.rests


@pytest.mark.thorough
@pytest.mark.parametrize(("rules", "finds"), MISTAKES.values(), ids=MISTAKES)
def test_it_is_found_that(rules: Rules, finds: str) -> None:
    found = explore(rules, faults=1, restarts=1, stop_at=finds)
    stories = [way for what, way in found.ways.items() if what.startswith(finds)]
    assert stories
    assert 2 <= len(stories[0]) <= 24
