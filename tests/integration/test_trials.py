"""The trials of `tests/trials`, small: bursts, order, deaths. At full size: `make trials`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from e2e.controlplane.plane import ControlPlane
from tests.trials.absences import outages
from tests.trials.bursts import bursts, line
from tests.trials.chaos import chaos
from tests.trials.deaths import deaths
from tests.trials.rollout import rollouts
from tests.trials.stage import Stage, own_plane, stage

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trials")


@pytest.fixture(scope="module")
def plane(directory: Path) -> Iterator[ControlPlane]:
    """One for the trials alone: the session's controller would serve their claims, too."""
    with own_plane(directory) as found:
        yield found


@pytest.fixture
async def where(plane: ControlPlane, directory: Path) -> AsyncIterator[Stage]:
    async with stage(plane, directory, recordings=directory) as found:
        yield found


async def test_of_two_hundred_claims_at_once_on_fifty_vms_nobody_is_overtaken_by_a_second(
    where: Stage,
) -> None:
    [burst] = await bursts(where, times=1)
    assert burst.claims == 200


async def test_claims_a_moment_apart_are_served_in_the_order_in_which_they_came(where: Stage) -> None:
    assert (await line(where, claims=12, apart=0.5)).claims == 12


async def test_a_controller_killed_in_a_burst_loses_no_claim_and_leaks_no_vm(where: Stage) -> None:
    found = await deaths(where, rounds=3, claims=40, warm=20, seed=3, twice=0.34)
    assert sum(each.bound for each in found.rounds) > 0


async def test_a_controller_outlives_its_api_server(where: Stage) -> None:
    [outage] = await outages(where, rounds=1, claims=30, warm=15)
    assert outage.claims == 30


async def test_roll_outs_keep_the_floor_also_when_the_controller_is_killed_amid_one(where: Stage) -> None:
    at_rest, under_load, killed = await rollouts(where, warm=8, surge=2, rate=1.0)
    assert at_rest.replaced >= 8
    assert under_load.claims > 0
    assert killed.lowest >= killed.floor == 7


async def test_chaos_leaves_nothing_behind(where: Stage) -> None:
    assert (await chaos(where, seconds=8)).bound > 0
