"""What is read from raw objects, however little is in them."""

from typing import Any

import pytest

from auditor import facts
from tests.unit.auditor.story import owner

META: dict[str, Any] = {"name": "x", "namespace": "ns", "uid": "x-uid"}


def vm(*owners: dict[str, Any], **labels: str) -> facts.Vm:
    marked = {f"bullpen.dev/{word.replace('_', '-')}": value for word, value in labels.items()}
    return facts.vm({"metadata": META | {"labels": marked, "ownerReferences": list(owners)}})


POOL = owner("VirtualMachinePool", "pool", "pool-uid")
CLAIM = owner("VirtualMachineClaim", "claim", "claim-uid")


def test_bare_objects_have_facts() -> None:
    assert facts.vm({"metadata": META}).owner is None
    assert facts.claim({"metadata": META}).phase == "Pending"
    assert facts.claim({"metadata": META}).named == ()
    assert facts.pool({"metadata": META}).deleted_at == ""


@pytest.mark.parametrize("absent", [{"labels": None}, {"annotations": None}, {"ownerReferences": None}])
def test_null_is_as_good_as_absent(absent: dict[str, None]) -> None:
    assert not facts.vm({"metadata": META | absent}).labelled


@pytest.mark.parametrize(
    ("seen", "ours"),
    [
        (vm(POOL, state="Pooled", pool_uid="pool-uid"), True),
        (vm(CLAIM, state="Claimed", pool_uid="pool-uid", claim_uid="claim-uid"), True),
        (vm(POOL), True),  # a person stripped its labels: the owner decides
        (vm(state="Pooled", pool_uid="pool-uid"), False),
        (vm(POOL, state="Pooled", pool_uid="another"), False),
        (vm(owner("VirtualMachinePool", "pool", "pool-uid", controller=False), pool_uid="pool-uid"), False),
        (vm(POOL | {"apiVersion": "pool.kubevirt.io/v1"}, pool_uid="pool-uid"), False),
        (vm(POOL | {"kind": "VirtualNodePool"}, pool_uid="pool-uid"), False),
    ],
)
def test_the_controller_owner_reference_decides_what_is_ours(seen: facts.Vm, ours: bool) -> None:  # noqa: FBT001
    assert seen.ours is ours


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (vm(POOL, state="Pooled", pool_uid="pool-uid"), ""),
        (vm(POOL, state="Draining", pool_uid="pool-uid"), ""),
        (vm(CLAIM, state="Draining", claim_uid="claim-uid"), ""),
        (vm(POOL, state="whatever a person wrote"), ""),
        (vm(CLAIM, state="Pooled", claim_uid="claim-uid"), "is Pooled and owned by a VirtualMachineClaim"),
        (vm(POOL, state="Claimed"), "is Claimed and owned by a VirtualMachinePool"),
        (vm(POOL, state="Retained"), "is Retained and owned by a VirtualMachinePool"),
        (vm(state="Claimed"), "is Claimed and owned by nobody"),
        (vm(CLAIM, state="Claimed", claim_uid="x"), "is owned by VirtualMachineClaim claim-uid, which"),
    ],
)
def test_what_is_wrong_with_an_owner_is_said(seen: facts.Vm, wrong: str) -> None:
    assert seen.misowned.startswith(wrong)
    assert bool(seen.misowned) is bool(wrong)


def test_the_retained_mark_counts_only_with_the_vms_own_uid() -> None:
    def marked(uid: str) -> facts.Vm:
        labels = {"bullpen.dev/state": "Retained"}
        return facts.vm({"metadata": META | {"labels": labels, "annotations": {facts.RETAINED_UID: uid}}})

    assert marked("x-uid").misowned == ""
    assert marked("copied-from-another").misowned == "is Retained and owned by nobody"


def test_only_what_people_set_is_theirs() -> None:
    def managed(manager: str) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "f:labels": {"f:bullpen.dev/state": {}, "f:app": {}},
            "f:ownerReferences": {},
        }
        return {"manager": manager, "fieldsV1": {"f:metadata": fields}}

    def by(*managers: str) -> frozenset[str]:
        meta = META | {"managedFields": [managed(manager) for manager in managers] + [{"manager": "empty"}]}
        return facts.vm({"metadata": meta}).by_person

    assert by("bullpen-controller", "virt-controller") == frozenset()
    assert by("bullpen-controller", "kubectl-edit") == {"bullpen.dev/state", "ownerReferences"}


def test_a_claim_is_in_use_while_it_is_bound_and_not_deleted() -> None:
    def claim(phase: str, **meta: Any) -> facts.Claim:
        return facts.claim({"metadata": META | meta, "status": {"phase": phase}})

    assert claim("Bound").in_use
    assert not claim("Releasing").in_use
    assert not claim("Bound", deletionTimestamp="2026-01-01T12:00:00Z").in_use
