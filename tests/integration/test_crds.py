"""The CRDs as a user meets them through kubectl: explain, get, scale."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from crds.kinds import KINDS, Kind
from e2e.rest import Rest
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.manifests import API, apply, claim_manifest, get, path_of, pool_manifest

pytestmark = pytest.mark.cluster

POOL_STATUS = {
    "replicas": 4,
    "total": 6,
    "warm": {"ready": 3, "target": 4, "decidedBy": "replicas"},
    "instances": {"provisioning": 1, "warm": 3, "claimed": 2},
    "demand": {"pending": 5, "leadTimeSeconds": {"p50": 16.25}},
    "currentRevision": "abc",
    "selector": "bullpen.dev/pool=ci",
}
CLAIM_STATUS = {
    "phase": "Bound",
    "waited": "35ms",
    "expiresAt": "2099-01-31T12:00:00Z",
    "virtualMachines": [
        {
            "name": "ci-x7f2p",
            "uid": "u",
            "node": "n1",
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        }
    ],
}


def set_status(admin: Rest, namespace: str, manifest: dict[str, Any], status: dict[str, Any]) -> None:
    answer = admin.patch(f"{path_of(manifest, namespace)}/status", {"status": status})
    assert answer.ok, answer.message


def table(printed: str) -> dict[str, str]:
    """The first row of what kubectl get prints, by column."""
    header, row = printed.splitlines()[:2]
    starts = [match.start() for match in re.finditer(r"\S+", header)]
    ends = [*starts[1:], None]
    return {
        header[start:end].strip(): row[start:end].strip() for start, end in zip(starts, ends, strict=True)
    }


def undescribed(node: dict[str, Any], path: str) -> Iterator[str]:
    for name, field in node.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from undescribed(field, f"{path}.{name}")
    if "items" in node:
        yield from undescribed(node["items"], f"{path}[]")


@pytest.fixture(scope="module")
def published(admin: Rest) -> dict[str, Any]:
    """What kubectl explain reads; the API server publishes it a moment after it serves the kinds."""
    names = {f"dev.bullpen.v1alpha1.{kind.name}" for kind in KINDS}
    answer = admin.wait(
        f"/openapi/v3{API}", lambda answer: answer.ok and names <= set(answer.body["components"]["schemas"])
    )
    schemas: dict[str, Any] = answer.body["components"]["schemas"]
    return schemas


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_api_server_has_nothing_to_object_to_in_a_definition(admin: Rest, kind: Kind) -> None:
    crd = admin.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.plural}.bullpen.dev").body
    conditions = {one["type"]: one["status"] for one in crd["status"]["conditions"]}
    assert conditions.pop("Established") == conditions.pop("NamesAccepted") == "True"
    assert "True" not in conditions.values()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_api_server_publishes_a_description_of_every_field(published: dict[str, Any], kind: Kind) -> None:
    schema = published[f"dev.bullpen.v1alpha1.{kind.name}"]
    assert schema["description"]
    for part in ("spec", "status"):
        assert list(undescribed(schema["properties"][part], part)) == []


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("warmpool", "Keeps booted virtual machines of one template ready"),
        ("wp.spec.warm.replicas", r"How many unclaimed VMs to keep, ready or booting \(default 1\)"),
        ("wp.spec.warm.serviceLevel.mode", r"Recommend \(default\): status.warm.policies says what"),
        ("wp.spec.warm.schedules.start", "a cron expression of five fields"),
        ("wp.spec.template.spec.runStrategy", r"Always \(also when absent\) or RerunOnFailure"),
        ("vmclaim", "Takes one booted virtual machine from a VirtualMachinePool"),
        ("vmc.spec.whenEmpty.policy", r"Order \(default\): order one more VM at once"),
        ("vmc.status.queue.position", "1 is the next one to be served"),
        ("vmc.status.conditions.reason", "Why, as one word for programs"),
    ],
)
def test_kubectl_explains_a_field(kubectl: Kubectl, field: str, says: str) -> None:
    assert re.search(says, " ".join(kubectl("explain", field).split()))


def test_a_pool_shows_what_a_person_wants_first(kubectl: Kubectl, admin: Rest, namespace: str) -> None:
    pool = pool_manifest("ci")
    apply(kubectl, namespace, pool)
    set_status(admin, namespace, pool, POOL_STATUS)
    row = table(kubectl("get", "wp", "ci", "-n", namespace))
    assert row.pop("AGE")
    assert row == {
        "NAME": "ci",
        "WARM": "3",
        "TARGET": "4",
        "CLAIMED": "2",
        "PENDING": "5",
        "BOOTING": "1",
        "DECIDED-BY": "replicas",
    }
    wide = table(kubectl("get", "wp", "ci", "-n", namespace, "-o", "wide"))
    assert wide["BOOT-P50"] == "16.25"
    assert wide["REVISION"] == "abc"
    assert wide["SUSPENDED"] == "false"


def test_a_claim_shows_its_vm_and_a_time_to_come_as_a_time(
    kubectl: Kubectl, admin: Rest, namespace: str
) -> None:
    claim = claim_manifest("mine", "ci")
    apply(kubectl, namespace, claim)
    set_status(admin, namespace, claim, CLAIM_STATUS)
    row = table(kubectl("get", "vmc", "mine", "-n", namespace))
    assert row.pop("AGE")
    assert row == {
        "NAME": "mine",
        "PHASE": "Bound",
        "VM": "ci-x7f2p",
        "ADDRESS": "10.0.0.7",
        "POOL": "ci",
        "WAITED": "35ms",
        "EXPIRES": "2099-01-31T12:00:00Z",
    }
    assert table(kubectl("get", "vmc", "mine", "-n", namespace, "-o", "wide"))["NODE"] == "n1"


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        ("warmpool", "virtualmachinepools"),
        ("wp", "virtualmachinepools"),
        ("virtualmachinepool", "virtualmachinepools"),
        ("vmclaim", "virtualmachineclaims"),
        ("vmc", "virtualmachineclaims"),
        ("virtualmachineclaim", "virtualmachineclaims"),
    ],
)
def test_short_names_name_our_kinds(kubectl: Kubectl, namespace: str, name: str, plural: str) -> None:
    apply(kubectl, namespace, pool_manifest("a"), claim_manifest("a", "a"))
    assert kubectl("get", name, "-n", namespace, "-o", "name") == f"{plural[:-1]}.bullpen.dev/a\n"


def test_the_category_lists_pools_and_claims(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, namespace, pool_manifest("a"), claim_manifest("b", "a"))
    listed = kubectl("get", "bullpen", "-n", namespace, "-o", "name").split()
    assert sorted(listed) == ["virtualmachineclaim.bullpen.dev/b", "virtualmachinepool.bullpen.dev/a"]


def test_claims_are_selected_by_phase_and_by_pool(kubectl: Kubectl, admin: Rest, namespace: str) -> None:
    bound, waiting = claim_manifest("bound", "a"), claim_manifest("waiting", "b")
    apply(kubectl, namespace, bound, waiting)
    set_status(admin, namespace, bound, {"phase": "Bound"})
    set_status(admin, namespace, waiting, {"phase": "Pending"})

    def selected(by: str) -> str:
        return kubectl("get", "vmc", "-n", namespace, "--field-selector", by, "-o", "name")

    assert selected("status.phase=Bound") == "virtualmachineclaim.bullpen.dev/bound\n"
    assert selected("spec.poolRef.name=b") == "virtualmachineclaim.bullpen.dev/waiting\n"
    assert selected("status.phase=Bound,spec.poolRef.name=b") == ""


def test_scale_moves_the_floor_and_shows_unclaimed_vms_and_their_selector(
    kubectl: Kubectl, admin: Rest, namespace: str
) -> None:
    pool = pool_manifest("ci")
    apply(kubectl, namespace, pool)
    set_status(admin, namespace, pool, POOL_STATUS)
    kubectl("scale", "warmpool/ci", "--replicas=7", "-n", namespace)
    assert get(kubectl, namespace, "wp", "ci")["spec"]["warm"]["replicas"] == 7
    scale = admin.get(f"{path_of(pool, namespace)}/scale").body
    assert scale["spec"] == {"replicas": 7}
    assert scale["status"] == {"replicas": 4, "selector": "bullpen.dev/pool=ci"}


def test_scaling_over_the_limit_is_refused_with_the_sentence_that_apply_gets(
    kubectl: Kubectl, namespace: str
) -> None:
    apply(kubectl, namespace, pool_manifest("ci"))
    with pytest.raises(
        KubectlError, match=r"spec\.warm\.replicas: .* must not be more than limits\.maxReplicas"
    ):
        kubectl("scale", "warmpool/ci", "--replicas=101", "-n", namespace)
