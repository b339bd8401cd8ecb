"""`kubectl bullpen audit` as an operator runs it, by kubectl, on a cluster on which a controller works."""

from __future__ import annotations

import copy
import json
import secrets
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds.names import LABEL_CLAIM_UID
from tests.support.audit_command import Command
from tests.support.auditing import AuditorThread
from tests.support.site import CLAIMS, VMS, Json, Site, guest, named_vm, until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller")]


def vm_copied_from(site: Site, name: str, *, keep_owner: bool = False) -> Json:
    """What `kubectl get -o yaml`, an editor and `kubectl create` make of a VM."""
    vm = copy.deepcopy(site.get(VMS, name))
    meta = {"name": "copy", "labels": vm["metadata"]["labels"]}
    if keep_owner:
        meta["ownerReferences"] = vm["metadata"]["ownerReferences"]
    spec = {"runStrategy": "Always", "template": {"spec": guest()}}
    manifest = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta, "spec": spec}
    return site.create(VMS, manifest)


def unheld(site: Site, plural: str, name: str) -> None:
    """Take its finalizers off, so that the namespace can go."""
    site.patch(plural, name, {"metadata": {"finalizers": None}})


def test_a_pool_at_work_and_a_hand_over_are_clean(site: Site, auditor: AuditorThread, audit: Command) -> None:
    site.pool(warm=2)
    site.until_warm(2)
    site.claim()
    site.bound()
    said = audit(json=False)
    assert (said.code, said.error) == (0, "")
    assert "1 pool, 1 claim, " in said.out
    assert said.out.endswith("nothing is lost, nothing is doubled\n")
    assert auditor.settled() == []


def test_hand_overs_under_way_are_no_findings(site: Site, auditor: AuditorThread, audit: Command) -> None:
    site.pool(warm=3)
    site.until_warm(3)
    for number in range(6):
        site.claim(f"claim-{number}")
    assert audit(settle="5s").whats == []
    for number in range(6):
        site.bound(f"claim-{number}")
    assert auditor.settled() == []


def test_a_copy_of_a_vm_is_foreign_and_fails_only_a_strict_audit(
    site: Site, auditor: AuditorThread, audit: Command
) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [warm] = site.vm_names()
    vm_copied_from(site, warm)
    said = audit()
    assert (said.code, said.whats) == (0, [("foreign", "foreign", "copy")])
    assert "a copy, or restored from a backup" in said.findings[0]["message"]
    assert audit("--strict").code == 1
    assert auditor.settled() == []


def test_a_vm_whose_owner_somebody_took_off_is_a_leak(site: Site, audit: Command) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [name] = site.vm_names()
    site.patch(VMS, name, {"metadata": {"ownerReferences": None}})
    said = audit()
    assert (said.code, said.whats) == (1, [("leak", "owner-taken-off", name)])
    table = audit(json=False)
    assert table.code == 1
    assert f"vm/{name}" in table.out
    assert f"kubectl delete vm {name} -n {site.namespace}" in " ".join(table.out.replace("│", " ").split())


@pytest.mark.usefixtures("garbage_collector")
def test_a_vm_that_its_user_kept_is_named_and_no_error(
    site: Site, auditor: AuditorThread, audit: Command
) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    site.claim()
    kept = named_vm(site.bound())["name"]
    site.delete(CLAIMS, "claim", propagation="Orphan")
    site.until_gone(CLAIMS, "claim")
    said = audit()
    assert (said.code, said.whats) == (0, [("note", "orphaned", kept)])
    assert auditor.settled() == []


def test_a_vm_in_use_that_its_claim_does_not_own_is_a_violation(site: Site, audit: Command) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    site.claim()
    name = named_vm(site.bound())["name"]
    site.patch(VMS, name, {"metadata": {"ownerReferences": None}})
    said = audit()
    assert (said.code, said.whats) == (1, [("violation", "used-and-unowned", name)])


def test_a_vm_on_its_way_out_is_not_called_stuck_too_soon(site: Site, audit: Command) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    [name] = site.vm_names()
    site.patch(VMS, name, {"metadata": {"finalizers": ["example.com/stuck"]}})
    try:
        site.delete(VMS, name)
        site.until(VMS, name, "terminating", lambda vm: "deletionTimestamp" in vm["metadata"])
        assert audit().whats == []
    finally:
        unheld(site, VMS, name)


def test_watching_finds_what_heals_before_anybody_looks(site: Site, audit: Command, tmp_path: Path) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    record = tmp_path / "events.jsonl"
    watching = audit.start("--watch", "--settle", "1s", "-o", "json", "--record", str(record))
    until("watching", lambda: record.exists() and record.stat().st_size > 0)
    site.claim()
    claim = site.bound()
    site.patch(VMS, named_vm(claim)["name"], {"metadata": {"labels": {LABEL_CLAIM_UID: "somebody-else"}}})
    until("noticed", lambda: "somebody-else" in record.read_text())
    watching.send_signal(signal.SIGINT)
    out, error = watching.communicate(timeout=60)
    assert watching.returncode == 1, error
    assert "i1" in [each["what"] for each in json.loads(out)["findings"]]
    replayed = audit("--replay", str(record), within=False)
    assert replayed.code == 1
    assert "i1" in [each["what"] for each in replayed.findings]


def test_watching_for_a_while_ends_by_itself(site: Site, auditor: AuditorThread, audit: Command) -> None:
    begun = time.monotonic()
    site.pool(warm=1)
    said = audit("--for", "2s")
    assert (said.code, said.findings) == (0, [])
    assert time.monotonic() - begun > 2
    assert auditor.settled() == []


# ---- which cluster, as whom


def test_all_namespaces_and_the_contexts_own(
    site: Site, audit: Command, kubeconfig: Path, tmp_path: Path
) -> None:
    site.claim(pool="none")
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    [context] = config["contexts"]
    there = {"name": "there", "context": {**context["context"], "namespace": site.namespace}}
    config["contexts"].append(there)
    path = tmp_path / "two-contexts"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    mine = json.loads(audit("--kubeconfig", str(path), "--context", "there", within=False).out)
    assert (mine["of"], mine["seen"]["claims"]) == (f"namespace {site.namespace}", 1)
    everywhere = json.loads(audit("-A", within=False, settle="0s").out)
    assert everywhere["of"] == "all namespaces"
    assert everywhere["seen"]["claims"] >= 1


def test_who_may_only_read_in_one_namespace_can_audit_it_and_not_more(
    site: Site, audit: Command, kubeconfig: Path, tmp_path: Path
) -> None:
    reader = Command(_account(site, kubeconfig, tmp_path), site.namespace)
    site.claim(pool="none")
    until("allowed", lambda: reader().code == 0)
    said = reader("-A", within=False, json=False)
    assert (said.code, said.out) == (3, "")
    assert "cannot list" in said.error
    assert "docs/audit.md" in said.error
    assert "Traceback" not in said.error
    assert audit().code == 0


def test_a_namespace_that_is_not_there_is_no_clean_one(kubeconfig: Path) -> None:
    name = f"absent-{secrets.token_hex(3)}"
    said = Command(kubeconfig, name)(json=False)
    assert (said.code, said.out, said.error) == (3, "", f"could not look: there is no namespace {name}\n")


def _account(site: Site, kubeconfig: Path, directory: Path) -> Path:
    """A kubeconfig of an account with the Role of docs/audit.md in the site's namespace."""
    [role] = [each for each in _documented() if each["kind"] == "Role"]
    role["metadata"]["namespace"] = site.namespace
    site.kubectl("create", "-f", "-", stdin=json.dumps(role))
    site.kubectl("create", "serviceaccount", "reader", "-n", site.namespace)
    binding = [f"--role={role['metadata']['name']}", f"--serviceaccount={site.namespace}:reader"]
    site.kubectl("create", "rolebinding", "reader", "-n", site.namespace, *binding)
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    token = site.kubectl("create", "token", "reader", "-n", site.namespace).strip()
    config["users"] = [{"name": "reader", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "reader"
    path = directory / "reader"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def _documented() -> list[dict[str, Any]]:
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")
    blocks = page.split("```yaml\n")[1:]
    return [document for each in blocks for document in yaml.safe_load_all(each.split("```")[0])]
