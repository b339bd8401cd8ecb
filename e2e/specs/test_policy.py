"""The chart's admission policy: who may write VMs still does not change what Bullpen decided about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.rest import Answer, Rest
from e2e.specs.installation import Installation, objects, rendered
from e2e.specs.people import CLAIMS, POOLS, VMS
from e2e.specs.town import Town, forged_vm, town
from e2e.specs.words import full, make_claim, vm_of, wait
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.manifests import get
from tests.support.site import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("collected")]

STATE, CLAIM_UID = "bullpen.dev/state", "bullpen.dev/claim-uid"
POOL, POOL_UID, REVISION = "bullpen.dev/pool", "bullpen.dev/pool-uid", "bullpen.dev/revision"
NOTE, POLICY = "bullpen.dev/claim", "bullpen.dev/release-policy"
SOMEBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def here(
    admin: Rest,
    installation: Installation,
    kubeconfig: Path,
    collected: None,  # noqa: ARG001 - else the garbage collector would overlook the claim's VM
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Town]:
    with town(admin, installation, kubeconfig, tmp_path_factory.mktemp("people")) as laid:
        yield laid


def test_the_api_server_finds_nothing_to_complain_about_in_the_types(
    kubectl: Kubectl, installation: Installation
) -> None:
    installation.ensure()
    names = [each["metadata"]["name"] for each in objects(rendered()) if each["kind"].endswith("Policy")]
    assert len(names) == 6

    def judged(name: str) -> Any:
        policy = json.loads(kubectl("get", "validatingadmissionpolicy", name, "-o", "json"))
        status = policy.get("status", {})
        return status if status.get("observedGeneration") == policy["metadata"]["generation"] else None

    for name in names:
        status = until(f"{name} judged", partial(judged, name))
        assert status.get("typeChecking", {}) == {}, name


# ---- marks


def refused(answer: Answer, words: str) -> None:
    assert (answer.status, words in answer.message) == (403, True), answer


@pytest.mark.parametrize(
    "change",
    [
        *({STATE: "Pooled"}, {STATE: "Draining"}, {STATE: None}, {STATE: ""}),
        *({CLAIM_UID: None}, {CLAIM_UID: SOMEBODY}, {CLAIM_UID: None, STATE: "Pooled"}),
        *({POOL: "other"}, {POOL_UID: SOMEBODY}, {POOL: None, POOL_UID: None}, {REVISION: "0123456789"}),
        {"bullpen.dev/of-tomorrow": "x"},
    ],
    ids=str,
)
@pytest.mark.parametrize("whose", ["warm", "claimed"])
def test_nobody_changes_our_labels_of_a_vm_of_ours(here: Town, whose: str, change: dict[str, Any]) -> None:
    name = getattr(here, whose)
    before = here.vm(name)["metadata"]["labels"]
    answer = here.editor.patch(VMS, name, {"metadata": {"labels": change}})
    if {key: value for key, value in (before | change).items() if value is not None} == before:
        assert answer.ok, answer.message  # so already
    else:
        refused(answer, "labels under bullpen.dev/")
    assert here.vm(name)["metadata"]["labels"] == before


@pytest.mark.parametrize(
    "change", [{NOTE: "mine"}, {NOTE: None}, {POLICY: "Retain"}, {POLICY: None}], ids=str
)
def test_nobody_changes_the_notes_that_repair_goes_by(here: Town, change: dict[str, Any]) -> None:
    refused(
        here.editor.patch(VMS, here.claimed, {"metadata": {"annotations": change}}),
        "annotations under bullpen.dev/",
    )


def test_all_labels_can_not_be_taken_away_at_once(here: Town) -> None:
    refused(
        here.editor.patch(VMS, here.claimed, [{"op": "remove", "path": "/metadata/labels"}]), "labels under"
    )


def test_a_vms_status_is_no_way_round_to_its_labels(here: Town) -> None:
    before = here.vm(here.claimed)["metadata"]["labels"]
    assert here.editor.patch(VMS, here.claimed, {"metadata": {"labels": {STATE: "Pooled"}}}, "status").ok
    assert here.vm(here.claimed)["metadata"]["labels"] == before


# ---- owners


def test_nobody_takes_a_vm_from_its_owner(here: Town) -> None:
    for name in (here.warm, here.claimed):
        for change in ([], [here.owned("VirtualMachineClaim") | {"uid": SOMEBODY}]):
            answer = here.editor.patch(VMS, name, {"metadata": {"ownerReferences": change}})
            refused(answer, "which pool or claim owns a VM")


def test_nobody_takes_a_warm_vm_for_their_claim_without_waiting_their_turn(here: Town) -> None:
    owner = here.owned("VirtualMachineClaim")
    labels = {STATE: "Claimed", CLAIM_UID: owner["uid"]}
    change = {"metadata": {"ownerReferences": [owner], "labels": labels}}
    refused(here.editor.patch(VMS, here.warm, change), "which pool or claim owns a VM")


@pytest.mark.parametrize("kind", ["VirtualMachinePool", "VirtualMachineClaim"])
@pytest.mark.parametrize("controlling", [True, False])
def test_nobody_forges_a_warm_vm(here: Town, kind: str, *, controlling: bool) -> None:
    owner = {**here.owned(kind), "controller": controlling}
    labels = here.vm(here.warm)["metadata"]["labels"]
    refused(here.editor.make(VMS, forged_vm("forged", owner, labels)), "which pool or claim owns a VM")


def test_nobody_smuggles_a_vm_of_their_own_into_a_pool(here: Town) -> None:
    assert here.editor.make(VMS, forged_vm("smuggled", None, {})).ok
    labels = here.vm(here.warm)["metadata"]["labels"]
    change = {"metadata": {"labels": labels, "ownerReferences": [here.owned("VirtualMachinePool")]}}
    refused(here.editor.patch(VMS, "smuggled", change), "which pool or claim owns a VM")
    assert here.editor.delete(VMS, "smuggled").ok


# ---- what must go on working


def test_whoever_rewrites_a_whole_vm_as_it_was_is_let_through(here: Town) -> None:
    def rewrite() -> Answer:
        vm = here.editor.get(VMS, here.claimed).body
        vm["metadata"]["labels"]["team"] = "blue"
        vm["metadata"]["annotations"]["example.com/note"] = "x"
        vm["metadata"].setdefault("finalizers", []).append("example.com/careful")
        return here.editor.api.put(here.editor.path(VMS, here.claimed), vm)

    until("written", rewrite, lambda answer: answer.status != 409)
    assert here.vm(here.claimed)["metadata"]["labels"]["team"] == "blue"
    assert here.editor.patch(VMS, here.claimed, {"metadata": {"finalizers": None}}).ok


def test_vms_that_are_not_ours_are_nobodys_business_here(here: Town) -> None:
    copied = here.vm(here.claimed)["metadata"]["labels"]
    assert here.editor.make(VMS, forged_vm("clone", None, copied)).ok  # a clone, a restored backup
    here.excuse("clone")
    assert here.editor.patch(VMS, "clone", {"metadata": {"labels": {STATE: "Pooled", CLAIM_UID: None}}}).ok
    bare = forged_vm("bare", None, {})
    del bare["metadata"]["labels"]
    assert here.editor.make(VMS, bare).ok
    for name in ("clone", "bare"):
        assert here.editor.patch(VMS, name, {"metadata": {"labels": None, "annotations": None}}).ok
        assert here.editor.delete(VMS, name).ok


def test_people_still_delete_a_vm_and_the_pool_replaces_it(here: Town) -> None:
    gone = here.warm
    assert here.editor.delete(VMS, gone).ok
    until(
        "another",
        lambda: here.kubectl("get", "vm", "-n", here.namespace, "-o", "name"),
        lambda it: gone not in it,
    )
    full(here.kubectl, here.namespace, "ci", 1)


def test_an_administrator_breaks_the_glass_on_purpose(here: Town) -> None:
    """Neither cluster-admin is enough nor is a group that one is not in: it has to be said."""
    label = ["label", "vm", here.warm, "-n", here.namespace, "bullpen.dev/of-tomorrow=x"]
    here.kubectl(
        "create", "clusterrolebinding", f"root-{here.namespace}", "--clusterrole=cluster-admin", "--user=root"
    )
    try:
        with pytest.raises(KubectlError, match="labels under bullpen"):
            here.kubectl(*label, "--as=root")
        here.kubectl(*label, "--as=root", "--as-group=system:masters", "--dry-run=server")
    finally:
        here.kubectl("delete", "clusterrolebinding", f"root-{here.namespace}")


# ---- statuses


@pytest.mark.parametrize(("plural", "name"), [(CLAIMS, "job"), (POOLS, "ci")])
def test_nobody_writes_a_status_even_with_the_right_to(here: Town, plural: str, name: str) -> None:
    said = "the status says what Bullpen's controller did"
    changes: list[dict[str, Any] | None] = [{"observedGeneration": 99}, {"conditions": []}, None]
    for change in changes:
        refused(here.writer.patch(plural, name, {"status": change}, "status"), said)
    as_it_is = here.claim if plural == CLAIMS else here.pool
    same = {"status": {"conditions": as_it_is["status"]["conditions"]}}
    assert here.writer.patch(plural, name, same, "status").ok


# ---- a pool's finalizer


def test_a_pools_finalizer_is_the_controllers(here: Town) -> None:
    changes: list[list[str] | None] = [None, []]
    for change in changes:
        answer = here.owner.patch(POOLS, "ci", {"metadata": {"finalizers": change}})
        refused(answer, "the finalizer bullpen.dev/pool is the controller's")
    assert here.owner.patch(
        POOLS, "ci", {"metadata": {"finalizers": ["bullpen.dev/pool", "example.com/x"]}}
    ).ok
    assert here.owner.patch(POOLS, "ci", {"metadata": {"finalizers": ["bullpen.dev/pool"]}}).ok


# ---- histories


def test_only_the_controller_says_what_was_asked_of_a_pool_and_it_writes_no_other_config_map(
    here: Town, installation: Installation
) -> None:
    path = f"/api/v1/namespaces/{here.namespace}/configmaps"

    def written(name: str) -> dict[str, Any]:
        meta = {"name": name}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "binaryData": {"history": "AAAA"}}

    history = f"{path}/bullpen-history-gone"
    with Rest(installation.credentials()) as controller:
        refused(controller.post(path, written("settings")), "writes no ConfigMaps but the histories")
        assert controller.post(path, written("bullpen-history-gone")).ok
    refused(here.owner.api.post(path, written("bullpen-history-ci-2")), "nobody else writes them")
    for change in ({"binaryData": {"history": "BBBB"}}, {"binaryData": None}, {"data": {"more": "x"}}):
        refused(here.owner.api.patch(history, change), "nobody else writes them")
    assert here.owner.api.patch(history, {"metadata": {"labels": {"mine": "yes"}}}).ok
    assert here.owner.api.delete(history).ok


# ---- keeping a VM beyond its claim


def test_whoever_may_not_delete_vms_may_not_keep_one_beyond_its_claim(here: Town) -> None:
    said = "takes the right to delete VMs"
    refused(here.claimant.delete(CLAIMS, "job", "Orphan"), said)
    refused(here.claimant.api.delete(here.claimant.path(CLAIMS, "job"), {"orphanDependents": True}), said)
    refused(here.claimant.patch(CLAIMS, "job", {"metadata": {"finalizers": ["orphan"]}}), said)
    manifest = {**here.claim, "metadata": {"name": "clinging", "finalizers": ["orphan"]}}
    refused(here.claimant.make(CLAIMS, manifest), said)
    assert "deletionTimestamp" not in here.claim["metadata"]


def test_whoever_may_delete_vms_may_keep_one(here: Town) -> None:
    make_claim(here.kubectl, here.namespace, "kept", "ci")
    wait(here.kubectl, here.namespace, "vmc/kept", "condition=Ready")
    mine = vm_of(here.kubectl, here.namespace, "kept")
    assert here.editor.delete(CLAIMS, "kept", "Orphan").ok
    wait(here.kubectl, here.namespace, "vmc/kept", "delete")
    assert "ownerReferences" not in get(here.kubectl, here.namespace, "vm", mine)["metadata"]
    here.excuse(mine)
    assert here.editor.patch(
        VMS, mine, {"metadata": {"labels": {CLAIM_UID: None, STATE: None}}}
    ).ok  # theirs now
    assert here.editor.delete(VMS, mine).ok
