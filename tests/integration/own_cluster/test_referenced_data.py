"""What is known of a template's data outlives the controller, which says so where it may not read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.integration.own_cluster.conftest import Start
from tests.integration.test_referenced_data import CHANGED, data, reading
from tests.support.auditing import AuditorThread
from tests.support.controller import running_controller
from tests.support.site import POOLS, Json, Site

pytestmark = pytest.mark.cluster

RULES: list[Json] = [
    {"apiGroups": ["bullpen.dev", "kubevirt.io", "coordination.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
]


def test_a_secret_that_changes_while_no_controller_runs_is_told_by_the_next(
    site: Site, auditor: AuditorThread, start: Start
) -> None:
    first = start(lease_duration="6s")
    data(site, "Secret", "init", "one")
    site.pool(template=reading(init="init"))
    site.until_warm(1)
    site.until_condition(POOLS, "pool", CHANGED, "False")
    first.kill()
    data(site, "Secret", "init", "two")

    start(resync_interval="5s")
    told = site.until_condition(POOLS, "pool", CHANGED, "True", "DataChanged", seconds=60)

    assert "1 unclaimed VM was made before" in told["message"]
    assert auditor.settled() == []


def test_without_the_right_to_read_secrets_it_says_so_and_nothing_else_suffers(
    site: Site, auditor: AuditorThread, kubeconfig: Path, tmp_path: Path
) -> None:
    narrow = _account(site, kubeconfig, tmp_path)
    data(site, "Secret", "init", "one")
    with running_controller(narrow, tmp_path, lease=f"lease-of-{site.namespace}"):
        site.pool(warm=2, template=reading(init="init"))
        site.until_warm(2)
        told = site.until_condition(POOLS, "pool", CHANGED, "Unknown", "DataUnreadable")
        assert "may not read Secret init" in told["message"]
        site.until_condition(POOLS, "pool", "Ready", "True")
        site.claim()
        site.bound()
        assert auditor.settled() == []


def _account(site: Site, kubeconfig: Path, directory: Path) -> Path:
    """A kubeconfig of an account that may do everything that the controller does, except to read Secrets."""
    name, kubectl = f"narrow-{site.namespace}", site.kubectl
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": RULES,
    }
    kubectl("create", "-f", "-", stdin=json.dumps(role))
    kubectl("create", "serviceaccount", "narrow", "-n", site.namespace)
    account = f"--serviceaccount={site.namespace}:narrow"
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    token = kubectl("create", "token", "narrow", "-n", site.namespace).strip()
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    config["users"] = [{"name": "narrow", "user": {"token": token}}]
    for each in config["contexts"]:
        each["context"]["user"] = "narrow"
    path = directory / "narrow.kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path
