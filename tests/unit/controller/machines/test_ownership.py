"""Whose a VM is: the controller owner reference decides, and the labels must say the same."""

from __future__ import annotations

import msgspec
import pytest

from controller.kube.objects import OwnerReference
from controller.machines.objects import VirtualMachine
from controller.machines.ownership import (
    Owner,
    OwnerKind,
    controller_reference,
    forged,
    given_by_hand,
    owner_of,
    watched,
)
from crds import names
from tests.support.builders import claim_owner, make_vm, pool_owner


def _owned_by(*references: OwnerReference) -> VirtualMachine:
    vm = make_vm()
    metadata = msgspec.structs.replace(vm.metadata, owner_references=list(references))
    return msgspec.structs.replace(vm, metadata=metadata)


def _reference(**fields: object) -> OwnerReference:
    return msgspec.structs.replace(pool_owner(), **fields)


def test_a_pool_owns_the_vm_that_refers_to_it_and_carries_its_uid() -> None:
    assert owner_of(make_vm().metadata) == Owner(OwnerKind.POOL, "pool", "pool-uid")


def test_a_claim_owns_the_vm_that_refers_to_it_and_carries_its_uid() -> None:
    vm = make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid")
    assert owner_of(vm.metadata) == Owner(OwnerKind.CLAIM, "claim", "claim-uid")


def test_the_controller_reference_is_found_among_others() -> None:
    other = OwnerReference("v1", "ConfigMap", "someone", "someone-uid")
    vm = _owned_by(other, pool_owner())
    assert controller_reference(vm.metadata) == pool_owner()
    assert owner_of(vm.metadata) is not None


@pytest.mark.parametrize(
    "vm",
    [
        pytest.param(make_vm(owner=None), id="a clone that copied all labels and has no owner"),
        pytest.param(
            make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid", owner=None),
            id="a claimed VM restored without its claim",
        ),
        pytest.param(make_vm(pool_uid="pool-uid", owner=pool_owner("other-uid")), id="a namesake pool's VM"),
        pytest.param(
            make_vm(state=names.Mark.CLAIMED, claim_uid="claim-uid", owner=claim_owner("other-uid")),
            id="a namesake claim's VM",
        ),
        pytest.param(
            make_vm(owner=claim_owner()), id="a VM that refers to a claim and does not carry its UID"
        ),
        pytest.param(
            make_vm(labels={names.LABEL_POOL_UID: None}), id="a VM of the pool whose labels were stripped"
        ),
        pytest.param(
            _owned_by(_reference(api_version="pool.kubevirt.io/v1beta1")), id="KubeVirt's pool of that kind"
        ),
        pytest.param(
            _owned_by(_reference(api_version="bullpen.development/v1")), id="a group that begins like ours"
        ),
        pytest.param(_owned_by(_reference(kind="VirtualMachineBatch")), id="a kind we do not know"),
        pytest.param(_owned_by(_reference(controller=None)), id="an owner that does not say controller"),
        pytest.param(_owned_by(_reference(controller=False)), id="an owner that says it is no controller"),
        pytest.param(
            _owned_by(OwnerReference("apps/v1", "Deployment", "d", "d-uid", controller=True)),
            id="another controller's VM beside our labels",
        ),
    ],
)
def test_foreign_is(vm: VirtualMachine) -> None:
    assert owner_of(vm.metadata) is None


def test_an_owner_of_another_version_of_our_group_is_ours() -> None:
    assert owner_of(_owned_by(_reference(api_version="bullpen.dev/v1")).metadata) is not None


@pytest.mark.parametrize(
    ("vm", "is_forged"),
    [
        (make_vm(state="Claimed", owner=pool_owner()), True),
        (make_vm(state="Claimed", owner=pool_owner(), claim_uid="claim-uid"), False),
        (make_vm(state="Claimed"), False),
        (make_vm(), False),
        (make_vm(state="Claimed", owner=pool_owner(), deleting=True), False),
        (make_vm(state="Claimed", owner=None), False),
        (make_vm(state="Banana"), True),
        (make_vm(state=""), True),
        (make_vm(state="Draining"), False),
    ],
    ids=[
        "by a person",
        "with a claim's UID",
        "handed over",
        "pooled",
        "going",
        "nobody's",
        "no mark",
        "empty",
        "draining",
    ],
)
def test_a_vm_is_forged_when_a_person_marked_it_and_no_claim_has_it(
    vm: VirtualMachine, is_forged: object
) -> None:
    assert forged(vm) is is_forged


@pytest.mark.parametrize(
    ("vm", "is_so"),
    [
        pytest.param(make_vm(claim_uid="any", owner=pool_owner()), True, id="offered with a UID"),
        pytest.param(make_vm(state="Claimed", claim_uid="any", owner=pool_owner()), True, id="claimed"),
        pytest.param(make_vm(), False, id="a pool's"),
        pytest.param(make_vm(state="Claimed", claim_uid="claim-uid"), False, id="a claim's"),
        pytest.param(make_vm(state="Recycling", claim_uid="any", owner=pool_owner()), False, id="in reset"),
        pytest.param(make_vm(state="Draining", claim_uid="any", owner=pool_owner()), False, id="draining"),
        pytest.param(make_vm(claim_uid="any", owner=pool_owner(), deleting=True), False, id="going"),
        pytest.param(make_vm(claim_uid="any", owner=None), False, id="nobody's"),
    ],
)
def test_a_claims_uid_was_given_by_hand_when_the_pool_owns_the_vm_still(
    vm: VirtualMachine, is_so: object
) -> None:
    assert given_by_hand(vm) is is_so


def test_the_watches_tell_of_a_vm_as_long_as_it_has_its_pools_uid() -> None:
    assert watched(make_vm().metadata)
    assert not watched(make_vm(labels={names.LABEL_POOL_UID: None}).metadata)
