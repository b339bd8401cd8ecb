"""Hand-written lives: each step is one write, as the API server's watches would show it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from auditor.events import Change, Event, Kind, Rule
from auditor.judge import Judge

CONTROLLER = "bullpen-controller"
PERSON = "kubectl-label"
START = 100
NOON = "2026-01-01T12:00:00Z"
P = "bullpen.dev/"

Raw = dict[str, Any]


class Story:
    """A cluster in which one write follows another; `events` is what was shown."""

    def __init__(self) -> None:
        self.rv = START
        self.events: list[Event] = []
        self.objects: dict[tuple[Kind, str], Raw] = {}
        self.generation = 0
        for kind in Kind:
            self.events.append(Event(kind, Change.DARK, 0, until=START))
        for kind in Kind:
            self.events.append(Event(kind, Change.LISTED, START))

    # The writes that everything is made of

    def create(self, kind: Kind, name: str, **fields: Any) -> str:
        self.generation += 1
        uid = f"{name}-uid-{self.generation}"
        meta = {"name": name, "namespace": "ns", "uid": uid} | fields.pop("metadata", {})
        self.objects[kind, name] = {"metadata": meta} | fields
        self._show(kind, name, Change.ADDED)
        return uid

    def write(self, kind: Kind, name: str, change: Callable[[Raw], None]) -> None:
        change(self.objects[kind, name])
        self._show(kind, name, Change.MODIFIED)

    def remove(self, kind: Kind, name: str) -> None:
        self._show(kind, name, Change.DELETED)
        del self.objects[kind, name]

    def delete(self, kind: Kind, name: str, *finalizers: str) -> None:
        """Only marked: its finalizers hold it."""

        def mark(raw: Raw) -> None:
            raw["metadata"] |= {"deletionTimestamp": NOON, "finalizers": list(finalizers)}

        self.write(kind, name, mark)

    def uid(self, kind: Kind, name: str) -> str:
        uid: str = self.objects[kind, name]["metadata"]["uid"]
        return uid

    def _show(self, kind: Kind, name: str, change: Change) -> None:
        self.rv += 1
        raw = self.objects[kind, name]
        raw["metadata"]["resourceVersion"] = str(self.rv)
        self.events.append(Event(kind, change, self.rv, (copy.deepcopy(raw),)))

    # What the controller and its users do

    def pool(self, name: str = "pool") -> str:
        return self.create(Kind.POOL, name)

    def claim(self, name: str = "claim", **spec: Any) -> str:
        return self.create(Kind.CLAIM, name, spec=spec)

    def vm(self, name: str = "vm", pool: str = "pool") -> str:
        uid = self.uid(Kind.POOL, pool)
        labels = {f"{P}state": "Pooled", f"{P}pool": pool, f"{P}pool-uid": uid}
        owners = [owner("VirtualMachinePool", pool, uid)]
        return self.create(Kind.VM, name, metadata={"labels": labels, "ownerReferences": owners})

    def label(self, vm: str = "vm", *, by: str = CONTROLLER, **labels: str | None) -> None:
        """Set labels of ours: `state="Pooled"`, `claim_uid="x"`; None takes one off."""

        def change(raw: Raw) -> None:
            set_labels(raw, labels, by)

        self.write(Kind.VM, vm, change)

    def own(self, vm: str, *owners: Raw) -> None:
        def change(raw: Raw) -> None:
            raw["metadata"]["ownerReferences"] = list(owners)

        self.write(Kind.VM, vm, change)

    def hand_over(self, vm: str = "vm", claim: str = "claim") -> None:
        """Write 1."""
        uid = self.uid(Kind.CLAIM, claim)

        def change(raw: Raw) -> None:
            set_labels(raw, {"state": "Claimed", "claim_uid": uid}, CONTROLLER)
            raw["metadata"]["ownerReferences"] = [owner("VirtualMachineClaim", claim, uid)]

        self.write(Kind.VM, vm, change)

    def publish(self, claim: str = "claim", *vms: str, **status: Any) -> None:
        """Write 2."""
        named = [{"name": vm, "uid": self.uid(Kind.VM, vm)} for vm in vms or ("vm",)]
        self.status(claim, phase="Bound", virtualMachines=named, boundAt=NOON, **status)

    def status(self, claim: str = "claim", **status: Any) -> None:
        def change(raw: Raw) -> None:
            raw["status"] = raw.get("status", {}) | status

        self.write(Kind.CLAIM, claim, change)

    def bound(self, vm: str = "vm", claim: str = "claim") -> None:
        """A pool, a claim, and a whole hand-over."""
        if (Kind.POOL, "pool") not in self.objects:
            self.pool()
        if (Kind.VM, vm) not in self.objects:
            self.vm(vm)
        if (Kind.CLAIM, claim) not in self.objects:
            self.claim(claim)
        self.hand_over(vm, claim)
        self.publish(claim, vm)

    def destroy(self, vm: str = "vm") -> None:
        self.delete(Kind.VM, vm, "kubevirt.io/virtualMachineControllerFinalize")
        self.remove(Kind.VM, vm)

    # What the auditor makes of it

    def judge(self, judge: Judge | None = None) -> Judge:
        return judged(self.events, judge)

    def broken(self, judge: Judge | None = None) -> list[Rule]:
        return [found.rule for found in self.judge(judge).violations]

    def wrong_at_rest(self) -> list[Rule]:
        judge = self.judge()
        assert judge.violations == []
        return [found.rule for found in judge.at_rest()]


def judged(events: Iterable[Event], judge: Judge | None = None) -> Judge:
    judge = judge or Judge()
    for event in events:
        judge.see(event)
    return judge


def owner(kind: str, name: str, uid: str, *, controller: bool = True) -> Raw:
    return {"apiVersion": f"{P}v1alpha1", "kind": kind, "name": name, "uid": uid, "controller": controller}


def set_labels(raw: Raw, labels: dict[str, str | None], by: str) -> None:
    """As the API server does, the field manager that set a value is noted, and the one before loses it."""
    meta = raw["metadata"]
    present = meta.setdefault("labels", {})
    managers = meta.setdefault("managedFields", [])
    for word, value in labels.items():
        key = P + word.replace("_", "-")
        for entry in managers:
            entry["fieldsV1"]["f:metadata"]["f:labels"].pop(f"f:{key}", None)
        if value is None:
            present.pop(key, None)
            continue
        present[key] = value
        fields: Raw = {"f:metadata": {"f:labels": {f"f:{key}": {}}}}
        managers.append({"manager": by, "operation": "Update", "fieldsV1": fields})
