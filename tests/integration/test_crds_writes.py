"""Writing pools and claims: defaults, applying twice, unknown fields, what a status lets in."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from crds.claim import parse_claim
from crds.pool import parse_pool
from e2e.rest import Rest
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.manifests import API, apply, claim_manifest, get, path_of, pool_manifest

pytestmark = pytest.mark.cluster


def test_an_applied_pool_shows_its_defaults(kubectl: Kubectl, namespace: str) -> None:
    pool = pool_manifest("ci")
    apply(kubectl, namespace, pool)
    stored = get(kubectl, namespace, "wp", "ci")
    assert stored["spec"] == {
        "template": pool["spec"]["template"],
        "warm": {"replicas": 1, "scaleDown": {"stabilization": "5m"}},
        "limits": {"maxReplicas": 100, "maxConcurrentCreations": 10, "maxConcurrentDeletions": 10},
        "readiness": {"when": "Ready", "minReadySeconds": 0, "deadline": "15m", "unreadyGrace": "2m"},
        "claims": {"order": "Oldest"},
        "updateStrategy": {"type": "Replenish", "maxSurge": 1, "warmFloor": "100%"},
        "suspend": False,
    }
    assert "status" not in stored
    assert parse_pool(stored).spec == parse_pool(pool).spec


def test_an_applied_claim_shows_its_defaults(kubectl: Kubectl, namespace: str) -> None:
    claim = claim_manifest("mine", "ci")
    apply(kubectl, namespace, claim)
    stored = get(kubectl, namespace, "vmc", "mine")
    assert stored["spec"] == {"poolRef": {"name": "ci"}, "whenEmpty": {"policy": "Order"}}
    assert "status" not in stored
    assert parse_claim(stored).spec == parse_claim(claim).spec


@pytest.mark.parametrize(
    ("how", "answer"), [("client-side", "unchanged"), ("server-side", "serverside-applied")]
)
@pytest.mark.parametrize(
    "manifest",
    [
        pool_manifest("ci"),
        pool_manifest("ci", warm={"replicas": 1}, readiness={"deadline": "15m"}, suspend=False, claims={}),
        pool_manifest("ci", readiness={"conditions": ["AgentConnected"]}, claims={"lifetime": {"max": "1h"}}),
        claim_manifest("mine", "ci"),
        claim_manifest("mine", "ci", whenEmpty={"policy": "Order"}),
        claim_manifest("mine", "ci", whenEmpty={}, metadata={"labels": {"a": "b"}}, timeout="5m"),
    ],
)
def test_applying_twice_changes_nothing(
    kubectl: Kubectl, admin: Rest, namespace: str, manifest: dict[str, Any], how: str, answer: str
) -> None:
    server_side = how == "server-side"
    apply(kubectl, namespace, manifest, server_side=server_side)
    first = admin.get(path_of(manifest, namespace)).body["metadata"]["resourceVersion"]
    second = apply(kubectl, namespace, manifest, server_side=server_side)
    assert admin.get(path_of(manifest, namespace)).body["metadata"]["resourceVersion"] == first
    assert second.strip().endswith(answer)


def test_what_is_applied_without_a_field_gets_its_default_back(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, namespace, pool_manifest("ci", warm={"replicas": 5, "max": 9}), server_side=True)
    apply(kubectl, namespace, pool_manifest("ci"), server_side=True)
    assert get(kubectl, namespace, "wp", "ci")["spec"]["warm"] == {
        "replicas": 1,
        "scaleDown": {"stabilization": "5m"},
    }


def test_a_template_keeps_every_field_of_kubevirts(kubectl: Kubectl, namespace: str) -> None:
    template = {
        "metadata": {"labels": {"team": "blue"}},
        "spec": {
            "runStrategy": "RerunOnFailure",
            "instancetype": {"name": "small"},
            "dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": {"storage": {}}}],
            "template": {"spec": {"domain": {"devices": {"disks": [{"name": "root"}]}}}},
        },
    }
    apply(kubectl, namespace, pool_manifest("ci", template=template))
    assert get(kubectl, namespace, "wp", "ci")["spec"]["template"] == template


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (pool_manifest("ci", warm={"replica": 5}), "spec.warm.replica"),
        (pool_manifest("ci", tiers={}), "spec.tiers"),
        (claim_manifest("ci", priority=3), "spec.priority"),
    ],
)
def test_kubectl_refuses_an_unknown_field_by_its_path(
    kubectl: Kubectl, namespace: str, manifest: dict[str, Any], field: str
) -> None:
    for server_side in (False, True):
        with pytest.raises(KubectlError, match=re.escape(field)):
            apply(kubectl, namespace, manifest, server_side=server_side)


def test_a_raw_post_of_an_unknown_field_is_pruned_with_a_warning(kubectl: Kubectl, namespace: str) -> None:
    path = f"{API}/namespaces/{namespace}/virtualmachineclaims"
    posted = subprocess.run(
        [kubectl._program(), "--kubeconfig", str(kubectl.kubeconfig), "create", "--raw", path, "-f", "-"],
        input=json.dumps(claim_manifest("mine", "ci", priority=3)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert 'Warning: unknown field "spec.priority"' in posted.stderr
    assert "priority" not in get(kubectl, namespace, "vmc", "mine")["spec"]


def test_a_create_does_not_set_the_status(admin: Rest, namespace: str) -> None:
    answer = admin.post(
        f"{API}/namespaces/{namespace}/virtualmachineclaims",
        {**claim_manifest("mine"), "status": {"phase": "Bound"}},
    )
    assert answer.status == 201, answer.message
    assert "status" not in answer.body


def test_a_status_of_one_field_is_let_in_and_guarded_by_its_phase(admin: Rest, namespace: str) -> None:
    claim = claim_manifest("mine")
    path = path_of(claim, namespace)
    assert admin.post(path.rsplit("/", 1)[0], claim).status == 201

    def write(*operations: dict[str, Any]) -> int:
        return admin.patch(f"{path}/status", list(operations)).status

    first = {"op": "add", "path": "/status", "value": {"queue": {"position": 1}, "phase": "Pending"}}
    bound = {"op": "add", "path": "/status/phase", "value": "Bound"}
    assert write({"op": "test", "path": "/status", "value": None}, first) == 200
    assert write({"op": "test", "path": "/status", "value": None}, first) == 422
    assert write({"op": "test", "path": "/status/phase", "value": "Pending"}, bound) == 200
    assert write({"op": "test", "path": "/status/phase", "value": "Pending"}, bound) == 422
    assert admin.get(path).body["status"] == {"queue": {"position": 1}, "phase": "Bound"}


def test_conditions_are_merged_by_type(admin: Rest, namespace: str) -> None:
    claim = claim_manifest("mine")
    path = path_of(claim, namespace)
    assert admin.post(path.rsplit("/", 1)[0], claim).status == 201
    for manager, kind in (("one", "Ready"), ("two", "Bound")):
        condition = {
            "type": kind,
            "status": "True",
            "reason": "Usable",
            "message": "",
            "lastTransitionTime": "2026-01-31T12:00:00Z",
        }
        partial = {
            "apiVersion": claim["apiVersion"],
            "kind": claim["kind"],
            "status": {"conditions": [condition]},
        }
        answer = admin.apply(f"{path}/status", partial, manager=manager)
        assert answer.ok, answer.message
    assert {one["type"] for one in admin.get(path).body["status"]["conditions"]} == {"Ready", "Bound"}
