"""The chart with `watchNamespaces`: rights and claims served in those, and the rest left alone."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.rights import Request, Right, granted, recorded
from e2e.specs.installation import NAMESPACE, RELEASE, HelmError, Installation, objects, one, rendered
from e2e.specs.test_install import environment
from e2e.specs.words import full, make_claim, make_pool, names, vm_of, wait
from tests.support.auditing import AuditorThread
from tests.support.kubectl import Kubectl
from tests.support.manifests import get

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
NODES = {Request("list", "/nodes")}


def watching(*namespaces: str) -> list[str]:
    return ["--set", f"watchNamespaces={{{','.join(namespaces)}}}"]


def rights_of(manifests: str) -> set[Right]:
    return granted(objects(manifests), f"{NAMESPACE}:{RELEASE}")


def test_the_rights_are_the_same_in_each_namespace_and_none_are_elsewhere() -> None:
    wide, narrow = rights_of(rendered()), rights_of(rendered(*watching("team-a", "team-b")))
    leases = {right for right in wide if right.namespace == NAMESPACE}
    of_nodes = {right for right in wide if right.resource == "/nodes"}
    assert len(leases) == 3
    for team in ("team-a", "team-b"):
        here = {right for right in narrow if right.namespace == team}
        assert here == {right._replace(namespace=team) for right in wide - leases - of_nodes}
    assert {right.namespace for right in narrow} == {"team-a", "team-b", NAMESPACE}
    kinds = [
        each["kind"] for each in objects(rendered(*watching("team-a"), "--set", "userRoles.create=false"))
    ]
    assert not {"ClusterRole", "ClusterRoleBinding"} & set(kinds)


def test_the_controller_is_told_which_and_its_own_namespace_may_be_one_of_them() -> None:
    manifests = rendered(*watching(NAMESPACE, "team-a"))
    assert environment(manifests)["BULLPEN_WATCH_NAMESPACES"] == f"{NAMESPACE},team-a"
    roles = [each["metadata"] for each in objects(manifests) if each["kind"] == "Role"]
    placed = [(meta["namespace"], meta["name"]) for meta in roles]
    assert len(set(placed)) == len(placed) == 3
    assert "BULLPEN_WATCH_NAMESPACES" not in environment(rendered())
    assert one(rendered(), "ClusterRoleBinding")


@pytest.mark.parametrize("wrong", ["watchNamespaces={Team}", "watchNamespaces={a,a}", "watchNamespaces=a"])
def test_helm_refuses_what_is_no_list_of_namespaces(wrong: str) -> None:
    with pytest.raises(HelmError, match="values don't meet the specifications of the schema"):
        rendered("--set", wrong)


@pytest.fixture
def elsewhere(kubectl: Kubectl) -> Iterator[str]:
    name = f"elsewhere-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def narrow(bullpen: Installation, namespace: str, elsewhere: str, tmp_path: Path) -> Iterator[Installation]:
    """The session's release anew, for one namespace, with a pool and a claim that were in another before."""
    make_pool(bullpen.kubectl, elsewhere, "left", warm=0)
    wait(bullpen.kubectl, elsewhere, "wp/left", "condition=Ready")
    bullpen.remove()
    make_claim(bullpen.kubectl, elsewhere, "left", "left")
    image = os.environ.get("BULLPEN_E2E_IMAGE", "")
    installed = Installation(bullpen.cluster, tmp_path, image, watching(namespace))
    installed.ensure()
    yield installed
    installed.remove()
    bullpen.ensure()


@pytest.mark.usefixtures("collected")
def test_claims_of_that_namespace_are_served_and_those_elsewhere_are_left_alone(
    kubectl: Kubectl, namespace: str, elsewhere: str, auditor: AuditorThread, narrow: Installation
) -> None:
    log = narrow.cluster.directory / "logs" / "audit.jsonl"
    before = log.stat().st_size if log.exists() else 0
    make_pool(kubectl, namespace, "ci", warm=1)
    full(kubectl, namespace, "ci", 1)
    make_claim(kubectl, namespace, "job", "ci")
    wait(kubectl, namespace, "vmc/job", "condition=Ready")
    vm = vm_of(kubectl, namespace, "job")
    kubectl("delete", "vmc/job", "-n", namespace)
    wait(kubectl, namespace, f"vm/{vm}", "delete")
    full(kubectl, namespace, "ci", 1)
    assert "status" not in get(kubectl, elsewhere, "vmc", "left")
    assert names(kubectl, elsewhere, "vm") == set()
    assert said_of_nodes(narrow)
    assert auditor.settled() == []
    if log.exists():
        refused, beyond = compared(log, before, namespace)
        assert refused <= NODES, "asked for, although nothing gives the right"
        assert beyond <= NODES
    kubectl("delete", "wp/ci", "-n", namespace)


def said_of_nodes(installed: Installation) -> bool:
    return "/api/v1/nodes" in installed.said() and "forbidden" in installed.said()


def compared(log: Path, before: int, namespace: str) -> tuple[set[Any], set[Any]]:
    """What was asked for and refused, and what was asked for that the roles don't grant."""
    with log.open("rb") as file:
        file.seek(before)
        asked = list(recorded(file.read().decode().splitlines(), ACCOUNT))
    rights = rights_of(rendered(*watching(namespace)))
    assert any(each.request.namespace == namespace for each in asked)
    refused = {each.request for each in asked if not each.allowed}
    return refused, {
        each.request
        for each in asked
        if not any(right.covers(each.request) for right in rights)
        and not each.request.resource.startswith(("/api", "/version"))
    }
