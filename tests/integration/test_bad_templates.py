"""Templates that are refused or never run: a reason each, no storm, and nobody else is hurt."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from crds.names import API_VERSION
from tests.support.auditing import AuditorThread
from tests.support.controller import Controller
from tests.support.site import (
    CLAIMS,
    POOLS,
    Json,
    Site,
    condition,
    guest,
    holds,
    metric,
    named_vm,
    until,
    vm_template,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]

DISK = {"devices": {"disks": [{"name": "root", "disk": {}}]}, "memory": {"guest": "64Mi"}}


def with_interface(**interface: str) -> Json:
    domain = {"devices": {"interfaces": [{"name": "default", **interface}]}, "memory": {"guest": "64Mi"}}
    return {"domain": domain, "networks": [{"name": "default", "pod": {}}]}


def with_firmware(**firmware: str) -> Json:
    return guest(domain={"devices": {}, "memory": {"guest": "64Mi"}, "firmware": firmware})


def with_volume(**source: Json) -> Json:
    return {"domain": DISK, "volumes": [{"name": "root", **source}]}


# ---- refused


def tries(controller: Controller) -> tuple[float, float]:
    """Asked and made so far."""
    asked = metric(controller, "bullpen_api_requests_total", step="pool/dry-run")
    return asked, metric(controller, "bullpen_api_requests_total", step="pool/create")


def others(site: Site) -> list[str]:
    """Pools of other tests, which go with their namespaces: until then the controller asks for them, too."""
    items = site.api.get(f"/apis/{API_VERSION}/{POOLS}").body["items"]
    return [each["metadata"]["namespace"] for each in items]


def test_what_kubevirt_refuses_reaches_the_condition_in_its_words_without_a_storm(
    site: Site, controller: Controller
) -> None:
    until("no pool of another test", lambda: others(site), lambda found: not found, 60)
    asked, made = tries(controller)
    site.pool(warm=3, template=vm_template(guest_spec={"domain": DISK}))
    said = site.until_condition(POOLS, "pool", "Ready", "False", "TemplateInvalid")
    assert "every disk needs a volume of the same name in volumes" in said["message"]
    site.claim()
    why = site.until_condition(CLAIMS, "claim", "Bound", "False", "PoolInvalid")
    assert "every disk needs a volume" in why["message"]
    holds("asked once", lambda: tries(controller), lambda now: now == (asked + 1, made), 2)
    assert not site.vms()
    site.patch(
        POOLS, "pool", {"spec": {"template": {"spec": {"template": {"spec": with_volume(emptyDisk={})}}}}}
    )
    site.until_condition(POOLS, "pool", "Ready", "True", "Serving")
    site.bound()


NOT_TO_BE_SHARED = {
    "mac": (with_interface(macAddress="02:00:00:00:00:01"), "has a fixed macAddress"),
    "uuid": (with_firmware(uuid="5d307ca9-b3ef"), "firmware.uuid is fixed"),
    "serial": (with_firmware(serial="e4686d2c"), "firmware.serial is fixed"),
    "disk": (
        with_volume(persistentVolumeClaim={"claimName": "shared"}),
        "is a writable persistentVolumeClaim",
    ),
}


def test_what_two_vms_can_not_share_is_refused_before_any_vm(site: Site) -> None:
    for name, (spec, _) in NOT_TO_BE_SHARED.items():
        site.pool(name, warm=2, template=vm_template(guest_spec=spec))
    for name, (_, sentence) in NOT_TO_BE_SHARED.items():
        said = site.until_condition(POOLS, name, "Ready", "False", "TemplateInvalid")
        assert sentence in said["message"]
        assert not site.vms(name)


def test_a_read_only_volume_is_shared(site: Site) -> None:
    volume = {"claimName": "shared", "readOnly": True}
    site.pool(warm=2, template=vm_template(guest_spec=with_volume(persistentVolumeClaim=volume)))
    site.until_warm(2)


def test_a_template_over_256_kb_makes_no_vm(site: Site) -> None:
    data = {"cloudInitNoCloud": {"userData": "x" * 300_000}}
    site.pool(warm=1, template=vm_template(guest_spec=with_volume(**data)))
    said = site.until_condition(POOLS, "pool", "Ready", "False", "TemplateTooLarge")
    assert said["message"] == (
        "spec.template is 293 kB, more than 256 kB: move user data into a Secret and refer to it"
    )
    assert not site.vms()


# ---- never running

NO_MEMORY = guest(domain={"devices": {}})
NO_IMAGE = with_volume(containerDisk={"image": ""})
NO_CLAIM = with_volume(persistentVolumeClaim={"claimName": "missing-disk", "readOnly": True})
LATE = "it was not warm within its deadline of 4 s"

# Each is taken by KubeVirt and never gets a guest up; and what the condition says of it.
NEVER_RUN = {
    "no-memory": (vm_template(guest_spec=NO_MEMORY), "FailedCreate"),
    "no-instancetype": (vm_template(vm={"instancetype": {"name": "unknown"}}), "FailedFindInstancetype"),
    "crash-loop": (vm_template(fail="crash-loop"), "CrashLoopBackOff"),
    "no-image": (vm_template(guest_spec=NO_IMAGE), LATE),
    "image-pull": (vm_template(fail="image"), "KubeVirt says ImagePullBackOff"),
    "no-pvc": (vm_template(guest_spec=NO_CLAIM), "KubeVirt says ErrorPvcNotFound"),
    "hangs": (vm_template(fail="hang"), LATE),
}


def test_templates_that_never_run_open_the_brake_and_say_why(site: Site, auditor: AuditorThread) -> None:
    for name, (template, why) in NEVER_RUN.items():
        deadline = {"deadline": "4s"} if "FailedC" not in why else {}
        site.pool(name, warm=3, template=template, readiness=deadline)
    for name, (_, why) in NEVER_RUN.items():
        site.until_condition(POOLS, name, "Ready", "False", "BrakeOpen")
        said = condition(until_told(site, name, why), "Ready")["message"]
        assert "VMs failed in a row, so one at a time is tried with growing pauses" in said
        site.until_condition(POOLS, name, "Degraded", "True", "BrakeOpen")
        site.until_condition(POOLS, name, "Warm", "False", "Short")
        brake = site.get(POOLS, name)["status"]["brake"]
        assert brake["openSince"]
        assert brake["failures"] >= 3
        site.patch(POOLS, name, {"spec": {"suspend": True}})
    assert auditor.settled() == []
    assert auditor.seen["VMs"] <= 7 * len(NEVER_RUN), "three before the brake, then one at a time"


def until_told(site: Site, pool: str, why: str) -> Json:
    return site.until(POOLS, pool, f"says {why}", lambda obj: why in condition(obj, "Degraded")["message"])


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def next_probe(site: Site) -> float:
    """When the pool says that it tries again; long ago while it doesn't."""
    brake = (site.get(POOLS, "pool").get("status") or {}).get("brake") or {}
    return datetime.fromisoformat(brake.get("nextProbeTime", "1970-01-01T00:00:00Z")).timestamp()


def test_an_open_brake_tries_one_at_a_time_with_growing_pauses_until_the_template_is_fixed(
    site: Site,
) -> None:
    site.pool(warm=4, template=vm_template(fail="crash-loop", boot="1ms"))
    site.until_condition(POOLS, "pool", "Ready", "False", "BrakeOpen")
    until("the first ones gone", site.vms, lambda vms: not vms)
    names: set[str] = set()
    times: list[datetime] = []
    while len(times) < 2:
        [probe] = until("a probe", site.vms, lambda vms: vms)
        names.add(name_of(probe))
        times.append(datetime.fromisoformat(probe["metadata"]["creationTimestamp"]))
        until("the probe gone", site.vms, lambda vms: len(vms) <= 1 and not {*map(name_of, vms)} & names)
    assert (times[1] - times[0]).total_seconds() >= 3, "the second pause is 4 s"

    third = until("a long pause", lambda: next_probe(site), lambda at: at > time.time() + 8, seconds=60)
    fixed = {"metadata": {"annotations": {"simulator.bullpen.dev/fail": None}}}
    site.patch(POOLS, "pool", {"spec": {"template": fixed}})
    site.claim()
    assert datetime.fromisoformat(site.bound()["status"]["boundAt"]).timestamp() < third
    pool = site.until_warm(4)
    assert condition(pool, "Ready")["reason"] == "Serving"
    assert pool["status"]["brake"] == {"failures": 0}


def test_a_pool_that_is_braked_hurts_no_other_and_serves_what_is_warm(site: Site) -> None:
    site.pool("good", warm=1)
    site.pool("turning-bad", warm=2)
    site.until_warm(2, "turning-bad")
    bad = {"metadata": {"annotations": {"simulator.bullpen.dev/fail": "crash-loop"}}}
    site.patch(POOLS, "turning-bad", {"spec": {"template": bad, "warm": {"replicas": 5}}})
    site.until_condition(POOLS, "turning-bad", "Ready", "False", "BrakeOpen")
    for claim, pool in (("one", "turning-bad"), ("two", "turning-bad"), ("other", "good")):
        site.claim(claim, pool)
        site.bound(claim)


def test_vms_that_find_no_node_wait_for_room_instead_of_being_replaced(site: Site) -> None:
    site.pool(warm=2, template=vm_template(fail="unschedulable"), readiness={"deadline": "3s"})
    said = site.until_condition(POOLS, "pool", "CapacityAvailable", "False", "Unschedulable")
    assert "VMs wait for a node with room: add nodes, or lower warm.replicas" in said["message"]
    before = site.vm_names()
    holds("as they were, past their deadline", site.vm_names, lambda names: names == before, 4)
    for vm in before:
        site.annotate_vm(vm, fail=None)
    site.until_warm(2)
    site.claim()
    assert named_vm(site.bound())["name"] in before
