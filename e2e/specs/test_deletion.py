"""Deleting a pool: its unclaimed VMs go, claimed ones stay; with a controller and without one."""

from __future__ import annotations

import re
import shlex

import pytest

from e2e.specs.installation import Installation
from e2e.specs.words import condition, full, make_claim, make_pool, names, vm_of, wait
from tests.support.kubectl import Kubectl
from tests.support.manifests import get

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture
def claimed(
    kubectl: Kubectl,
    namespace: str,
    bullpen: Installation,  # noqa: ARG001 - it serves
    collected: None,  # noqa: ARG001 - what is deleted is cleaned up after
) -> str:
    """A full pool `ci` of two, and the name of the VM that the claim `job` holds."""
    make_pool(kubectl, namespace, "ci", warm=2)
    make_claim(kubectl, namespace, "job", "ci")
    wait(kubectl, namespace, "vmc/job", "condition=Ready")
    full(kubectl, namespace, "ci", 2)
    return vm_of(kubectl, namespace, "job")


def test_a_deleted_pool_takes_its_unclaimed_vms_and_leaves_the_claimed(
    kubectl: Kubectl, namespace: str, claimed: str
) -> None:
    kubectl("delete", "wp/ci", "-n", namespace, seconds=300)
    unclaimed = names(kubectl, namespace, "vm") - {claimed}
    for vm in unclaimed:
        wait(kubectl, namespace, f"vm/{vm}", "delete")
    assert names(kubectl, namespace, "vm") == {claimed}
    assert condition(kubectl, namespace, "vmc/job", "Ready")["status"] == "True"
    kubectl("delete", "vmc/job", "-n", namespace)
    wait(kubectl, namespace, f"vm/{claimed}", "delete")


def test_a_pool_that_is_orphaned_leaves_all_its_vms(kubectl: Kubectl, namespace: str, claimed: str) -> None:
    before = names(kubectl, namespace, "vm")
    kubectl("delete", "wp/ci", "-n", namespace, "--cascade=orphan", seconds=300)
    assert names(kubectl, namespace, "vm") == before
    assert condition(kubectl, namespace, "vmc/job", "Ready")["status"] == "True"
    assert claimed in before


def test_a_pool_deleted_while_no_controller_runs_says_what_to_do_and_that_works(
    kubectl: Kubectl, namespace: str, bullpen: Installation, claimed: str
) -> None:
    bullpen.leave(namespace, "ci")
    ready = condition(kubectl, namespace, "wp/ci", "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "ControllerStopped")
    assert "no controller runs" in kubectl("describe", "wp/ci", "-n", namespace)

    delete, patch = (shlex.split(command) for command in re.findall(r"`kubectl (.*?)`", ready["message"]))
    kubectl(*delete)
    assert get(kubectl, namespace, "wp", "ci")["metadata"]["deletionTimestamp"]
    kubectl(*patch)
    wait(kubectl, namespace, "wp/ci", "delete")
    for vm in names(kubectl, namespace, "vm") - {claimed}:
        wait(kubectl, namespace, f"vm/{vm}", "delete")

    assert names(kubectl, namespace, "vm") == {claimed}
    assert condition(kubectl, namespace, "vmc/job", "Ready")["status"] == "True"


def test_a_pool_goes_on_where_it_was_when_the_controller_runs_again(
    kubectl: Kubectl, namespace: str, bullpen: Installation, claimed: str
) -> None:
    before = names(kubectl, namespace, "vm")
    bullpen.stop_controller()
    kubectl("delete", "vmc/job", "-n", namespace)
    wait(kubectl, namespace, f"vm/{claimed}", "delete")
    make_claim(kubectl, namespace, "next", "ci")
    bullpen.start_controller()
    wait(kubectl, namespace, "vmc/next", "condition=Ready")
    wait(kubectl, namespace, "wp/ci", "condition=Ready")
    assert vm_of(kubectl, namespace, "next") in before
