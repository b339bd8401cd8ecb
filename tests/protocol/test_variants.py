"""The tests of the test: each known mistake is found, by a short story that a person can follow."""

from __future__ import annotations

import pytest

from tests.protocol.explore import Explorer, Report
from tests.protocol.variants import VARIANTS, Variant
from tests.protocol.worlds import named

FEW = 16  # steps: more than anybody reads


def _found(variant: Variant) -> Report:
    with variant.applied():
        return Explorer(named(variant.world)).run(stop_at=variant.finds)


@pytest.mark.parametrize("variant", [pytest.param(each, id=each.name) for each in VARIANTS])
def test_it_is_found_that(variant: Variant) -> None:
    report = _found(variant)
    found = [report.ways[what] for what in report.broken if what.startswith(variant.finds)]
    assert found, f"{variant.about}: not found in world {variant.world}"
    assert 2 <= len(found[0]) <= FEW


def test_a_variant_is_over_when_its_exploration_is() -> None:
    variant = next(each for each in VARIANTS if each.name == "no-owner-test")
    _found(variant)
    report = Explorer(named(variant.world)).run()
    assert (report.complete, report.broken) == (True, [])
