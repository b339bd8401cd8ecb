"""What guests and claimants are told in private stands in no log, event, status or metric.

Secrets are planted wherever a user may write one, and sent through flows that go well, that are refused (by
admission that quotes what it refuses, as webhooks do) and that fail; then everything that others read is
searched for them, as they are and in base64.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.rest import Rest
from tests.support.controller import Controller
from tests.support.site import CLAIMS, POOLS, Site, condition, guest, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("auditor")]

USER_DATA = "planted-user-data-4cb1"
NETWORK_DATA = "planted-network-data-77aa"
ANNOTATION = "planted-annotation-90ee"
CLAIMED = "planted-token-51d2"
REFUSED = "planted-refused-token-8ab0"
DATA = "planted-secret-2f6c"
PLANTED = (USER_DATA, NETWORK_DATA, ANNOTATION, CLAIMED, REFUSED, DATA)
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


def quoting(name: str, namespace: str, operation: str, condition: str, quote: str) -> list[dict[str, Any]]:
    """An admission policy that refuses VMs and quotes what it did not like."""
    policy = {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["kubevirt.io"],
                        "apiVersions": ["v1"],
                        "operations": [operation],
                        "resources": ["virtualmachines"],
                    }
                ]
            },
            "validations": [{"expression": f"!({condition})", "messageExpression": quote}],
        },
    }
    where = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": where},
    }
    return [policy, {"metadata": {"name": name}, "spec": binding}]


@pytest.fixture
def quotes(admin: Rest, namespace: str) -> Iterator[Callable[..., None]]:
    """`quotes(operation, condition, quote)`: such a policy, in force when this returns."""
    made: list[str] = []

    def add(operation: str, condition: str, quote: str) -> None:
        name = f"quoting-{operation.lower()}-{namespace}"[:200]
        for path, body in zip(
            (POLICIES, POLICIES.replace("policies", "policybindings")),
            quoting(name, namespace, operation, condition, quote),
            strict=True,
        ):
            answer = admin.post(path, body)
            assert answer.status == 201, answer.message
            made.append(f"{path}/{name}")

    yield add
    for path in made:
        admin.delete(path)


def secretive(**labels: str) -> dict[str, Any]:
    """A template with something private in every place that there is for it."""
    user_data = f"#cloud-config\npassword: '{USER_DATA}'\nchpasswd: {{expire: \"False\"}}\n"
    init = {
        "userData": user_data,
        "networkDataBase64": base64.b64encode(f"key: {NETWORK_DATA}".encode()).decode(),
    }
    volumes = [
        {"name": "init", "cloudInitNoCloud": init},
        {"name": "seed", "secret": {"secretName": "seed"}},
    ]
    disks = [{"name": each["name"], "disk": {}} for each in volumes]
    domain = {"devices": {"disks": disks}, "memory": {"guest": "64Mi"}}
    template = vm_template(guest_spec=guest(domain=domain, volumes=volumes))
    template["metadata"]["annotations"]["example.com/password"] = ANNOTATION
    template["metadata"]["labels"] = {"example.com/kind": "secretive", **labels}
    return template


def told(site: Site, controller: Controller) -> str:
    """Everything that others read: logs, events, statuses, metrics."""
    events = [site.api.get(path).body for path in ("/api/v1/events", "/apis/events.k8s.io/v1/events")]
    statuses = [
        each.get("status")
        for plural in (POOLS, CLAIMS)
        for each in site.api.get(site.path(plural)).body["items"]
    ]
    with urllib.request.urlopen(f"http://{controller.listen}/metrics", timeout=5) as answer:
        metrics = answer.read().decode()
    return "\n".join([controller.said, json.dumps(events), json.dumps(statuses), metrics])


def in_base64(text: str) -> list[str]:
    """How it looks inside longer base64, at each of the three places where it may begin."""
    return [base64.b64encode(b"x" * lead + text.encode() + b"xx").decode()[4:-4] for lead in range(3)]


def leaks(words: str, planted: str) -> bool:
    return planted in words or any(each in words for each in in_base64(planted))


def well(site: Site) -> None:
    """A VM with secrets in it is handed over to a claim with one, and given back."""
    site.pool(warm=1, template=secretive())
    site.until_warm(1)
    site.claim("fine", metadata={"annotations": {"example.com/token": CLAIMED}})
    site.bound("fine")
    site.until_condition(POOLS, "pool", "ReferencedDataChanged", "False", "DataUnchanged")
    secret = f"/api/v1/namespaces/{site.namespace}/secrets/seed"
    assert site.api.patch(secret, {"stringData": {"seed": f"{DATA}-changed"}}).ok
    site.until(
        POOLS,
        "pool",
        "told of the change",
        lambda pool: any("changedAt" in each for each in pool["status"].get("referencedData", [])),
    )
    site.delete(CLAIMS, "fine")
    site.until_gone(CLAIMS, "fine")
    site.until_warm(1)


def refused_at_creation(site: Site) -> None:
    site.pool("refused", template=secretive(refuse="creation"))
    found = site.until_condition(POOLS, "refused", "Ready", "False", "TemplateInvalid")
    assert "not in this cluster: " in found["message"]
    site.claim("waits", "refused")
    found = site.until_condition(CLAIMS, "waits", "Bound", "False", "PoolInvalid")
    assert "not in this cluster: " in found["message"]


def refused_at_the_hand_over(site: Site) -> None:
    """What a claim said is quoted to the pool and to its neighbours in line."""
    site.claim("refused", metadata={"annotations": {"example.com/refuse": REFUSED}})
    site.claim("neighbour")
    for name in ("refused", "neighbour"):
        found = site.until(
            CLAIMS,
            name,
            "told",
            lambda claim: "no such token" in condition(claim, "Bound").get("message", ""),
        )
        assert condition(found, "Bound")["reason"] == "Queued"
    site.delete(CLAIMS, "refused")
    site.bound("neighbour")


@pytest.mark.timeout(300)
def test_nothing_private_is_told_to_others(
    site: Site, start: Callable[..., Controller], quotes: Callable[..., None], kubeconfig: Path
) -> None:
    controller = start(log_level="debug", resync_interval="2s")
    seed = {"metadata": {"name": "seed"}, "stringData": {"seed": DATA}}
    assert site.api.post(f"/api/v1/namespaces/{site.namespace}/secrets", seed).status == 201
    quotes(
        "CREATE",
        "has(object.metadata.labels) && 'refuse' in object.metadata.labels",
        "'not in this cluster: '"
        " + object.spec.template.spec.volumes[0].cloudInitNoCloud.userData.replace('\\n', ' ')"
        " + object.spec.template.spec.volumes[0].cloudInitNoCloud.networkDataBase64"
        " + object.metadata.annotations['example.com/password']",
    )
    quotes(
        "UPDATE",
        "has(object.metadata.annotations) && 'example.com/refuse' in object.metadata.annotations",
        "'no such token: ' + object.metadata.annotations['example.com/refuse']"
        " + ' for ' + object.spec.template.spec.volumes[0].cloudInitNoCloud.userData.replace('\\n', ' ')",
    )
    well(site)
    refused_at_creation(site)
    refused_at_the_hand_over(site)
    words = told(site, controller)
    assert [planted for planted in PLANTED if leaks(words, planted)] == []
    token = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
    assert not leaks(words, token)
    assert all(each in words for each in ("creation refused", "hand-over refused", "bullpen_"))
