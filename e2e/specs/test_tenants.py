"""What tenants try, and what refuses them: roles, the definitions, the admission policy, the protocol.

Each of these is tried for real, with the credentials of an account that has the chart's role and no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from e2e.rest import Answer, Rest
from e2e.specs.installation import Installation
from e2e.specs.people import CLAIMANT, CLAIMS, POOLS, VMS, Person, settle
from e2e.specs.town import Town, forged_vm, town
from e2e.specs.words import condition, make_claim, vm_of, wait
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.manifests import claim_manifest, get, pool_manifest
from tests.support.site import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("collected")]

SOMEBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def here(
    admin: Rest,
    installation: Installation,
    kubeconfig: Path,
    collected: None,  # noqa: ARG001 - else the garbage collector would overlook the claims' VMs
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Town]:
    with town(admin, installation, kubeconfig, tmp_path_factory.mktemp("tenants")) as laid:
        yield laid


@pytest.fixture
def tenant(here: Town) -> Person:
    """Who has the chart's role for claims alone."""
    return here.claimant


def bound(here: Town, name: str) -> dict[str, Any]:
    wait(here.kubectl, here.namespace, f"vmc/{name}", "condition=Ready")
    return get(here.kubectl, here.namespace, "vmc", name)


# ---- what the role does not hold


def test_a_claimant_does_what_claimants_do(here: Town, tenant: Person) -> None:
    assert tenant.make(CLAIMS, claim_manifest("mine", "ci")).status == 201
    bound(here, "mine")
    assert tenant.get(CLAIMS, "mine").body["status"]["virtualMachines"][0]["addresses"]
    assert tenant.patch(CLAIMS, "mine", {"spec": {"lifetime": "30m"}}).ok
    assert tenant.api.get(tenant.path(CLAIMS)).ok
    assert tenant.delete(CLAIMS, "mine").ok
    wait(here.kubectl, here.namespace, "vmc/mine", "delete")


def test_a_claimant_has_no_hand_on_vms_pools_or_secrets(here: Town, tenant: Person) -> None:
    scale = {"spec": {"replicas": 9}}
    for answer in (
        *(tenant.get(VMS, here.claimed), tenant.delete(VMS, here.claimed), tenant.api.get(tenant.path(VMS))),
        tenant.patch(VMS, here.claimed, {"metadata": {"labels": {"bullpen.dev/state": "Pooled"}}}),
        tenant.make(VMS, forged_vm("forged", None, {})),
        *(tenant.get(POOLS, "ci"), tenant.delete(POOLS, "ci"), tenant.make(POOLS, pool_manifest("own"))),
        tenant.patch(POOLS, "ci", {"metadata": {"finalizers": None}}),
        *(tenant.patch(POOLS, "ci", scale, "scale"), tenant.patch(POOLS, "ci", {"status": {}}, "status")),
        tenant.api.get(f"/api/v1/namespaces/{here.namespace}/secrets"),
        tenant.api.get("/apis/bullpen.dev/v1alpha1/virtualmachineclaims"),  # of all namespaces
    ):
        assert (answer.status, "cannot" in answer.message) == (403, True), answer


# ---- a claim's status


def test_a_claimant_does_not_write_what_happened(here: Town, tenant: Person) -> None:
    stolen = {"phase": "Bound", "virtualMachines": [{"name": here.warm, "uid": SOMEBODY, "warm": True}]}
    assert tenant.patch(CLAIMS, "job", {"status": stolen}, "status").status == 403
    before = here.claim["status"]
    assert tenant.patch(CLAIMS, "job", {"status": stolen}).ok  # ignored: a status is a resource of its own
    assert here.claim["status"] == before


def test_a_claim_that_is_born_with_anothers_vm_in_its_status_has_none(here: Town, tenant: Person) -> None:
    stolen = {"phase": "Bound", "virtualMachines": here.claim["status"]["virtualMachines"]}
    made = tenant.make(CLAIMS, {**claim_manifest("thief", "nowhere"), "status": stolen})
    assert made.status == 201
    assert "status" not in made.body
    assert tenant.delete(CLAIMS, "thief").ok
    assert here.claim["status"]["phase"] == "Bound"
    assert "deletionTimestamp" not in here.vm(here.claimed)["metadata"]


# ---- another's name, UID, namespace, tenant


def test_a_claim_under_a_released_ones_name_and_uid_gets_another_vm(here: Town, tenant: Person) -> None:
    make_claim(here.kubectl, here.namespace, "first", "ci")
    old = bound(here, "first")
    here.kubectl("delete", "vmc/first", "-n", here.namespace)
    forged = claim_manifest("first", "ci")
    forged["metadata"] |= {"uid": old["metadata"]["uid"], "ownerReferences": []}
    made = until("made", lambda: tenant.make(CLAIMS, forged), lambda answer: answer.status == 201)
    assert made.body["metadata"]["uid"] != old["metadata"]["uid"]
    named = bound(here, "first")["status"]["virtualMachines"][0]
    assert named["uid"] != old["status"]["virtualMachines"][0]["uid"]
    assert tenant.delete(CLAIMS, "first").ok


@pytest.fixture
def outsider(kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[Person]:
    """A claimant of another namespace."""
    with settle(kubectl, namespace, "outsider", [CLAIMANT], tmp_path) as person:
        yield person


def test_a_claim_of_another_namespace_gets_nothing_from_this_pool(
    here: Town, kubectl: Kubectl, namespace: str, outsider: Person
) -> None:
    assert outsider.make(CLAIMS, claim_manifest("job", "ci")).status == 201
    assert wait_for_reason(kubectl, namespace, "job") == "PoolNotFound"
    for answer in (
        outsider.api.post(outsider.path(CLAIMS, namespace=here.namespace), claim_manifest("theirs", "ci")),
        outsider.api.get(outsider.path(CLAIMS, "job", here.namespace)),
        outsider.api.delete(outsider.path(CLAIMS, "job", here.namespace)),
    ):
        assert answer.status == 403
    assert outsider.make(CLAIMS, claim_manifest("far", f"../{here.namespace}/ci")).status == 201
    assert wait_for_reason(kubectl, namespace, "far") == "PoolNotFound"
    for name in ("job", "far"):
        assert outsider.delete(CLAIMS, name).ok


def wait_for_reason(kubectl: Kubectl, namespace: str, claim: str) -> str:
    wait(kubectl, namespace, f"vmc/{claim}", 'jsonpath={.status.conditions[?(@.type=="Bound")].status}=False')
    return str(condition(kubectl, namespace, f"vmc/{claim}", "Bound")["reason"])


@pytest.mark.parametrize(
    "field",
    [{"tenant": "others"}, {"release": "Retain"}, {"priority": 100}, {"subjects": [{"kind": "User"}]}],
    ids=lambda field: next(iter(field)),
)
def test_a_field_that_a_claim_does_not_have_says_nothing(here: Town, tenant: Person, field: Any) -> None:
    """Another's tenant name and a laxer release can't be said at all: there are no such fields."""
    manifest = claim_manifest("lax", "nowhere", **field)
    strict = tenant.make(CLAIMS, manifest, fieldValidation="Strict")
    assert (strict.status, "unknown field" in strict.message) == (400, True)
    made = tenant.make(CLAIMS, manifest)
    assert made.status == 201
    assert not made.body["spec"].keys() & field.keys()
    assert tenant.delete(CLAIMS, "lax").ok
    assert here.claim["status"]["releasePolicy"] == "Delete"


# ---- more than the pool allows


def test_a_claim_is_not_held_longer_than_the_pool_allows(here: Town, tenant: Person) -> None:
    assert tenant.make(CLAIMS, claim_manifest("long", "ci", lifetime="720h")).status == 201
    status = bound(here, "long")["status"]
    at, end = (datetime.fromisoformat(status[key]) for key in ("boundAt", "expiresAt"))
    assert end - at == timedelta(hours=1)  # the pool's claims.lifetime.max
    assert tenant.patch(CLAIMS, "long", {"spec": {"lifetime": None}}).ok
    assert tenant.delete(CLAIMS, "long").ok


@pytest.mark.parametrize(
    "key",
    [
        *("bullpen.dev/state", "bullpen.dev/claim-uid", "bullpen.dev/pool-uid", "bullpen.dev/anything"),
        *("kubevirt.io/domain", "vm.kubevirt.io/name", "kubernetes.io/x", "cdi.kubevirt.io/x"),
        "app.kubernetes.io/managed-by",
    ],
)
@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_a_claim_puts_no_key_of_the_systems_onto_a_vm(tenant: Person, kind: str, key: str) -> None:
    answer = tenant.make(CLAIMS, claim_manifest("marked", "ci", metadata={kind: {key: "Pooled"}}))
    assert (answer.status, "are reserved" in answer.message) == (422, True), answer


def test_a_claims_own_labels_mean_nothing(here: Town, tenant: Person) -> None:
    manifest = claim_manifest("labelled", "ci")
    ours = {"bullpen.dev/state": "Pooled", "bullpen.dev/claim-uid": SOMEBODY}
    manifest["metadata"] |= {"labels": ours, "annotations": {"bullpen.dev/claim": "job"}}
    assert tenant.make(CLAIMS, manifest).status == 201
    bound(here, "labelled")
    vm = here.vm(vm_of(here.kubectl, here.namespace, "labelled"))["metadata"]
    assert vm["labels"]["bullpen.dev/state"] == "Claimed"
    assert vm["annotations"]["bullpen.dev/claim"] == "labelled"
    assert tenant.delete(CLAIMS, "labelled").ok


def test_a_claim_is_not_moved_to_another_pool(tenant: Person) -> None:
    answer = tenant.patch(CLAIMS, "job", {"spec": {"poolRef": {"name": "other"}}})
    assert (answer.status, "can't be changed" in answer.message) == (422, True)


# ---- Kubernetes' own roles


def may(here: Town, who: str, verb: str, what: str) -> bool:
    resource, _, subresource = what.partition("/")
    account = f"--as=system:serviceaccount:{here.namespace}:{who}"
    question = ["auth", "can-i", verb, f"{resource}.bullpen.dev", account, "-n", here.namespace]
    try:
        return here.kubectl(*question, f"--subresource={subresource}").strip() == "yes"
    except KubectlError:
        return False


def test_view_edit_and_admin_hold_what_people_expect_of_them(here: Town, tmp_path: Path) -> None:
    settle(here.kubectl, here.namespace, "viewer", ["view"], tmp_path).api.close()
    until("aggregated", lambda: may(here, "owner", "patch", f"{POOLS}/scale"))
    held = {
        (who, verb, what)
        for who in ("viewer", "editor", "owner")
        for verb in ("get", "create", "patch", "delete")
        for what in (CLAIMS, POOLS)
        if may(here, who, verb, what)
    }
    everybody = {(who, "get", what) for who in ("viewer", "editor", "owner") for what in (CLAIMS, POOLS)}
    writers = {(who, verb, CLAIMS) for who in ("editor", "owner") for verb in ("create", "patch", "delete")}
    owners = {("owner", verb, POOLS) for verb in ("create", "patch", "delete")}
    assert held == everybody | writers | owners


@pytest.mark.parametrize(
    "what", [f"{CLAIMS}/status", f"{POOLS}/status", f"{CLAIMS}/finalizers", f"{POOLS}/finalizers"]
)
def test_no_role_for_people_writes_a_status_or_finalizers(kubectl: Kubectl, here: Town, what: str) -> None:
    for verb in ("update", "patch"):
        assert not may(here, "owner", verb, what)
    roles = json.loads(kubectl("get", "clusterroles", "-l", "app.kubernetes.io/name=bullpen", "-o", "json"))
    people = [each for each in roles["items"] if each["metadata"]["name"].count(":") == 2]
    assert len(people) == 5
    assert not any(what in rule["resources"] for each in people for rule in each["rules"])


def refusals(*answers: Answer) -> list[int]:
    return [answer.status for answer in answers]


def test_whoever_edits_does_not_write_the_pool_that_bounds_them(here: Town) -> None:
    change = {"spec": {"claims": {"lifetime": {"max": "720h"}}}}
    assert refusals(
        here.editor.patch(POOLS, "ci", change),
        here.editor.patch(POOLS, "ci", {"metadata": {"finalizers": None}}),
        here.editor.make(POOLS, pool_manifest("own")),
        here.editor.delete(POOLS, "ci"),
    ) == [403, 403, 403, 403]
