"""Builders: VMs, VMIs and lives for the stand-in's pure parts."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import orjson

from simulator.kubevirt.behaviour import Defaults, Failure, Profile, behaviour
from simulator.kubevirt.distributions import Fixed
from simulator.kubevirt.life import Life
from simulator.kubevirt.objects import VM, VM_FINALIZER, VMI, VMI_FINALIZERS, vm_of, vmi_of
from simulator.kubevirt.script import Script, Verb, Write

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PREFIX = "simulator.bullpen.dev/"
Json = dict[str, Any]
_FILLED = {
    "architecture": "amd64",
    "domain": {
        "machine": {"type": "q35"},
        "resources": {},
        "firmware": {"uuid": "u", "serial": "s"},
        "memory": {"guest": "64Mi"},
        "devices": {},
    },
}


def condition(kind: str, status: str = "True", reason: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason}


def make_vm(
    *,
    uid: str = "vm-uid",
    version: int = 10,
    strategy: str = "Always",
    annotations: Json | None = None,
    template_annotations: Json | None = None,
    spec: Json | None = None,
    finalizers: list[str] | None = None,
    deleting: bool = False,
    status: Json | None = None,
    more: Json | None = None,
) -> VM:
    """A VM as a person has just made it, unless told otherwise; `more` goes into its spec."""
    guest = {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}} if spec is None else spec
    metadata: Json = {
        "name": "vm",
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "generation": 1,
        "annotations": annotations or {},
        "finalizers": finalizers or [],
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    template = {
        "metadata": {"labels": {"app": "a"}, "annotations": template_annotations or {}},
        "spec": guest,
    }
    whole = {
        "metadata": metadata,
        "spec": {"runStrategy": strategy, "template": template, **(more or {})},
        "status": status or {},
    }
    return vm_of(orjson.dumps(whole))


def opened_vm(**fields: Any) -> VM:
    """A VM that the stand-in has had in its hands: defaults filled in, annotated, with its finalizer."""
    given = {
        "spec": _FILLED,
        "finalizers": [VM_FINALIZER],
        "status": {"printableStatus": "Stopped"},
        "annotations": {
            "kubevirt.io/latest-observed-api-version": "v1",
            "kubevirt.io/storage-observed-api-version": "v1",
        },
    }
    annotations = {**given["annotations"], **fields.pop("annotations", {})}  # type: ignore[dict-item] # literals
    return make_vm(**{**given, **fields, "annotations": annotations})


def make_vmi(
    phase: str = "Running",
    *,
    ready: bool = True,
    reason: str = "",
    owner: str | None = "vm-uid",
    uid: str = "vmi-uid",
    version: int = 20,
    deleting: bool = False,
    finalizers: list[str] | None = None,
    annotations: Json | None = None,
    conditions: list[Json] | None = None,
    ran: bool = True,
) -> VMI:
    metadata: Json = {
        "name": "vm",
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "annotations": annotations or {},
        "finalizers": list(VMI_FINALIZERS) if finalizers is None else finalizers,
    }
    if owner:
        metadata["ownerReferences"] = [
            {"kind": "VirtualMachine", "name": "vm", "uid": owner, "controller": True}
        ]
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    status: Json = {
        "phase": phase,
        "conditions": [condition("Ready", "True" if ready else "False", reason), *(conditions or [])],
        "phaseTransitionTimestamps": [{"phase": "Running"}] if ran else [],
    }
    if phase == "Running":
        status |= {"nodeName": "node-1", "interfaces": [{"ipAddress": "10.128.0.9"}]}
    return vmi_of(orjson.dumps({"metadata": metadata, "status": status}))


def make_life(
    vm: VM | None = None,
    vmi: VMI | None = None,
    *,
    boot: float = 1.0,
    fail: Failure | None = None,
    profile: Profile = Profile.OBSERVED,
    seed: int = 1,
    **fields: Any,
) -> Life:
    vm = vm or make_vm()
    defaults = Defaults(profile=profile, boot=Fixed(boot), failures={fail: 1.0} if fail else {})
    template = vm.template()
    if vmi is not None:
        template = {**template, "metadata": {"annotations": vmi.metadata.annotations}}
    return Life(
        vm=vm,
        vmi=vmi,
        template=template,
        how=behaviour(vm, template, defaults, Random(seed)),
        profile=profile,
        node="node-1",
        ip="10.128.0.1",
        random=Random(seed),
        now=NOW,
        **fields,
    )


def names(script: Script, *verbs: Verb) -> list[str]:
    return [write.name for write in script if not verbs or write.verb in verbs]


def verbs(script: Script) -> list[Verb]:
    return [write.verb for write in script]


def conditions_of(write: Write) -> dict[str, str]:
    """type → status, of the status that this write leaves."""
    return {each["type"]: each["status"] for each in write.body["status"]["conditions"]}


def says_ready(write: Write) -> bool:
    return "conditions" in write.body.get("status", {}) and conditions_of(write).get("Ready") == "True"
