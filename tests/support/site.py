"""One test's namespace as a person sees it: make pools and claims, look at VMs, wait until something is so.

Nothing here waits for a fixed time: every wait polls with a deadline and shows what it last saw.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from crds.names import LABEL_POOL, LABEL_STATE
from e2e.rest import Answer, Rest
from tests.support.controller import Controller
from tests.support.kubectl import Kubectl
from tests.support.manifests import API_VERSION, claim_manifest, pool_manifest

Json = dict[str, Any]

SIMULATOR = "simulator.bullpen.dev"
FAST = "300ms"  # a boot that a test can wait for
_GROUPS = {
    "virtualmachinepools": API_VERSION,
    "virtualmachineclaims": API_VERSION,
    "virtualmachines": "kubevirt.io/v1",
    "virtualmachineinstances": "kubevirt.io/v1",
}
POOLS, CLAIMS, VMS, VMIS = _GROUPS


def guest(**spec: Any) -> Json:
    """The spec of a small guest; `spec` goes on top of it."""
    return {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}, **spec}


def vm_template(*, vm: Json | None = None, guest_spec: Json | None = None, **behaviour: str) -> Json:
    """A pool's template whose VMs behave so: `boot="1s"`, `fail="hang"`, with dashes as underscores.

    `vm` goes into the VM's spec, `guest_spec` is the guest's whole spec.
    """
    asked = {"boot": FAST, **behaviour}
    annotations = {f"{SIMULATOR}/{name.replace('_', '-')}": value for name, value in asked.items()}
    spec = {"template": {"spec": guest() if guest_spec is None else guest_spec}, **(vm or {})}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def until(what: str, look: Callable[[], Any], fits: Callable[[Any], Any] = bool, seconds: float = 30) -> Any:
    """Look until it fits, and return what was seen then."""
    deadline = time.monotonic() + seconds
    while not fits(seen := look()):
        assert time.monotonic() < deadline, f"not {what} within {seconds:g} s; last seen: {_shown(seen)}"
        time.sleep(0.05)
    return seen


def until_equal(look: Callable[[], Any], wanted: Any, seconds: float = 30) -> None:
    """Look until it is what is wanted."""
    until(f"{wanted!r}", look, lambda seen: seen == wanted, seconds)


def until_still(look: Callable[[], Any], seconds: float = 1.5) -> Any:
    """Look until it has not changed for so long, which is more than a status waits; what it is then."""
    seen, since, deadline = look(), time.monotonic(), time.monotonic() + 30
    while time.monotonic() < since + seconds:
        if (now := look()) != seen:
            assert time.monotonic() < deadline, f"never still; last seen: {_shown(now)}"
            seen, since = now, time.monotonic()
        time.sleep(0.05)
    return seen


def holds(what: str, look: Callable[[], Any], fits: Callable[[Any], Any] = bool, seconds: float = 1) -> None:
    """It is so, and stays so for a while: for what must not happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = look()
        assert fits(seen), f"no longer {what}: {_shown(seen)}"
        time.sleep(0.05)


def condition(obj: Json, kind: str) -> Json:
    """A condition of the object; empty when it has none of the kind."""
    found = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in found if each["type"] == kind), {})


def named_vm(claim: Json) -> Json:
    """The one VM that the claim's status names."""
    [named] = claim["status"]["virtualMachines"]
    found: Json = named
    return found


def owner(obj: Json) -> Json:
    """The object's one owner reference."""
    [reference] = obj["metadata"]["ownerReferences"]
    found: Json = reference
    return found


@dataclass(frozen=True)
class Site:
    """What a person does and sees in one namespace."""

    api: Rest
    kubectl: Kubectl
    namespace: str

    # ---- make

    def pool(
        self, name: str = "pool", *, warm: int | Json = 1, template: Json | None = None, **spec: Any
    ) -> Json:
        """Make a pool of quick VMs; `warm` is its `spec.warm`, or the replicas of it."""
        asked = {"replicas": warm} if isinstance(warm, int) else warm
        manifest = pool_manifest(
            name, template=vm_template() if template is None else template, warm=asked, **spec
        )
        return self._made(POOLS, manifest)

    def claim(self, name: str = "claim", pool: str = "pool", **spec: Any) -> Json:
        return self._made(CLAIMS, claim_manifest(name, pool, **spec))

    def create(self, plural: str, manifest: Json) -> Json:
        return self._made(plural, manifest)

    def _made(self, plural: str, manifest: Json) -> Json:
        answer = self.api.post(self.path(plural), manifest)
        assert answer.status == 201, answer.message
        made: Json = answer.body
        return made

    # ---- change

    def patch(self, plural: str, name: str, body: Any, *, status: bool = False) -> Json:
        """A merge patch for an object, a JSON patch for a list."""
        answer = self.api.patch(self.path(plural, name) + ("/status" if status else ""), body)
        assert answer.ok, answer.message
        patched: Json = answer.body
        return patched

    def annotate_vm(self, name: str, **behaviour: str | None) -> None:
        """Command the stand-in about one VM: `pause="true"`; None takes a command back."""
        annotations = {f"{SIMULATOR}/{key.replace('_', '-')}": value for key, value in behaviour.items()}
        self.patch(VMS, name, {"metadata": {"annotations": annotations}})

    def delete(self, plural: str, name: str, propagation: str = "Background") -> None:
        answer = self.api.delete(self.path(plural, name), propagationPolicy=propagation)
        assert answer.ok, answer.message

    # ---- look

    def path(self, plural: str, name: str = "") -> str:
        path = f"/apis/{_GROUPS[plural]}/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    def find(self, plural: str, name: str) -> Json:
        """The object; empty when there is none."""
        answer: Answer = self.api.get(self.path(plural, name))
        assert answer.ok or answer.status == 404, answer.message
        return answer.body if answer.ok else {}

    def get(self, plural: str, name: str) -> Json:
        found = self.find(plural, name)
        assert found, f"there is no {plural} {name}"
        return found

    def vms(self, pool: str = "pool", state: str = "") -> list[Json]:
        """The VMs with the pool's label, the oldest first; `state` is one of our marks."""
        selector = f"{LABEL_POOL}={pool}" + (f",{LABEL_STATE}={state}" if state else "")
        items = self.api.get(self.path(VMS), labelSelector=selector).body["items"]
        return sorted(items, key=lambda vm: (vm["metadata"]["creationTimestamp"], vm["metadata"]["name"]))

    def vm_names(self, pool: str = "pool", state: str = "") -> set[str]:
        return {vm["metadata"]["name"] for vm in self.vms(pool, state)}

    def vmis(self) -> list[Json]:
        found: list[Json] = self.api.get(self.path(VMIS)).body["items"]
        return found

    # ---- wait

    def until(
        self, plural: str, name: str, what: str, fits: Callable[[Json], Any], seconds: float = 30
    ) -> Json:
        """Wait until the object is there and fits."""
        found: Json = until(
            f"{plural}/{name} {what}", lambda: self.find(plural, name), lambda obj: obj and fits(obj), seconds
        )
        return found

    def until_gone(self, plural: str, name: str, uid: str = "", seconds: float = 30) -> None:
        """Wait until the object, or the one of this UID, is not there any more."""
        until(
            f"{plural}/{name} gone",
            lambda: self.find(plural, name),
            lambda obj: not obj or (uid and obj["metadata"]["uid"] != uid),
            seconds,
        )

    def until_warm(self, warm: int, pool: str = "pool", seconds: float = 30) -> Json:
        """Wait until so many VMs are warm and the pool says that it has seen the newest spec."""

        def fits(obj: Json) -> bool:
            status = obj.get("status") or {}
            seen = status.get("observedGeneration") == obj["metadata"]["generation"]
            return bool(seen and status["warm"]["ready"] == warm)

        return self.until(POOLS, pool, f"{warm} warm", fits, seconds)

    def until_condition(
        self, plural: str, name: str, kind: str, status: str, reason: str = "", seconds: float = 30
    ) -> Json:
        """Wait for a condition and return it."""

        def fits(obj: Json) -> bool:
            found = condition(obj, kind)
            return found.get("status") == status and reason in {"", found.get("reason")}

        obj = self.until(plural, name, f"{kind}={status} {reason}", fits, seconds)
        return condition(obj, kind)

    def until_phase(self, claim: str, phase: str, seconds: float = 30) -> Json:
        def fits(obj: Json) -> bool:
            return bool((obj.get("status") or {}).get("phase") == phase)

        return self.until(CLAIMS, claim, phase, fits, seconds)

    def bound(self, claim: str = "claim", seconds: float = 30) -> Json:
        """Wait until the claim has its VM; the claim."""
        return self.until_phase(claim, "Bound", seconds)


def metric(controller: Controller, name: str, **labels: str) -> float:
    """The sum of a metric's series that have these labels, as the controller exposes it now."""
    with urllib.request.urlopen(f"http://{controller.listen}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    wanted = {f'{key}="{value}"' for key, value in labels.items()}
    total = 0.0
    for line in text.splitlines():
        found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if found and wanted <= set((found[1] or "").split(",")):
            total += float(found[2])
    return total


def _shown(seen: Any) -> str:
    """What a failure shows of an object: not the fields that nobody reads."""
    if isinstance(seen, dict):
        seen = {
            **seen,
            "metadata": {k: v for k, v in seen.get("metadata", {}).items() if k != "managedFields"},
        }
    return json.dumps(seen, default=str)[:3000]


@pytest.fixture
def site(admin: Rest, kubectl: Kubectl, namespace: str) -> Site:
    return Site(admin, kubectl, namespace)


@pytest.fixture(scope="session")
def garbage_collector(admin: Rest, kubeconfig: object, simulator: None) -> None:  # noqa: ARG001 - what it collects
    """The garbage collector knows VMs and claims: it overlooks a new definition for up to half a minute."""
    names = {"metadata": {"name": "collected"}}
    admin.post("/api/v1/namespaces", names)
    absent = {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachineClaim",
        "name": "absent",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    path = "/apis/kubevirt.io/v1/namespaces/collected/virtualmachines"
    vm = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "orphan", "ownerReferences": [absent]},
        "spec": {"runStrategy": "Halted", "template": {"spec": guest()}},
    }
    answer = admin.post(path, vm)
    assert answer.status == 201, answer.message
    admin.wait(f"{path}/orphan", lambda found: found.status == 404, seconds=90)
    admin.delete("/api/v1/namespaces/collected")
