"""Whole lives in virtual time: whatever people, lost answers and restarts do, every VM ends as it should."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.api import ApiError
from simulator.kubevirt.behaviour import Defaults, Profile
from simulator.kubevirt.distributions import Fixed, Uniform
from simulator.kubevirt.objects import VM_FINALIZER
from tests.unit.simulator.small_cluster import (
    VMIS,
    VMS,
    Json,
    RunningStandIn,
    SmallCluster,
    in_virtual_time,
    vm,
)

VM = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines/vm"
LONG = 400.0  # virtual seconds in which everything comes to rest


def ready(obj: Json) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def shown(cluster: SmallCluster, plural: str) -> list[str]:
    """What the objects of a kind have shown, one word for each stretch."""
    words: list[str] = []
    for kind, _, obj in cluster.history:
        status = obj.get("status") or {}
        word = status.get("printableStatus") or status.get("phase")
        if kind == plural and word and words[-1:] != [word]:
            words.append(word)
    return words


async def rest(cluster: SmallCluster) -> None:
    """Let it come to rest, the garbage collector at work."""
    for _ in range(40):
        await asyncio.sleep(LONG / 40)
        cluster.collect()


def lived(*, profile: Profile = Profile.OBSERVED, seconds: float = LONG, **behaviour: str) -> SmallCluster:
    """One VM's life for so many virtual seconds."""
    cluster = SmallCluster(Random(1))

    async def live() -> None:
        stand_in = RunningStandIn(cluster, Defaults(profile=profile, boot=Fixed(5.0)))
        stand_in.start()
        cluster.create(VMS, vm(**behaviour))
        await asyncio.sleep(seconds)
        await stand_in.stop()

    in_virtual_time(live())
    return cluster


def test_a_life_alone_has_nine_changes_of_the_vm_and_seven_of_the_vmi() -> None:
    cluster = lived()
    assert sum(1 for plural, kind, _ in cluster.history if (plural, kind) == (VMS, "MODIFIED")) == 9
    assert sum(1 for plural, kind, _ in cluster.history if (plural, kind) == (VMIS, "MODIFIED")) == 7


def test_an_idle_day_costs_no_write() -> None:
    assert len(lived(seconds=86_400).history) == len(lived(seconds=60).history)


def test_in_the_minimal_profile_a_life_is_one_post() -> None:
    cluster = lived(profile=Profile.MINIMAL)
    assert [(plural, kind) for plural, kind, _ in cluster.history] == [(VMS, "ADDED"), (VMIS, "ADDED")]


def test_a_crash_loop_backs_off_further_each_time() -> None:
    cluster = lived(fail="crash-loop", seconds=3_600)
    starts = sum(1 for plural, kind, _ in cluster.history if (plural, kind) == (VMIS, "ADDED"))
    # After 10, 40, 90, 160, 250 s and then every 300 s; each boot takes five.
    assert starts == 5 + 1 + (3_600 - 550 - 6 * 5) // 305
    assert shown(cluster, VMS)[:3] == ["Stopped", "Starting", "CrashLoopBackOff"]


def test_a_crash_loop_ends_when_its_cause_is_taken_away() -> None:
    cluster = SmallCluster(Random(1))

    async def live() -> None:
        stand_in = RunningStandIn(cluster, Defaults())
        stand_in.start()
        cluster.create(VMS, vm(fail="crash-loop"))
        await asyncio.sleep(30)
        cluster.merge(VM, {"metadata": {"annotations": {"simulator.bullpen.dev/fail": "none"}}})
        await rest(cluster)
        await stand_in.stop()

    in_virtual_time(live())
    final = cluster.find(VMS)
    assert final is not None
    assert final["status"]["printableStatus"] == "Running"
    assert "startFailure" not in final["status"]


@pytest.mark.parametrize("profile", list(Profile))
def test_two_crashes_by_one_command_do_not_happen(profile: Profile) -> None:
    cluster = lived(profile=profile, crash_after="2s")
    assert sum(1 for plural, kind, _ in cluster.history if (plural, kind) == (VMIS, "ADDED")) == 2


def test_a_lagging_status_shows_stopped_long_after_the_vmi_is_ready() -> None:
    cluster = lived(status_lag="10s")
    assert shown(cluster, VMS) == ["Stopped", "Running"]
    order = [plural for plural, _, obj in cluster.history if ready(obj)]
    assert order == [VMIS, VMS]


ACTIONS: dict[str, Callable[[SmallCluster], object]] = {
    "label": lambda c: c.merge(VM, {"metadata": {"labels": {"extra": str(len(c.history))}}}),
    "halt": lambda c: c.merge(VM, {"spec": {"runStrategy": "Halted"}}),
    "start": lambda c: c.merge(VM, {"spec": {"runStrategy": "Always"}}),
    "delete": lambda c: c.remove(VMS, "vm"),
    "orphan": lambda c: c.remove(VMS, "vm", orphan=True),
    "delete VMI": lambda c: c.remove(VMIS, "vm"),
    "create": lambda c: c.create(VMS, vm()),
    "crash": lambda c: c.merge(
        VM, {"metadata": {"annotations": {"simulator.bullpen.dev/crash-after": f"{len(c.history)}ms"}}}
    ),
    "take finalizers off": lambda c: c.merge(VM, {"metadata": {"finalizers": []}}),
    "collect": lambda c: c.collect(),
}
STEPS = st.lists(st.tuples(st.sampled_from([*ACTIONS, "restart"]), st.floats(0, 3)), min_size=1, max_size=12)


async def happen(cluster: SmallCluster, profile: Profile, steps: list[tuple[str, float]]) -> None:
    """A VM, what befalls it, and then peace."""
    stand_in = RunningStandIn(cluster, Defaults(profile=profile, boot=Uniform(0.0, 2.0), back_off=1.0))
    stand_in.start()
    cluster.create(VMS, vm())
    for action, pause in steps:
        await asyncio.sleep(pause)
        if action == "restart":
            await stand_in.stop()
            stand_in.start()
            continue
        try:
            ACTIONS[action](cluster)
        except ApiError:
            continue  # there is nothing that it could be done to just now
    cluster.loss = 0.0
    await rest(cluster)
    await stand_in.stop()


def check_rest(cluster: SmallCluster, profile: Profile) -> None:
    end, vmi = cluster.find(VMS), cluster.find(VMIS)
    if end is None:
        assert vmi is None or not vmi["metadata"].get("ownerReferences")
        return
    assert "deletionTimestamp" not in end["metadata"]
    assert end["metadata"]["labels"]["by"] == "person"
    if end["spec"]["runStrategy"] == "Halted":
        assert vmi is None
    else:
        assert vmi is not None
        assert ready(vmi)
        assert vmi["metadata"]["ownerReferences"][0]["uid"] == end["metadata"]["uid"]
    if profile is Profile.OBSERVED:
        assert end["status"]["printableStatus"] == ("Running" if vmi else "Stopped")
        assert ready(end) is (vmi is not None)
        assert VM_FINALIZER in end["metadata"]["finalizers"]


def check_history(cluster: SmallCluster, profile: Profile) -> None:
    """At each moment: no VMI for a VM that was not there and held, no label of a person undone."""
    held: dict[str, bool] = {}
    labels: dict[str, str] = {}
    for plural, kind, obj in cluster.history:
        uid = obj["metadata"]["uid"]
        if plural == VMS:
            held[uid] = VM_FINALIZER in obj["metadata"].get("finalizers", []) and kind != "DELETED"
            extra = obj["metadata"]["labels"].get("extra", "")
            assert len(extra) >= len(labels.get(uid, "")), "a label went"
            labels[uid] = extra
        elif kind == "ADDED" and profile is Profile.OBSERVED:
            owner = obj["metadata"]["ownerReferences"][0]["uid"]
            assert owner in held


@pytest.mark.parametrize("profile", list(Profile))
@settings(max_examples=150)
@given(steps=STEPS, seed=st.integers(0, 10_000), loss=st.sampled_from([0.0, 0.0, 0.2]), lag=st.floats(0, 0.3))
def test_whatever_befalls_a_vm_it_ends_as_its_spec_says(
    profile: Profile, steps: list[tuple[str, float]], seed: int, loss: float, lag: float
) -> None:
    cluster = SmallCluster(Random(seed), loss=loss, lag=lag)
    in_virtual_time(happen(cluster, profile, steps))
    check_rest(cluster, profile)
    check_history(cluster, profile)
