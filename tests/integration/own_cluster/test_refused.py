"""Writes that the cluster refuses: a quota, a webhook that is down, a policy, a namespace that ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.rest import Rest
from tests.integration.own_cluster.conftest import Start
from tests.support.degraded import stays_calm
from tests.support.site import CLAIMS, POOLS, VMS, Json, Site, condition, holds, until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("auditor")]

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
VM_WRITES = {
    "apiGroups": ["kubevirt.io"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["virtualmachines"],
}


@contextmanager
def webhook_down(site: Site, port: int = 1, seconds: int = 2) -> Iterator[None]:
    """KubeVirt's webhook, say, whose pods are gone: no write to a VM of this namespace gets through."""
    hook = {
        "name": "validate.vms.test",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
        "rules": [VM_WRITES],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": seconds,
    }
    name = site.namespace
    made = site.api.post(HOOKS, {"metadata": {"name": name}, "webhooks": [hook]})
    assert made.status == 201, made.message
    try:
        until("the webhook is asked", lambda: refusal(site), lambda said: "failed calling webhook" in said)
        yield
    finally:
        assert site.api.delete(f"{HOOKS}/{name}").ok


@contextmanager
def policy_denies(site: Site, verb: str, sentence: str) -> Iterator[None]:
    """An admission policy that lets nobody do that to VMs of this namespace."""
    version = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": site.namespace}}
    rule = {**VM_WRITES, "operations": [verb]}
    policy = {
        **version,
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": sentence}],
        },
    }
    mine = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}}
    spec = {"policyName": site.namespace, "validationActions": ["Deny"], "matchResources": mine}
    binding = {**version, "kind": "ValidatingAdmissionPolicyBinding", "spec": spec}
    paths = {POLICIES: policy, POLICIES.replace("policies", "policybindings"): binding}
    for path, obj in paths.items():
        assert site.api.post(path, obj).status == 201
    try:
        yield
    finally:
        for path in reversed(paths):
            assert site.api.delete(f"{path}/{site.namespace}").ok


def said_of(claim: Json) -> str:
    """Why it is not bound."""
    return str(condition(claim, "Bound").get("message", ""))


def refusal(site: Site) -> str:
    """What the API server says to one more VM, on trial."""
    vm: Json = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "probe"},
        "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}},
    }
    return site.api.post(site.path(VMS), vm, dryRun="All").message


def test_while_a_webhook_is_down_pools_and_claims_say_so_and_go_on_when_it_is_back(
    site: Site, start: Start
) -> None:
    controller = start(watch_namespaces=site.namespace)
    site.pool(warm=2)
    site.until_warm(2)
    with webhook_down(site):
        for name in ("one", "two", "three", "four"):
            site.claim(name)
        told = site.until_condition(POOLS, "pool", "Ready", "False", "ApiRefused")
        assert "failed calling webhook" in told["message"]
        for name in ("one", "two", "three", "four"):
            why = site.until(CLAIMS, name, "told", lambda each: "failed calling webhook" in said_of(each))
            assert condition(why, "Bound")["reason"] == "Queued"
        site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 0}}})
        stays_calm(controller)
        holds("nothing changed hands", lambda: site.vm_names(state="Claimed"), lambda now: not now, 1)
        site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 1}}})
    for name in ("one", "two", "three", "four"):
        site.bound(name, seconds=90)
    site.until_condition(POOLS, "pool", "Ready", "True", "Serving", seconds=90)
    site.until_warm(1, seconds=90)
    assert '"level": "error"' not in controller.said


@pytest.fixture
def mute() -> Iterator[int]:
    """A port where somebody takes calls and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listening:
        yield int(listening.getsockname()[1])


def test_while_a_webhook_hangs_a_claim_says_why_it_waits_and_is_bound_when_it_answers(
    site: Site, start: Start, mute: int
) -> None:
    controller = start(watch_namespaces=site.namespace)
    site.pool(warm=2)
    site.until_warm(2)
    with webhook_down(site, mute, seconds=1):
        for name in ("one", "two"):
            site.claim(name)
        for name in ("one", "two"):
            site.until(CLAIMS, name, "told", lambda claim: "failed calling webhook" in said_of(claim), 60)
        stays_calm(controller)
        assert not site.vm_names(state="Claimed")
    for name in ("one", "two"):
        site.bound(name, seconds=60)
    site.until_condition(POOLS, "pool", "Ready", "True", "Serving", seconds=60)
    assert '"level": "error"' not in controller.said


def test_a_removal_that_is_denied_is_told_and_tried_again_in_its_own_time(site: Site, start: Start) -> None:
    controller = start(watch_namespaces=site.namespace)
    site.pool(warm=3)
    site.until_warm(3)
    with policy_denies(site, "UPDATE", "no VM is touched on Fridays"):
        until("in force", lambda: denied(site), bool)
        site.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 1}}})
        told = site.until_condition(POOLS, "pool", "Degraded", "True", "ApiRefused")
        assert "removals are refused: " in told["message"]
        assert "no VM is touched on Fridays" in told["message"]
        stays_calm(controller)
        site.claim()
        site.until_condition(POOLS, "pool", "Ready", "False", "ApiRefused")
        site.delete(CLAIMS, "claim")
        site.until_condition(POOLS, "pool", "Ready", "True", "Serving")
    until("the surplus gone", site.vms, lambda vms: len(vms) == 1, 90)
    site.until_condition(POOLS, "pool", "Degraded", "False", "AsExpected")


def denied(site: Site) -> bool:
    """Whether a person's own change of a VM is refused by now."""
    name = site.vms()[0]["metadata"]["name"]
    answer = site.api.patch(site.path(VMS, name), {"metadata": {"annotations": {"a": "b"}}})
    return not answer.ok


def test_a_quota_that_is_raised_or_gets_room_lets_the_pool_go_on(
    site: Site, start: Start, admin: Rest
) -> None:
    controller = start(watch_namespaces=site.namespace)
    quotas = f"/api/v1/namespaces/{site.namespace}/resourcequotas"
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"count/virtualmachines.kubevirt.io": "2"}}}
    assert admin.post(quotas, quota).status == 201
    admin.wait(f"{quotas}/small", lambda answer: bool(answer.body.get("status", {}).get("used")), seconds=150)
    site.pool(warm=2)
    site.until_warm(2, seconds=60)
    site.claim()
    site.bound()
    said = site.until_condition(POOLS, "pool", "CapacityAvailable", "False", "QuotaRefused")
    assert "exceeded quota: small" in said["message"]
    stays_calm(controller)
    site.claim("second")
    site.bound("second")
    site.claim("third")
    told = site.until(CLAIMS, "third", "told", lambda claim: "exceeded quota: small" in said_of(claim))
    assert condition(told, "Bound")["reason"] == "Queued"
    site.delete(CLAIMS, "claim")
    site.bound("third", seconds=150)  # the quota's controller may lag behind several tries
    assert admin.patch(f"{quotas}/small", {"spec": {"hard": {"count/virtualmachines.kubevirt.io": "9"}}}).ok
    site.until_warm(2, seconds=90)
    site.until_condition(POOLS, "pool", "CapacityAvailable", "True", "BelowLimits")


def ending(admin: Rest) -> list[str]:
    """Namespaces on their way out: what is in them is this controller's work, too."""
    metas = [each["metadata"] for each in admin.get("/api/v1/namespaces").body["items"]]
    return [meta["name"] for meta in metas if "deletionTimestamp" in meta]


def test_a_namespace_that_ends_takes_its_pools_along_and_nobody_storms(
    site: Site, start: Start, admin: Rest
) -> None:
    controller = start()
    # Those of other tests end only now, where their own controllers are gone.
    until("no namespace of another test", lambda: ending(admin), lambda names: not names, 150)
    site.pool(warm=2)
    site.until_warm(2)
    site.claim()
    site.bound()
    admin.delete(f"/api/v1/namespaces/{site.namespace}")
    admin.wait(f"/api/v1/namespaces/{site.namespace}", lambda answer: answer.status == 404, seconds=90)
    stays_calm(controller)
    assert '"level": "error"' not in controller.said
