"""A claim gets a VM and its address, holds it, and gives it back when it is deleted."""

from __future__ import annotations

import ipaddress

import pytest

from e2e.specs.words import (
    condition,
    full,
    make_claim,
    make_pool,
    names,
    vm_of,
    wait,
)
from tests.support.kubectl import Kubectl
from tests.support.manifests import get

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("bullpen")]


def test_a_claim_gets_a_warm_vm_with_an_address_and_gives_it_back(kubectl: Kubectl, namespace: str) -> None:
    make_pool(kubectl, namespace, "ci", warm=2)
    full(kubectl, namespace, "ci", 2)
    warm = names(kubectl, namespace, "vm")

    make_claim(kubectl, namespace, "job", "ci")
    wait(kubectl, namespace, "vmc/job", "condition=Ready")
    mine = vm_of(kubectl, namespace, "job")
    assert mine in warm
    path = "jsonpath={.status.virtualMachines[0].addresses[0].address}"
    address = kubectl("get", "vmc/job", "-n", namespace, "-o", path)
    assert ipaddress.ip_address(address)
    header, row = kubectl("get", "vmc", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "PHASE", "VM", "ADDRESS", "POOL", "WAITED", "EXPIRES", "AGE"]
    assert row.split()[:5] == ["job", "Bound", mine, address, "ci"]
    full(kubectl, namespace, "ci", 2)
    assert len(names(kubectl, namespace, "vm")) == 3

    kubectl("delete", "vmc/job", "-n", namespace)
    wait(kubectl, namespace, f"vm/{mine}", "delete")
    full(kubectl, namespace, "ci", 2)
    assert mine not in names(kubectl, namespace, "vm")


def test_a_claim_on_an_empty_pool_orders_a_vm(kubectl: Kubectl, namespace: str) -> None:
    make_pool(kubectl, namespace, "idle", warm=0)
    make_claim(kubectl, namespace, "job", "idle")
    wait(kubectl, namespace, "vmc/job", "condition=Ready")
    assert names(kubectl, namespace, "vm") == {vm_of(kubectl, namespace, "job")}


def test_a_claim_on_a_missing_pool_waits_and_binds_when_the_pool_appears(
    kubectl: Kubectl, namespace: str
) -> None:
    make_claim(kubectl, namespace, "early", "later")
    wait(kubectl, namespace, "vmc/early", 'jsonpath={.status.conditions[?(@.type=="Bound")].status}=False')
    assert condition(kubectl, namespace, "vmc/early", "Bound")["reason"] == "PoolNotFound"
    make_pool(kubectl, namespace, "later", warm=1)
    wait(kubectl, namespace, "vmc/early", "condition=Ready")


@pytest.mark.usefixtures("collected")
def test_a_claim_that_is_orphaned_leaves_its_vm_to_the_user(kubectl: Kubectl, namespace: str) -> None:
    make_pool(kubectl, namespace, "ci", warm=1)
    make_claim(kubectl, namespace, "job", "ci")
    wait(kubectl, namespace, "vmc/job", "condition=Ready")
    mine = vm_of(kubectl, namespace, "job")
    kubectl("delete", "vmc/job", "-n", namespace, "--cascade=orphan")
    full(kubectl, namespace, "ci", 1)
    assert "ownerReferences" not in get(kubectl, namespace, "vm", mine)["metadata"]


@pytest.mark.usefixtures("collected")
def test_deleting_a_claim_in_the_foreground_waits_for_its_vm(kubectl: Kubectl, namespace: str) -> None:
    make_pool(kubectl, namespace, "ci", warm=1)
    make_claim(kubectl, namespace, "job", "ci")
    wait(kubectl, namespace, "vmc/job", "condition=Ready")
    mine = vm_of(kubectl, namespace, "job")
    kubectl("delete", "vmc/job", "-n", namespace, "--cascade=foreground", seconds=300)
    assert mine not in names(kubectl, namespace, "vm")
