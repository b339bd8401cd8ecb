"""What `kubectl bullpen audit` says of objects written by hand, with no controller at work.

A controller would put some of it right before anybody looks.
"""

from __future__ import annotations

import pytest

from crds.names import API_VERSION, LABEL_CLAIM_UID, LABEL_POOL, LABEL_POOL_UID, LABEL_STATE
from tests.support.audit_command import Command
from tests.support.site import CLAIMS, VMS, Json, Site, guest

pytestmark = pytest.mark.cluster


def vm(**meta: object) -> Json:
    """A VM that nobody starts."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "vm", **meta},
        "spec": {"runStrategy": "Halted", "template": {"spec": guest()}},
    }


def test_a_state_that_there_is_not_is_a_violation(site: Site, audit: Command) -> None:
    pool = site.pool(warm=0)["metadata"]
    owner = {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachinePool",
        "name": pool["name"],
        "uid": pool["uid"],
        "controller": True,
    }
    labels = {LABEL_STATE: "Sleeping", LABEL_POOL: pool["name"], LABEL_POOL_UID: pool["uid"]}
    site.create(VMS, vm(labels=labels, ownerReferences=[owner]))
    said = audit()
    assert said.code == 1
    assert said.whats == [("violation", "illegal-state", "vm"), ("warning", "unseen", "pool")]
    assert "a controller at work puts it right" in said.findings[0]["advice"]


def test_claims_that_say_what_is_not_so_are_violations(site: Site, audit: Command) -> None:
    first = site.claim("first", pool="none")
    site.claim("second", pool="none")
    labels = {LABEL_STATE: "Claimed", LABEL_CLAIM_UID: first["metadata"]["uid"]}
    orphan = site.create(VMS, vm(labels=labels))["metadata"]
    for claim in ("first", "second"):
        named = [{"name": "vm", "uid": orphan["uid"]}]
        status = {"phase": "Bound", "virtualMachines": named}
        site.patch(CLAIMS, claim, {"status": status}, status=True)
    said = audit()
    assert said.code == 1
    assert {("violation", "used-twice", "first"), ("violation", "used-twice", "second")} <= set(said.whats)
    assert ("violation", "vm-of-another", "second") in said.whats
