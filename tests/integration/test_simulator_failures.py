"""Each failure's face: commanded by annotation, or found in a spec that KubeVirt accepts and never runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from e2e.rest import Rest
from simulator.api import ApiError
from tests.support.vm_watching import VMIS, VMS, VMWatch, condition, watching

pytestmark = pytest.mark.cluster

MEMORY = {"memory": {"guest": "64Mi"}}


@pytest.fixture
async def vms(
    kubeconfig: Path,
    namespace: str,
    admin: Rest,
    simulator: None,  # noqa: ARG001 - it runs them
) -> AsyncIterator[VMWatch]:
    if admin.get("/apis/kubevirt.io/v1/kubevirts").ok:
        pytest.skip("this cluster has a real KubeVirt, not the stand-in")
    async with watching(kubeconfig, namespace) as watch:
        yield watch


def template(labels: dict[str, str] | None = None, domain: dict[str, Any] | None = None, **guest: Any) -> Any:
    spec = {"domain": {"devices": {}, **(MEMORY if domain is None else domain)}, **guest}
    return {"template": {"metadata": {"labels": labels or {}}, "spec": spec}}


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        ("crash-loop", "CrashLoopBackOff"),
        ("unschedulable", "ErrorUnschedulable"),
        ("image", "ImagePullBackOff"),
        ("failed-create", "Stopped"),
        ("failed-find-instancetype", "Stopped"),
        ("pvc-missing", "ErrorPvcNotFound"),
        ("hang", "Starting"),
        ("no-image", "Starting"),
        ("secret-missing", "Starting"),
    ],
)
async def test_a_commanded_failure_shows_its_status_and_is_never_ready(
    vms: VMWatch, failure: str, status: str
) -> None:
    await vms.create(boot="200ms", fail=failure)
    await vms.until_shown(status)
    await vms.create("other", boot="500ms")
    await vms.until_ready(VMS)
    assert {e.object["metadata"]["name"] for e in vms.events if e.ready} == {"other"}
    found = await vms.get(VMS)
    assert found is not None
    assert found["status"]["printableStatus"] in {status, "Starting"}


@pytest.mark.parametrize(
    ("spec", "status", "reason"),
    [
        (template(labels={"app": "not valid!"}), "Stopped", "FailedCreate"),
        (template(domain={}), "Stopped", "FailedCreate"),
        ({**template(domain={}), "instancetype": {"name": "u9.none"}}, "Stopped", "FailedFindInstancetype"),
    ],
    ids=["a bad label in the template", "no memory", "an unknown instancetype"],
)
async def test_a_vm_that_cannot_have_a_vmi_says_why(
    vms: VMWatch, spec: dict[str, Any], status: str, reason: str
) -> None:
    await vms.create(spec=spec)
    await vms.until(
        f"Failure by {reason}",
        lambda events: any(condition(e.object, "Failure").get("reason") == reason for e in events),
    )
    found = await vms.get(VMS)
    assert found is not None
    assert found["status"]["printableStatus"] == status
    assert condition(found, "Failure")["status"] == "True"
    assert not vms.of(VMIS)


async def test_a_bad_label_is_told_in_the_api_servers_own_words(vms: VMWatch) -> None:
    await vms.create(spec=template(labels={"app": "not valid!"}))
    await vms.until("Failure", lambda events: any(condition(e.object, "Failure") for e in events))
    found = await vms.get(VMS)
    assert found is not None
    assert "not valid!" in condition(found, "Failure")["message"]


async def test_a_template_that_was_put_right_boots_at_once(vms: VMWatch) -> None:
    await vms.create(spec=template(labels={"app": "not valid!"}), boot="200ms")
    await vms.until("Failure", lambda events: any(condition(e.object, "Failure") for e in events))
    await vms.patch({"spec": template(labels={"app": "valid"})})
    ready = await vms.until_ready(VMS)
    assert not condition(ready, "Failure")


@pytest.mark.parametrize(
    ("volume", "status"),
    [
        ({"containerDisk": {"image": ""}}, "Starting"),
        ({"persistentVolumeClaim": {"claimName": "missing-disk"}}, "ErrorPvcNotFound"),
        ({"secret": {"secretName": "missing-secret"}}, "Starting"),
    ],
    ids=["a container disk without an image", "a claim that is not there", "a Secret that is not there"],
)
async def test_a_volume_that_never_comes_keeps_the_vm_from_running(
    vms: VMWatch, volume: dict[str, Any], status: str
) -> None:
    await vms.create(spec=template(volumes=[{"name": "disk", **volume}]))
    await vms.until_shown(status)
    assert not any(each.ready for each in vms.events)


async def test_a_missing_image_is_seen_in_warning_events_only(vms: VMWatch) -> None:
    await vms.create(boot="200ms", fail="no-image")
    await vms.until_shown("Starting")
    events = f"/api/v1/namespaces/{vms.namespace}/events"
    await vms.create("other", boot="1s")
    await vms.until_ready(VMIS)
    warnings = [
        each for each in orjson.loads(await vms.api.get(events))["items"] if each["type"] == "Warning"
    ]
    assert [each["involvedObject"]["name"] for each in warnings] == ["vm"]


async def test_an_unschedulable_vmi_says_so(vms: VMWatch) -> None:
    await vms.create(fail="unschedulable")
    await vms.until_shown("ErrorUnschedulable")
    vmi = await vms.get(VMIS)
    assert vmi is not None
    assert vmi["status"]["phase"] == "Scheduling"
    assert condition(vmi, "PodScheduled")["reason"] == "Unschedulable"


async def test_a_crash_loops_vmi_is_made_anew_and_fails_again(vms: VMWatch) -> None:
    await vms.create(boot="200ms", fail="crash-loop")
    await vms.until_gone(VMIS)
    looping = await vms.until_shown("CrashLoopBackOff")
    assert looping["status"]["startFailure"]["consecutiveFailCount"] == 1
    await vms.until(
        "two failed starts",
        lambda events: any(
            (e.object.get("status") or {}).get("startFailure", {}).get("consecutiveFailCount") == 2
            for e in events
        ),
    )


async def test_on_a_lost_node_a_ready_vm_stops_being_ready_and_stays_so(vms: VMWatch) -> None:
    await vms.create(boot="100ms", fail="lost-node")
    await vms.until_ready(VMIS)
    await vms.until("not Ready", lambda events: not [e for e in events if e.kind == VMIS][-1].ready)
    vmi = await vms.get(VMIS)
    assert vmi is not None
    assert vmi["status"]["phase"] == "Running"
    assert condition(vmi, "Ready")["reason"] == "NodeUnresponsive"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"runStrategy": "Sometimes"}, "Invalid RunStrategy (Sometimes)"),
        ({"running": True}, "mutually exclusive"),
        ({"runStrategy": None}, "One of Running or RunStrategy"),
        ({"template": {"spec": {}}}, "spec.template.spec.domain"),
        ({"template": None}, "spec.template"),
        (
            template(domain={**MEMORY, "devices": {"disks": [{"name": "root"}]}}),
            "every disk needs a volume of the same name",
        ),
        (
            template(domain={**MEMORY, "devices": {"interfaces": [{"name": "eth0"}]}}),
            "every interface needs a network of the same name",
        ),
        (template(domain={"memory": {"guest": "much"}}), "spec.template.spec.domain.memory.guest"),
        (
            {"dataVolumeTemplates": [{"metadata": {"name": "dv"}, "spec": {}}]},
            "each DataVolumeTemplate must be referenced",
        ),
    ],
)
async def test_what_kubevirt_refuses_is_refused_with_a_sentence(
    vms: VMWatch, spec: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        await vms.create(spec=spec)
    assert refusal.value.status == 422
    assert sentence in refusal.value.message
