"""One leads and another stands by, as the API server recorded it: who wrote what, and when.

On a guarded control plane of their own, whose audit log tells the replicas apart by their User-Agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.cluster import start_simulator
from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from e2e.specs.installation import credentials
from tests.support.audit_log import Entry, after_their_time, holders, read
from tests.support.controller import Controller
from tests.support.kubectl import Kubectl
from tests.trials.absences import frozen
from tests.trials.stage import Scene, Stage, stage
from tests.trials.takeover import AFTER_KILL, AFTER_STOP, takeovers, until_ready

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

# A creation that was on its way when its sender was stopped: surplus, and drained as such.
MAY_LAND = {("create", "virtualmachines")}
KINDS = {"virtualmachinepools", "virtualmachineclaims", "virtualmachines", "virtualmachineinstances", "nodes"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("available")


@pytest.fixture(scope="module")
def plane(directory: Path) -> Iterator[ControlPlane]:
    with ControlPlane.start(directory / "plane", guarded=True) as found:
        install_crds(found.kubeconfig)
        start_simulator(found)
        yield found


@pytest.fixture(scope="module")
def account(plane: ControlPlane, directory: Path) -> Path:
    """The controllers' own: what an account of this kind asks for is recorded."""
    kubectl = Kubectl(plane.kubeconfig)
    kubectl("create", "serviceaccount", "controllers", "-n", "default")
    subject = "--serviceaccount=default:controllers"
    kubectl("create", "clusterrolebinding", "controllers", "--clusterrole=cluster-admin", subject)
    return credentials(kubectl, "default", "controllers", directory)


@pytest.fixture
async def where(plane: ControlPlane, account: Path, directory: Path) -> AsyncIterator[Stage]:
    async with stage(plane, directory, recordings=directory, account=account) as found:
        yield found


@pytest.fixture
def log(plane: ControlPlane) -> Path:
    return plane.directory / "logs" / "audit.jsonl"


def agent(controller: Controller) -> str:
    """What it calls itself at the API server: its machine's name and its process id."""
    [identity] = {part.partition('"')[0] for part in controller.said.split('"identity": "')[1:]}
    return f"bullpen/{identity}"


async def test_a_standby_reads_and_writes_nothing_and_leads_on_what_it_read_after_it_had_the_lease(
    where: Stage, log: Path
) -> None:
    async with where.scene("standby") as scene:
        with ExitStack() as living:
            leader = living.enter_context(scene.controller())
            await scene.ready(leader)
            standby = living.enter_context(scene.controller())
            await until_ready(standby)
            await _work(scene, "before")
            assert await asyncio.to_thread(leader.stop) == 0
            await scene.ready(standby)
            await scene.crowd.create("after", "pool")
            await scene.crowd.served(["after"])
            await scene.at_rest()
            await scene.crowd.delete_all()
        entries = read(log)
        lease = scene.lease
    new, old = agent(standby), agent(leader)
    ours = [each for each in entries if each.agent == new]
    taken = next(each for each in ours if each.about_the_lease and each.writes)
    before = [each for each in ours if each.received < taken.received]
    assert {each.resource for each in before if each.verb == "list"} >= KINDS - {"virtualmachinepools"}
    assert [each for each in before if each.writes] == []
    assert [each for each in entries if each.writes and each.agent.startswith("kopf")] == []
    lists, writes = _since(taken, ours)
    assert {each.resource for each in lists if each.answered < writes[0].received} >= KINDS
    assert [each for each in entries if each.agent == old and each.writes], "the other one worked"
    assert after_their_time(entries, lease) == []


def _since(taken: Entry, ours: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The lists that began, and the writes but for the lease's, since the lease was taken."""
    since = [each for each in ours if each.received > taken.answered and not each.about_the_lease]
    return [each for each in since if each.verb == "list"], [each for each in since if each.writes]


async def _work(scene: Scene, name: str) -> None:
    """Something to do: a pool fills, claims come and go."""
    await scene.make_pool("pool", 6)
    await scene.at_rest()
    wanted = [f"{name}-{number}" for number in range(10)]
    await scene.crowd.burst(wanted, "pool")
    await scene.crowd.served(wanted)
    await scene.crowd.delete_all()
    await scene.at_rest()


async def test_a_claim_waits_two_seconds_at_most_for_the_next_after_a_stop_and_twenty_after_a_kill(
    where: Stage,
) -> None:
    found = await takeovers(where, kills=1, stops=3)
    print(*found, sep="\n")
    # On a machine that does ten things at once any one of them may be late.
    assert min(each.bound for each in found if each.how == "stopped") <= AFTER_STOP
    assert max(each.bound for each in found if each.how == "killed") <= AFTER_KILL
    assert max(each.standby_mib for each in found) < 1.5 * max(each.leader_mib for each in found)


async def test_a_leader_that_was_frozen_past_its_lease_lands_nothing_but_creations_when_it_wakes(
    where: Stage, log: Path
) -> None:
    assert len(await frozen(where, rounds=2, claims=40, warm=20, seed=7)) == 2
    entries = read(log)
    [lease] = {each.name for each in entries if each.about_the_lease and "-frozen-" in each.name}
    leaders = holders(entries, lease)
    assert len(leaders) == len(set(leaders)) == 3, "nobody takes the lease back when it wakes"
    late = after_their_time(entries, lease)
    print(f"landed late: {late}")
    assert {(each.verb, each.resource) for each in late} <= MAY_LAND
