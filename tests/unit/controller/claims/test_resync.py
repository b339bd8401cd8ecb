"""Labels that a person stripped: which are put back, and onto whom never."""

from __future__ import annotations

import msgspec
import pytest

from controller.claims.resync import Resync, missing_labels, put_back
from controller.kube.errors import UnknownOutcome
from controller.kube.objects import ObjectMeta, OwnerReference
from controller.kube.store import Store
from crds import names
from tests.support.builders import claim_owner, make_bound_claim, make_vm, pool_owner, stored
from tests.support.patching import applied, refused
from tests.unit.kube.fake_api import says, serving

POOL_LABELS = {names.LABEL_POOL: "pool", names.LABEL_POOL_UID: "pool-uid", names.LABEL_STATE: "Pooled"}


def meta(owner: OwnerReference | None, **labels: str) -> ObjectMeta:
    return ObjectMeta(name="vm", uid="vm-uid", labels=labels, owner_references=[owner] if owner else [])


def test_a_warm_vm_gets_all_three_labels_back() -> None:
    assert missing_labels(meta(pool_owner()), None) == POOL_LABELS


@pytest.mark.parametrize("stripped", sorted(POOL_LABELS))
def test_only_what_is_missing_is_put_back(stripped: str) -> None:
    labels = {key: value for key, value in POOL_LABELS.items() if key != stripped}
    assert missing_labels(meta(pool_owner(), **labels), None) == {stripped: POOL_LABELS[stripped]}


def test_a_label_that_somebody_changed_is_left_to_repair() -> None:
    assert missing_labels(meta(pool_owner(), **{**POOL_LABELS, names.LABEL_STATE: "Draining"}), None) == {}


def test_a_claimed_vm_learns_its_pool_from_its_claims_status() -> None:
    claim = make_bound_claim()
    owner = claim_owner(claim.uid, claim.name)
    assert claim.status is not None
    assert missing_labels(meta(owner), claim) == {
        names.LABEL_CLAIM_UID: claim.uid,
        names.LABEL_STATE: "Claimed",
        names.LABEL_POOL: claim.status.pool,
        names.LABEL_POOL_UID: claim.status.pool_uid,
    }


def test_a_claimed_vm_whose_claim_is_not_known_gets_what_its_owner_alone_says() -> None:
    assert missing_labels(meta(claim_owner()), None) == {
        names.LABEL_CLAIM_UID: "claim-uid",
        names.LABEL_STATE: "Claimed",
    }


@pytest.mark.parametrize(
    "owner",
    [
        None,
        OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="x", uid="x", controller=True),
        OwnerReference(
            api_version="pool.kubevirt.io/v1", kind="VirtualMachinePool", uid="x", controller=True
        ),
        OwnerReference(api_version="bullpen.dev/v1alpha1", kind="VirtualMachinePool", uid="x"),
    ],
    ids=["nobody's", "a replica set's", "KubeVirt's own pool's", "not the controller"],
)
def test_a_vm_that_nothing_of_ours_owns_is_never_touched(owner: OwnerReference | None) -> None:
    assert missing_labels(meta(owner), None) == {}


@pytest.mark.parametrize("kept", [{}, {"app": "x"}], ids=["no label left", "another label left"])
def test_the_patch_fits_whatever_labels_are_left(kept: dict[str, str]) -> None:
    before = meta(pool_owner(), **kept)
    raw = {"metadata": msgspec.to_builtins(before)}
    if not kept:
        del raw["metadata"]["labels"]
    raw["metadata"]["ownerReferences"] = [
        {key: value for key, value in each.items() if value is not None}
        for each in raw["metadata"]["ownerReferences"]
    ]
    after = applied(raw, put_back(before, missing_labels(before, None)))
    assert after["metadata"]["labels"] == {**kept, **POOL_LABELS}


def test_the_patch_is_refused_when_the_owner_has_changed() -> None:
    before = meta(pool_owner(), app="x")
    raw = {"metadata": {"uid": "vm-uid", "labels": {"app": "x"}, "ownerReferences": []}}
    assert refused(raw, put_back(before, {names.LABEL_STATE: "Pooled"}))


async def test_a_cluster_without_a_vm_is_looked_at_too() -> None:
    async with serving() as api, api.client() as client:
        api.will(says(200, {"metadata": {"resourceVersion": "7"}, "items": None}))
        await Resync(client, Store(), 1.0).look()
        [asked] = api.asked
        assert asked.path == "/apis/kubevirt.io/v1/virtualmachines"


async def test_an_answer_that_is_no_list_costs_one_look_and_not_all_that_would_follow() -> None:
    async with serving() as api, api.client() as client:
        api.will(says(200, {"hello": "from a proxy"}))
        with pytest.raises(UnknownOutcome, match="not a list"):
            await Resync(client, Store(), 1.0).look()


@pytest.mark.parametrize(("key", "right"), [(names.LABEL_POOL_UID, "pool-uid"), (names.LABEL_POOL, "pool")])
def test_whose_a_vm_is_its_owner_says_and_a_label_that_says_otherwise_is_put_right(
    key: str, right: str
) -> None:
    before = meta(pool_owner(), **{**POOL_LABELS, key: "bogus"})
    assert missing_labels(before, None) == {key: right}
    raw = stored(make_vm(labels={key: "bogus"}, uid="vm-uid"))
    after = applied(raw, put_back(before, {key: right}))
    assert after["metadata"]["labels"][key] == right
    raw["metadata"]["labels"][key] = "changed again"
    assert refused(raw, put_back(before, {key: right}))
