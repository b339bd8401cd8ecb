"""One namespace in which people live beside a pool and a claim: made once for all the specs of a module.

The auditor watches it the whole time: whatever is tried there, no invariant is broken.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.rest import Rest
from e2e.specs.installation import Installation
from e2e.specs.people import CLAIMANT, CLAIMS, POOLS, VMS, Person, may, settle
from e2e.specs.words import full, make_claim, make_pool, vm_of, wait
from tests.support.auditing import AuditorThread, auditing
from tests.support.kubectl import Kubectl
from tests.support.manifests import get
from tests.support.site import until

Json = dict[str, Any]
WRITE = ("get", "list", "watch", "create", "update", "patch", "delete")
FORGED = {"apiVersion": "bullpen.dev/v1alpha1", "kind": "VirtualMachinePool", "controller": True}


@dataclass(frozen=True)
class Town:
    """A pool `ci` with a warm VM, a claim `job` with a VM, and who lives there.

    `claimant` has the chart's role for claims alone; `editor` Kubernetes' own `edit` and all of VMs, as
    KubeVirt gives it; `owner` is the namespace's administrator; `writer` may even write statuses.
    """

    kubectl: Kubectl
    namespace: str
    claimant: Person
    editor: Person
    owner: Person
    writer: Person
    claimed: str
    auditor: AuditorThread

    def excuse(self, vm: str) -> None:
        """What happens to this VM from now on is a person's doing."""
        self.auditor.excuse(self.vm(vm)["metadata"]["uid"], "a person's doing")

    def vm(self, name: str) -> Json:
        return get(self.kubectl, self.namespace, "vm", name)

    @property
    def pool(self) -> Json:
        return get(self.kubectl, self.namespace, "wp", "ci")

    @property
    def claim(self) -> Json:
        return get(self.kubectl, self.namespace, "vmc", "job")

    @property
    def warm(self) -> str:
        """The name of a warm VM."""
        [vm, *_] = self.kubectl(
            *("get", "vm", "-n", self.namespace, "-o", "name", "-l", "bullpen.dev/state=Pooled")
        ).split()
        return vm.partition("/")[2]

    def owned(self, kind: str) -> Json:
        """A reference to the pool or the claim, as the controller writes it."""
        owner = self.pool if kind == "VirtualMachinePool" else self.claim
        meta = owner["metadata"]
        return {**FORGED, "kind": kind, "name": meta["name"], "uid": meta["uid"]}

    def refuses_forgeries(self) -> None:
        """Wait until the policy is in force: an API server takes a moment to learn of a new one."""
        manifest = forged_vm("probe", self.owned("VirtualMachinePool"), {})
        until("refused", lambda: self.editor.make(VMS, manifest, dryRun="All").status, lambda it: it == 403)


def forged_vm(name: str, owner: Json | None, labels: dict[str, str]) -> Json:
    """A halted VM, so that nothing waits for its boot, with this owner and these labels."""
    meta: Json = {"name": name, "labels": labels}
    if owner is not None:
        meta["ownerReferences"] = [owner]
    spec = {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta, "spec": spec}


@contextmanager
def town(admin: Rest, installation: Installation, kubeconfig: Path, directory: Path) -> Iterator[Town]:
    """Lay it out, and take it away afterwards."""
    installation.ensure()
    kubectl, name = installation.kubectl, f"town-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    vms, statuses = may("kubevirt.io", [VMS], *WRITE), [f"{CLAIMS}/status", f"{POOLS}/status"]
    with auditing(kubeconfig, name) as auditor, ExitStack() as people:

        def settled(who: str, role: str, *rules: Json) -> Person:
            return people.enter_context(settle(kubectl, name, who, [role], directory, *rules))

        make_pool(kubectl, name, "ci", warm=1, claims={"lifetime": {"max": "1h"}})
        full(kubectl, name, "ci", 1)
        make_claim(kubectl, name, "job", "ci")
        wait(kubectl, name, "vmc/job", "condition=Ready")
        full(kubectl, name, "ci", 1)
        laid = Town(
            kubectl,
            name,
            settled("claimant", CLAIMANT),
            settled("editor", "edit", vms, may("kubevirt.io", [f"{VMS}/status"], "patch")),
            settled("owner", "admin", vms),
            settled("writer", "edit", may("bullpen.dev", statuses, *WRITE)),
            vm_of(kubectl, name, "job"),
            auditor,
        )
        laid.refuses_forgeries()
        yield laid
        broken = auditor.settled()
        assert broken == [], broken  # pytest shows no values here
    admin.delete(f"/api/v1/namespaces/{name}")
