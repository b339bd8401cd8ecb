"""A pool keeps the VMs that it is told to, and kubectl shows, explains and scales it."""

from __future__ import annotations

import pytest

from e2e.specs.installation import Installation
from e2e.specs.words import full, make_pool, names, wait
from tests.support.kubectl import Kubectl
from tests.support.manifests import get

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_a_pool_fills_and_says_so_to_kubectl(kubectl: Kubectl, namespace: str, bullpen: Installation) -> None:
    make_pool(kubectl, namespace, "ci", warm=2)
    wait(kubectl, namespace, "wp/ci", "condition=Ready")
    full(kubectl, namespace, "ci", 2)
    vms = names(kubectl, namespace, "vm")
    assert len(vms) == 2
    assert all(vm.startswith("ci-") for vm in vms)

    header, row = kubectl("get", "wp", "-n", namespace).splitlines()
    assert header.split() == [
        "NAME", "WARM", "TARGET", "CLAIMED", "PENDING", "BOOTING", "DECIDED-BY", "AGE",
    ]  # fmt: skip
    assert row.split()[:7] == ["ci", "2", "2", "0", "0", "0", "replicas"]
    assert "bullpen.dev" in kubectl("get", "bullpen", "-n", namespace, "-o", "name")

    described = kubectl("describe", "wp/ci", "-n", namespace)
    assert "the pool serves claims" in described
    assert "2 of 2 VMs are warm" in described
    assert '"level": "error"' not in bullpen.said()


@pytest.mark.usefixtures("bullpen")
def test_kubectl_scale_sets_how_many_vms_are_warm(kubectl: Kubectl, namespace: str) -> None:
    make_pool(kubectl, namespace, "ci", warm=1)
    full(kubectl, namespace, "ci", 1)
    kubectl("scale", "wp/ci", "-n", namespace, "--replicas=3")
    full(kubectl, namespace, "ci", 3)
    kept = names(kubectl, namespace, "vm")
    kubectl("scale", "wp/ci", "-n", namespace, "--current-replicas=3", "--replicas=1")
    wait(kubectl, namespace, "wp/ci", "jsonpath={.status.total}=1")
    full(kubectl, namespace, "ci", 1)
    assert len(names(kubectl, namespace, "vm")) == 1
    assert names(kubectl, namespace, "vm") < kept


@pytest.mark.usefixtures("bullpen")
def test_a_pool_of_none_has_no_vm_and_is_ready_all_the_same(kubectl: Kubectl, namespace: str) -> None:
    make_pool(kubectl, namespace, "idle", warm=0)
    wait(kubectl, namespace, "wp/idle", "condition=Ready")
    assert names(kubectl, namespace, "vm") == set()
    assert get(kubectl, namespace, "wp", "idle")["status"]["selector"]


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize(
    "field",
    [
        "wp.spec.warm.replicas",
        "wp.spec.limits.maxReplicas",
        "wp.status.conditions",
        "vmc.spec.whenEmpty.policy",
        "vmc.status.virtualMachines.addresses",
    ],
)
def test_kubectl_explains_every_field_in_a_sentence(kubectl: Kubectl, field: str) -> None:
    said = kubectl("explain", field)
    assert field.rpartition(".")[2] in said
    assert "<no description>" not in said
    assert len(said.partition("DESCRIPTION:")[2].split()) >= 4
