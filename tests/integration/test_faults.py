"""A selection of the faults: the most telling ones. All of them: `make faults`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import orjson
import pytest

from e2e.controlplane.plane import ControlPlane
from simulator.api import ApiError
from tests.faults.addresses import Asked
from tests.faults.answers import refusal
from tests.faults.company import Company
from tests.faults.kinds import Fault, Kind
from tests.faults.runs import Report, Run
from tests.trials.stage import Stage, own_plane, stage

pytestmark = pytest.mark.cluster

LANES = 4
WRITES = ("hand-over/vm", "hand-over/claim")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def plane(directory: Path) -> Iterator[ControlPlane]:
    """One for the faults alone: the session's controller would serve their claims, too."""
    with own_plane(directory) as found:
        yield found


@pytest.fixture
async def where(plane: ControlPlane, directory: Path) -> AsyncIterator[Stage]:
    async with stage(plane, directory, recordings=directory) as found:
        yield found


async def _tried(where: Stage, *runs: Run) -> list[Report]:
    """Try these; each has to fire, and afterwards all has to be well."""
    reports = await Company(where, min(LANES, len(runs))).perform(runs)
    assert [f"{each.run}: {each.failure}" for each in reports if each.failure] == []
    assert [str(each.run) for each in reports if not each.all_fired] == []
    assert len(reports) == len(runs)
    return reports


def _each(scenario: str, addresses: tuple[str, ...], *kinds: Kind) -> list[Run]:
    return [Run(scenario, (Fault(address, 1, kind),)) for address in addresses for kind in kinds]


async def test_a_controller_killed_around_either_write_of_a_hand_over_harms_nobody(where: Stage) -> None:
    kills = _each("bind", WRITES, Kind.KILL_BEFORE, Kind.KILL_AFTER, Kind.KILL_LATE)
    reports = await _tried(where, *kills)
    assert all(each.restarts >= 1 for each in reports)  # more, where the machine stood still for a lease


async def test_a_lost_reply_or_a_late_write_of_a_hand_over_gives_no_second_vm(where: Stage) -> None:
    unknown = (Kind.CUT_BEFORE, Kind.CUT_AFTER, Kind.LATE, Kind.LATE_END)
    await _tried(where, *_each("bind", WRITES, *unknown))


async def test_a_refused_hand_over_is_decided_anew(where: Stage) -> None:
    refused = (Kind.CONFLICT, Kind.TEST_FAILED, Kind.TOO_MANY, Kind.NO_WEBHOOK, Kind.UNAUTHORIZED)
    await _tried(where, *_each("bind", WRITES, *refused))


async def test_a_death_between_the_writes_and_another_in_the_repair_leave_no_vm_behind(where: Stage) -> None:
    repair = ("repair/read-vm", "repair/read-claim", "repair/publish")
    await _tried(where, *_each("dead-between", repair, Kind.KILL_BEFORE, Kind.CUT_BEFORE))


async def test_objects_that_vanish_while_a_watch_is_expired_are_missed(where: Stage) -> None:
    watches = ("event/virtualmachines", "event/virtualmachineinstances", "event/virtualmachineclaims")
    await _tried(where, *_each("bind", watches, Kind.VANISH))


async def test_a_death_around_the_mark_of_a_removal_leaves_no_vm_half_removed(where: Stage) -> None:
    await _tried(where, *_each("scale-down", ("drain/mark",), Kind.KILL_BEFORE, Kind.KILL_AFTER))


async def test_a_pools_status_is_right_again_after_a_lost_reply_or_a_lie(where: Stage) -> None:
    await _tried(where, *_each("bind", ("pool/status",), Kind.CUT_AFTER, Kind.LATE_END, Kind.TEST_FAILED))


async def test_the_proxys_words_for_a_failed_test_are_the_api_servers(where: Stage) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    await where.api.post(path, {"metadata": {"name": "words"}})
    wrong = [{"op": "test", "path": "/metadata/uid", "value": "another"}]
    with pytest.raises(ApiError) as refused:
        await where.api.json_patch(f"{path}/words", wrong)
    ours = orjson.loads(refusal(Kind.TEST_FAILED, Asked("PATCH", f"{path}/words")).body)
    theirs = refused.value
    assert (theirs.status, theirs.reason, theirs.message) == (ours["code"], ours["reason"], ours["message"])
