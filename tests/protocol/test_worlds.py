"""Every world, through every interleaving: the promises hold in each state, and everything comes to rest."""

from __future__ import annotations

import pytest

from tests.protocol.explore import Explorer, Report
from tests.protocol.report import trace
from tests.protocol.worlds import WORLDS, World

QUICK = ("hand-over", "lost-alone", "forged")


def _mark(world: World) -> list[pytest.MarkDecorator]:
    return [] if world.name in QUICK else [pytest.mark.thorough]


def _explored(world: World) -> Report:
    report = Explorer(world).run()
    assert report.complete, f"{world.name} is too big: {report.states} states"
    return report


@pytest.mark.parametrize(
    "world", [pytest.param(each, id=each.name, marks=_mark(each)) for each in WORLDS if not each.big]
)
def test_every_promise_holds_and_everything_comes_to_rest_in(world: World) -> None:
    report = _explored(world)
    assert not report.broken, "\n".join(trace(report, found) for found in report.broken)
    assert report.rests
    assert not report.unmet


def test_worlds_have_names_of_their_own_and_say_what_they_are_about() -> None:
    assert len({world.name for world in WORLDS}) == len(WORLDS)
    assert all(world.about for world in WORLDS)
