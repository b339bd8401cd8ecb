"""Each step of the code has its right in the chart's roles; the comparison with an audit log is strict."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from controller.claims.protocol import StepName
from e2e.install import ROOT
from e2e.rights import Recorded, Request, Right, granted, of_rules, recorded

POOLS = "bullpen.dev/virtualmachinepools"
CLAIMS = "bullpen.dev/virtualmachineclaims"
VMS = "kubevirt.io/virtualmachines"
# A new step belongs here, and its right into charts/bullpen/files/rights.yaml.
STEPS = {
    StepName.HAND_OVER_VM: ("patch", VMS),
    StepName.HAND_OVER_CLAIM: ("patch", f"{CLAIMS}/status"),
    StepName.HAND_OVER_READ_VM: ("get", VMS),
    StepName.HAND_OVER_READ_CLAIM: ("get", CLAIMS),
    StepName.REPAIR_READ_VM: ("get", VMS),
    StepName.REPAIR_READ_CLAIM: ("get", CLAIMS),
    StepName.REPAIR_PUBLISH: ("patch", f"{CLAIMS}/status"),
    StepName.REPAIR_CONFIRM: ("get", VMS),
    StepName.REPAIR_RELABEL: ("patch", VMS),
    StepName.REPAIR_DESTROY: ("delete", VMS),
    StepName.RELEASE_DELETE: ("delete", VMS),
    StepName.EXPIRE_STATUS: ("patch", f"{CLAIMS}/status"),
    StepName.FINISH_STATUS: ("patch", f"{CLAIMS}/status"),
    StepName.LOST_READ_VM: ("get", VMS),
    StepName.LOST_STATUS: ("patch", f"{CLAIMS}/status"),
    StepName.CLAIM_STATUS: ("patch", f"{CLAIMS}/status"),
    StepName.CLAIM_QUEUE: ("patch", f"{CLAIMS}/status"),
    StepName.CLAIM_TTL: ("delete", CLAIMS),
    StepName.DRAIN_MARK: ("patch", VMS),
    StepName.DRAIN_DELETE: ("delete", VMS),
    StepName.RESYNC: ("list", VMS),
    StepName.RESYNC_LABELS: ("patch", VMS),
    StepName.POOL_CREATE: ("create", VMS),
    StepName.POOL_DRY_RUN: ("create", VMS),
    StepName.POOL_STATUS: ("patch", f"{POOLS}/status"),
    StepName.POOL_FINALIZER: ("patch", POOLS),
    StepName.POOL_READ: ("list", VMS),
    StepName.POOL_READ_VM: ("get", VMS),
    StepName.POOL_LOOK: ("get", POOLS),
    StepName.POOL_REFERENCE: ("get", "/secrets"),
    StepName.POOL_HISTORY_READ: ("get", "/configmaps"),
    StepName.POOL_HISTORY_MAKE: ("create", "/configmaps"),
    StepName.POOL_HISTORY_WRITE: ("patch", "/configmaps"),
}
# What is watched, by whom no step is named.
WATCHED = {POOLS, CLAIMS, VMS, "kubevirt.io/virtualmachineinstances", "/nodes"}
# What no step asks for and an admission plugin does: e2e/specs/unasked-rights.yaml has the reasons.
FINALIZERS = {("update", f"{POOLS}/finalizers"), ("update", f"{CLAIMS}/finalizers")}


@pytest.fixture
def chart() -> set[tuple[str, str]]:
    files = yaml.safe_load((ROOT / "charts/bullpen/files/rights.yaml").read_text())
    rights = of_rules([*files["cluster"], *files["namespaced"], *files["referencedData"]])
    return {(right.verb, right.resource) for right in rights}


def test_every_step_has_a_line_in_this_table() -> None:
    assert set(StepName) == set(STEPS), "a new step: say here what it asks for"


@pytest.mark.parametrize("step", StepName)
def test_every_step_has_its_right(chart: set[tuple[str, str]], step: StepName) -> None:
    assert STEPS[step] in chart, f"{step} is refused: add its right to charts/bullpen/files/rights.yaml"


def test_no_right_is_there_that_no_step_and_no_watch_asks_for(chart: set[tuple[str, str]]) -> None:
    watches = {(verb, resource) for verb in ("list", "watch") for resource in WATCHED}
    assert chart == {*STEPS.values(), *watches, *FINALIZERS}


# ---- the comparison itself


Json = dict[str, Any]


def rule(verb: str, group: str, resource: str, **more: Any) -> Json:
    return {"verbs": [verb], "apiGroups": [group], "resources": [resource], **more}


def bound(
    kind: str, name: str, rules: list[dict[str, Any]], account: str = "bullpen"
) -> list[dict[str, Any]]:
    """A role and its binding to an account of the namespace `home`."""
    meta: Json = {"name": name} if kind == "ClusterRole" else {"name": name, "namespace": "home"}
    binding = {
        "kind": f"{kind}Binding",
        "metadata": meta,
        "roleRef": {"kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "home"}],
    }
    return [{"kind": kind, "metadata": meta, "rules": rules}, binding]


def test_a_roles_rights_are_those_of_its_namespace_and_a_cluster_roles_are_everywhere() -> None:
    manifests = [
        *bound("Role", "own", [rule("get", "coordination.k8s.io", "leases", resourceNames=["leader"])]),
        *bound("ClusterRole", "all", [rule("list", "", "nodes")]),
    ]
    assert granted(manifests, "home:bullpen") == {
        Right("get", "coordination.k8s.io/leases", "home", "leader"),
        Right("list", "/nodes"),
    }


def test_anothers_rights_are_not_ours() -> None:
    manifests = bound("Role", "own", [rule("get", "", "secrets")], account="other")
    assert granted(manifests, "home:bullpen") == set()


@pytest.mark.parametrize("wild", [("*", "a", "b"), ("get", "*", "b"), ("get", "a", "b/*")])
def test_a_wildcard_is_refused(wild: tuple[str, str, str]) -> None:
    with pytest.raises(ValueError, match="wildcard"):
        list(of_rules([rule(*wild)]))


@pytest.mark.parametrize(
    ("right", "covered"),
    [
        (Right("get", VMS), True),
        (Right("get", VMS, "team"), True),
        (Right("get", VMS, "team", "vm-1"), True),
        (Right("get", VMS, "other"), False),
        (Right("get", VMS, "team", "vm-2"), False),
        (Right("list", VMS), False),
        (Right("get", f"{VMS}/status"), False),
    ],
)
def test_a_right_covers_what_kubernetes_would_allow_by_it(right: Right, *, covered: bool) -> None:
    assert right.covers(Request("get", VMS, "team", "vm-1")) is covered


def line(user: str, **more: Any) -> str:
    told = {"authorization.k8s.io/decision": "allow"}
    about = {"user": {"username": user}, "verb": "patch", "requestURI": "/apis?timeout=1"}
    return json.dumps({**about, "annotations": told, **more})


def test_an_audit_log_is_read_by_user_and_down_to_the_subresource() -> None:
    about = {"apiGroup": "bullpen.dev", "resource": "virtualmachinepools", "subresource": "status"}
    about |= {"namespace": "team", "name": "ci"}
    forbidden = {"authorization.k8s.io/decision": "forbid"}
    lines = [line("us", objectRef=about, annotations=forbidden), line("them"), line("us")]
    assert list(recorded(lines, "us")) == [
        Recorded(Request("patch", f"{POOLS}/status", "team", "ci"), allowed=False),
        Recorded(Request("patch", "/apis"), allowed=True),
    ]
