"""The chart's role is what the controller uses: compared, both ways, with what an API server recorded."""

from __future__ import annotations

import copy
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds.names import LABEL_CLAIM_UID, LABEL_STATE
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.processes import Process
from e2e.rights import Recorded, Right, granted, of_rules, recorded
from e2e.specs.installation import NAMESPACE, RELEASE, Installation, objects, rendered
from e2e.specs.words import TEMPLATE, condition, full, make_claim, make_pool, names, vm_of, wait
from tests.support.auditing import AuditorThread
from tests.support.kubectl import Kubectl
from tests.support.manifests import get
from tests.support.ports import free_port
from tests.support.site import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("collected")]

USER = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
UNASKED = yaml.safe_load((Path(__file__).parent / "unasked-rights.yaml").read_text())
# What every account may do: ask what the server serves.
DISCOVERY = ("/api", "/apis", "/version")


@pytest.fixture
def log(control_plane: ControlPlane) -> Path:
    path = control_plane.directory / "logs" / "audit.jsonl"
    if "BULLPEN_E2E_KUBECONFIG" in os.environ:
        pytest.skip("this cluster's audit log is out of reach")
    assert path.exists(), "a guarded control plane keeps one"
    return path


@pytest.fixture
def beginning(log: Path) -> int:
    """Where the log ends before the two start: the first thing that one asks for is the Lease."""
    return log.stat().st_size


@pytest.fixture
def replicas(bullpen: Installation, beginning: int) -> Iterator[dict[str, Process]]:  # noqa: ARG001 - an order
    """Two controllers instead of the session's one; they look around and keep histories every two seconds."""
    bullpen.stop_controller()
    bullpen.kubectl("delete", "leases", "--all", "-n", NAMESPACE)
    started = {}
    for name in ("first", "second"):
        extra = {"BULLPEN_LISTEN": f"127.0.0.1:{free_port()}", "BULLPEN_IDENTITY": name}
        command = [sys.executable, "-m", "controller", "--kubeconfig", str(bullpen.credentials())]
        environ = {
            **bullpen.environ(),
            "BULLPEN_RESYNC_INTERVAL": "2s",
            "BULLPEN_SIZING_INTERVAL": "2s",
            **extra,
        }
        started[name] = bullpen.cluster.run_beside(name, command, ready=None, environ=environ)
    yield started
    bullpen.cluster.processes.stop("first", "second")


def hands_over_and_takes_back(kubectl: Kubectl, namespace: str) -> None:
    """Bound at once, bound after a wait, released, expired, removed after its time."""
    for kind in ("secret generic", "configmap"):
        kubectl("create", *kind.split(), "seed", "-n", namespace, "--from-literal=userdata=#cloud-config")
    make_pool(kubectl, namespace, "ci", warm=1, template=seeded())
    full(kubectl, namespace, "ci", 1)
    make_claim(kubectl, namespace, "released", "ci")
    wait(kubectl, namespace, "vmc/released", "condition=Ready")
    kubectl("delete", "vmc/released", "-n", namespace)
    make_claim(kubectl, namespace, "expired", "ci", lifetime="1s", ttlSecondsAfterFinished=0)
    make_claim(kubectl, namespace, "early", "later")
    wait(kubectl, namespace, "vmc/early", 'jsonpath={.status.conditions[?(@.type=="Bound")].status}=False')
    wait(kubectl, namespace, "vmc/expired", "delete")


def seeded() -> dict[str, Any]:
    """The template of the other specs, with data from a Secret and a ConfigMap."""
    template = copy.deepcopy(TEMPLATE)
    guest = template["spec"]["template"]["spec"]
    guest["volumes"] += [
        {"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "seed"}}},
        {"name": "more", "configMap": {"name": "seed"}},
    ]
    guest["domain"]["devices"]["disks"] += [
        {"name": name, "disk": {"bus": "virtio"}} for name in ("init", "more")
    ]
    return template


def loses_labels(kubectl: Kubectl, namespace: str, excuse: Callable[[str, str], None]) -> None:
    """A claimed VM's state set back (repair), and its claim's label taken off (resync)."""
    make_claim(kubectl, namespace, "kept", "ci")
    wait(kubectl, namespace, "vmc/kept", "condition=Ready")
    vm = vm_of(kubectl, namespace, "kept")
    excuse(get(kubectl, namespace, "vm", vm)["metadata"]["uid"], "a person changes its labels")
    kubectl("label", "vm", vm, "-n", namespace, "--overwrite", f"{LABEL_STATE}=Pooled")
    wait(kubectl, namespace, f"vm/{vm}", f"jsonpath={{.metadata.labels['{dotted(LABEL_STATE)}']}}=Claimed")
    kubectl("label", "vm", vm, "-n", namespace, f"{LABEL_CLAIM_UID}-")
    wait(kubectl, namespace, f"vm/{vm}", f"jsonpath={{.metadata.labels['{dotted(LABEL_CLAIM_UID)}']}}")


def dotted(label: str) -> str:
    return label.replace(".", "\\.")


def shrinks_and_goes(kubectl: Kubectl, namespace: str) -> None:
    kubectl("scale", "wp/ci", "-n", namespace, "--replicas=0")
    wait(kubectl, namespace, "wp/ci", "jsonpath={.status.total}=1")
    kubectl("delete", "wp/ci", "-n", namespace)
    assert names(kubectl, namespace, "wp") == set()


def leader(kubectl: Kubectl) -> str:
    [lease] = json.loads(kubectl("get", "leases", "-n", NAMESPACE, "-o", "json"))["items"] or [{}]
    return str(lease.get("spec", {}).get("holderIdentity", ""))


def test_the_role_is_what_the_controller_asks_for_and_no_more(
    kubectl: Kubectl,
    namespace: str,
    log: Path,
    beginning: int,
    replicas: dict[str, Process],
    auditor: AuditorThread,
) -> None:
    old = until("a leader", lambda: leader(kubectl))
    hands_over_and_takes_back(kubectl, namespace)
    replicas[old].signal(signal.SIGTERM)
    until("another leader", lambda: leader(kubectl), lambda name: name not in {"", old})
    loses_labels(kubectl, namespace, auditor.excuse)
    shrinks_and_goes(kubectl, namespace)

    with log.open("rb") as file:
        file.seek(beginning)
        asked = set(recorded(file.read().decode().splitlines(), USER))
    rights = granted(objects(rendered()), f"{NAMESPACE}:{RELEASE}")
    assert sorted(each for each in asked if not each.allowed) == []
    assert not_granted(asked, rights) == []
    unused = {right for right in rights if not any(right.covers(each.request) for each in asked)}
    excused = {Right(each["verb"], each["resource"]) for each in UNASKED}
    assert sorted(map(str, unused - excused)) == [], "granted, and never asked for"
    assert sorted(map(str, excused - rights)) == [], "excused, and not granted"


def not_granted(asked: set[Recorded], rights: set[Right]) -> list[Recorded]:
    return sorted(
        each
        for each in asked
        if not any(right.covers(each.request) for right in rights)
        and not each.request.resource.startswith(DISCOVERY)
    )


def controllers_role(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    [binding] = [each for each in manifests if each["kind"] == "ClusterRoleBinding"]
    names = {binding["roleRef"]["name"]}
    [role] = [
        each for each in manifests if each["kind"] == "ClusterRole" and each["metadata"]["name"] in names
    ]
    return role


@pytest.mark.usefixtures("bullpen", "log")  # where requests are recorded, the plugin is on, too
def test_without_the_right_to_finalizers_a_cluster_that_enforces_it_refuses_every_vm(
    kubectl: Kubectl, namespace: str
) -> None:
    role = controllers_role(objects(rendered()))
    without = [rule for rule in role["rules"] if not any("finalizers" in each for each in rule["resources"])]
    lost = set(of_rules(role["rules"])) - set(of_rules(without))
    assert len(lost) == 2
    assert lost < {Right(each["verb"], each["resource"]) for each in UNASKED}
    kubectl("apply", "-f", "-", stdin=json.dumps({**role, "rules": without}))
    try:
        make_pool(kubectl, namespace, "ci", warm=1)
        wait(kubectl, namespace, "wp/ci", "condition=Ready=False")
        assert "cannot set blockOwnerDeletion" in condition(kubectl, namespace, "wp/ci", "Ready")["message"]
    finally:
        kubectl("apply", "-f", "-", stdin=json.dumps(role))
    full(kubectl, namespace, "ci", 1)
