"""The auditor on a real API server; the hand-overs are made by hand, right and wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from auditor import Rule
from auditor.connection import Refused
from auditor.events import Recording
from auditor.judge import Judge
from e2e.rest import Answer, Rest
from tests.support.auditing import AuditorThread, auditing
from tests.support.kubectl import Kubectl
from tests.support.manifests import claim_manifest, pool_manifest

pytestmark = pytest.mark.cluster

BULLPEN = "bullpen.dev/v1alpha1"
P = "bullpen.dev/"


@dataclass(frozen=True)
class Hand:
    """Does by hand what the controller does, one write at a time, without its tests."""

    api: Rest
    namespace: str

    def path(self, plural: str, name: str = "") -> str:
        version = "kubevirt.io/v1" if plural == "virtualmachines" else BULLPEN
        return f"/apis/{version}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def pool(self, name: str = "pool") -> str:
        return self._made("virtualmachinepools", pool_manifest(name, suspend=True))

    def claim(self, name: str = "claim") -> str:
        return self._made("virtualmachineclaims", claim_manifest(name, pool="pool"))

    def vm(self, name: str, pool_uid: str, pool: str = "pool") -> str:
        owner = self._owner("VirtualMachinePool", pool, pool_uid)
        labels = {f"{P}state": "Pooled", f"{P}pool": pool, f"{P}pool-uid": pool_uid}
        meta = {"name": name, "labels": labels, "ownerReferences": [owner]}
        return self._made("virtualmachines", vm_manifest(meta))

    def hand_over(self, vm: str, claim: str, claim_uid: str) -> None:
        meta = {
            "labels": {f"{P}state": "Claimed", f"{P}claim-uid": claim_uid},
            "ownerReferences": [self._owner("VirtualMachineClaim", claim, claim_uid)],
        }
        self._done(self.api.patch(self.path("virtualmachines", vm), {"metadata": meta}))

    def publish(self, claim: str, vm: str, vm_uid: str) -> None:
        status = {"phase": "Bound", "virtualMachines": [{"name": vm, "uid": vm_uid}]}
        path = self.path("virtualmachineclaims", claim) + "/status"
        self._done(self.api.patch(path, {"status": status}))

    def bound(self, vm: str = "vm", claim: str = "claim", pool: str = "pool") -> tuple[str, str]:
        """A whole hand-over, right; the UIDs of the VM and the claim."""
        vm_uid, claim_uid = self.vm(vm, self.pool(pool), pool), self.claim(claim)
        self.hand_over(vm, claim, claim_uid)
        self.publish(claim, vm, vm_uid)
        return vm_uid, claim_uid

    def delete(self, plural: str, name: str) -> None:
        self._done(self.api.delete(self.path(plural, name)))

    def gone(self, plural: str, name: str) -> None:
        # the garbage collector may ignore a new definition for half a minute
        self.api.wait(self.path(plural, name), lambda answer: answer.status == 404, seconds=60)

    def _made(self, plural: str, manifest: dict[str, Any]) -> str:
        uid: str = self._done(self.api.post(self.path(plural), manifest)).body["metadata"]["uid"]
        return uid

    @staticmethod
    def _done(answer: Answer) -> Answer:
        assert answer.ok, answer.message
        return answer

    @staticmethod
    def _owner(kind: str, name: str, uid: str) -> dict[str, Any]:
        return {"apiVersion": BULLPEN, "kind": kind, "name": name, "uid": uid, "controller": True}


def vm_manifest(meta: dict[str, Any]) -> dict[str, Any]:
    spec = {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta, "spec": spec}


@pytest.fixture
def hand(admin: Rest, namespace: str) -> Hand:
    return Hand(admin, namespace)


def rules(found: list[Any]) -> list[Rule]:
    return [violation.rule for violation in found]


def test_a_clean_hand_over_and_its_release_break_nothing(auditor: AuditorThread, hand: Hand) -> None:
    hand.bound()
    hand.delete("virtualmachineclaims", "claim")
    hand.api.delete(hand.path("virtualmachines", "vm"))  # unless the garbage collector was faster
    hand.gone("virtualmachines", "vm")

    assert auditor.settled() == []
    assert auditor.seen == {"VMs": 1, "claims": 1, "pools": 1}


def test_a_double_hand_over_is_found_and_recorded(kubeconfig: Path, hand: Hand, tmp_path: Path) -> None:
    record = tmp_path / "events.jsonl"
    with auditing(kubeconfig, hand.namespace, record=record) as auditor:
        vm, _ = hand.bound()
        second = hand.claim("second")
        hand.hand_over("vm", "second", second)
        hand.publish("second", "vm", vm)

        found = auditor.settled(2)

    assert rules(found)[:3] == [Rule.I1, Rule.I5, Rule.I1]
    judge = Judge()
    for event in Recording(record).read():
        judge.see(event)
    assert judge.violations == found[:3]


def test_a_vm_that_is_held_and_never_published_is_found_at_rest(kubeconfig: Path, hand: Hand) -> None:
    with auditing(kubeconfig, hand.namespace) as auditor:
        hand.vm("vm", hand.pool())
        hand.hand_over("vm", "claim", hand.claim())

        found = auditor.settled(2)

    assert rules(found) == [Rule.LEAK]
    assert "which is Pending and does not name it" in found[0].message


def test_a_leak_that_heals_in_time_is_none(auditor: AuditorThread, hand: Hand) -> None:
    vm, claim = hand.vm("vm", hand.pool()), hand.claim()
    hand.hand_over("vm", "claim", claim)
    hand.publish("claim", "vm", vm)

    assert auditor.settled() == []


def test_a_vm_in_use_that_is_deleted_is_found_unless_a_person_is_excused(
    kubeconfig: Path, hand: Hand
) -> None:
    with auditing(kubeconfig, hand.namespace) as auditor:
        vm, _ = hand.bound()
        with auditing(kubeconfig, hand.namespace) as lenient:
            lenient.excuse(vm, "this test plays the person")
            hand.delete("virtualmachines", "vm")
            hand.gone("virtualmachines", "vm")
            hand.api.patch(
                hand.path("virtualmachineclaims", "claim") + "/status", {"status": {"phase": "Lost"}}
            )

            assert rules(auditor.settled()) == [Rule.I3]
            assert lenient.settled() == []


def test_a_person_relabels_by_kubectl_and_the_controller_heals_it(
    auditor: AuditorThread, hand: Hand, kubectl: Kubectl
) -> None:
    _, claim = hand.bound()
    kubectl("-n", hand.namespace, "label", "vm/vm", f"{P}state=Pooled", "--overwrite")
    hand.hand_over("vm", "claim", claim)

    assert auditor.settled() == []


def test_a_claim_deleted_with_cascade_orphan_leaves_its_vm(
    auditor: AuditorThread, hand: Hand, kubectl: Kubectl
) -> None:
    # The garbage collector must know the definitions first: before, it orphans nobody and later collects all.
    hand.bound("first", "first")
    hand.delete("virtualmachineclaims", "first")
    hand.gone("virtualmachines", "first")
    hand.bound("vm", "claim", "another-pool")
    kubectl("-n", hand.namespace, "delete", "vmclaim/claim", "--cascade=orphan")
    hand.gone("virtualmachineclaims", "claim")

    assert auditor.settled() == []
    assert hand.api.get(hand.path("virtualmachines", "vm")).ok


def test_the_end_of_the_namespace_breaks_nothing(kubeconfig: Path, hand: Hand) -> None:
    with auditing(kubeconfig, hand.namespace) as auditor:
        hand.bound()
        assert hand.api.delete(f"/api/v1/namespaces/{hand.namespace}").ok
        hand.gone("virtualmachines", "vm")

        assert auditor.settled() == []


def test_without_a_server_that_serves_the_kinds_it_says_so(kubeconfig: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="404"), auditing(_no_such_path(kubeconfig, tmp_path)):
        pytest.fail("it must not begin")


def _no_such_path(kubeconfig: Path, directory: Path) -> Path:
    wrong = directory / "kubeconfig"
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    for entry in config["clusters"]:
        entry["cluster"]["server"] += "/nowhere"
    wrong.write_text(yaml.safe_dump(config), encoding="utf-8")
    return wrong
