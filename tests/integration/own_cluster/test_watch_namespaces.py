"""A controller that works in the namespaces it was told, with rights in those alone."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.rest import Rest
from tests.integration.own_cluster.conftest import Start
from tests.support.auditing import AuditorThread
from tests.support.controller import Controller
from tests.support.kubectl import Kubectl
from tests.support.site import CLAIMS, POOLS, VMS, Site, holds, named_vm, until

pytestmark = pytest.mark.cluster

BULLPEN = ["virtualmachinepools", "virtualmachineclaims", "virtualmachinepools/status"]
RULES = [
    {"apiGroups": ["bullpen.dev"], "resources": [*BULLPEN, "virtualmachineclaims/status"], "verbs": ["*"]},
    {"apiGroups": ["kubevirt.io"], "resources": [VMS, "virtualmachineinstances"], "verbs": ["*"]},
]


@pytest.fixture
def elsewhere(admin: Rest, kubectl: Kubectl) -> Iterator[Site]:
    """Another namespace; it is there from the beginning."""
    name = f"elsewhere-{secrets.token_hex(3)}"
    make_namespace(admin, name)
    yield Site(admin, kubectl, name)
    admin.delete(f"/api/v1/namespaces/{name}")


def make_namespace(admin: Rest, name: str) -> None:
    made = admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert made.status == 201, made.message


def served(site: Site, claim: str = "claim") -> None:
    """A pool of this namespace fills, hands a VM over, and destroys it at the end."""
    site.pool(warm=1)
    site.until_warm(1)
    site.claim(claim)
    vm = named_vm(site.bound(claim))
    site.delete(CLAIMS, claim)
    site.until_gone(VMS, vm["name"], vm["uid"])


def untouched(site: Site) -> bool:
    """Nobody has written to its pool or claim, or made a VM."""
    pool, claim = site.get(POOLS, "pool"), site.get(CLAIMS, "claim")
    statuses = pool.get("status"), claim.get("status")
    return statuses == (None, None) and "finalizers" not in pool["metadata"] and not site.vms()


def test_it_works_where_it_was_told_to_and_leaves_the_rest_alone(
    site: Site, auditor: AuditorThread, elsewhere: Site, admin: Rest, start: Start
) -> None:
    late = Site(admin, site.kubectl, f"late-{secrets.token_hex(3)}")
    elsewhere.pool(warm=1)
    elsewhere.claim()
    start(watch_namespaces=f"{site.namespace}, {late.namespace}")
    served(site)
    make_namespace(admin, late.namespace)
    served(late)
    holds("left alone", lambda: untouched(elsewhere))
    assert auditor.settled() == []
    admin.delete(f"/api/v1/namespaces/{late.namespace}")


def test_a_list_of_one_namespace_says_nothing_about_another(
    site: Site, auditor: AuditorThread, elsewhere: Site, start: Start
) -> None:
    first = start(watch_namespaces=f"{site.namespace},{elsewhere.namespace}")
    for each in (site, elsewhere):
        each.pool(warm=2)
    for each in (site, elsewhere):
        each.until_warm(2)
    made = site.vm_names() | elsewhere.vm_names()
    second = start(wait=False, watch_namespaces=f"{site.namespace},{elsewhere.namespace}")
    second.wait_until_says("waiting for the lease")
    assert first.stop() == 0
    second.wait_until_says('"event": "ready"')
    for each in (site, elsewhere):
        each.claim()
        assert named_vm(each.bound())["name"] in made
        each.until_warm(2)
    assert made <= site.vm_names() | elsewhere.vm_names(), "none was taken for missing, none for surplus"
    assert auditor.settled() == []


@pytest.fixture
def account(kubectl: Kubectl, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig of an account that may nothing but keep a Lease, in the namespace that they are in."""
    kubectl("create", "serviceaccount", "narrow", "-n", namespace)
    leases = ["--verb=get,create,update", "--resource=leases.coordination.k8s.io"]
    name = f"leases-{namespace[-6:]}"
    kubectl("create", "role", name, "-n", "default", *leases)
    subject = f"--serviceaccount={namespace}:narrow"
    kubectl("create", "rolebinding", name, "-n", "default", f"--role={name}", subject)
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
    token = kubectl("create", "token", "narrow", "-n", namespace).strip()
    config["users"] = [{"name": "narrow", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "narrow"
    path = tmp_path / "narrow-kubeconfig"
    path.write_text(json.dumps(config))
    return path


def allow(site: Site, account_namespace: str) -> None:
    """Let the account work in the site's namespace: a Role, no ClusterRole."""
    of_role = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + site.namespace
    meta = {"name": "bullpen"}
    assert site.api.post(f"{of_role}/roles", {"metadata": meta, "rules": RULES}).ok
    binding = {
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "bullpen"},
        "subjects": [{"kind": "ServiceAccount", "name": "narrow", "namespace": account_namespace}],
    }
    assert site.api.post(f"{of_role}/rolebindings", binding).ok


def test_rights_in_one_of_two_namespaces_serve_that_one_and_those_that_come_later_the_other(
    site: Site, auditor: AuditorThread, elsewhere: Site, account: Path, start: Start
) -> None:
    allow(site, site.namespace)
    elsewhere.pool(warm=1)
    elsewhere.claim()
    both = f"{elsewhere.namespace},{site.namespace}"
    controller = start(account=account, watch_namespaces=both)
    served(site)
    told(controller, "/api/v1/nodes")
    told(controller, f'"namespace": "{elsewhere.namespace}"')
    assert untouched(elsewhere)
    allow(elsewhere, site.namespace)
    elsewhere.bound()
    site.claim("again")
    site.bound("again")
    elsewhere.patch(POOLS, "pool", {"spec": {"warm": {"replicas": 2}}})
    elsewhere.until_warm(2)
    assert auditor.settled() == []
    assert controller.stop() == 0
    assert '"level": "error"' not in controller.said


def told(controller: Controller, words: str) -> None:
    """It has said what it does without."""
    until(f"told of {words}", lambda: words in controller.said)
