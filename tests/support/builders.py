"""Objects as the controller sees them, each whole and ordinary unless a test says otherwise.

`NOW` is the instant of every test: times are given as seconds before or after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from capacity.decide import decide
from capacity.decision import Limits, Stock
from capacity.stabilize import Stabilizer
from controller.claims.objects import (
    Address,
    BoundVM,
    Claim,
    ClaimSpec,
    ClaimStatus,
    ExtraMetadata,
    PoolRef,
    WhenEmpty,
)
from controller.kube.objects import ObjectMeta, OwnerReference
from controller.machines.instance import Derived
from controller.machines.inventory import Instance
from controller.machines.objects import (
    Condition,
    Interface,
    Node,
    NodeSpec,
    NodeStatus,
    Taint,
    VirtualMachine,
    VirtualMachineInstance,
    VMIStatus,
    VMStatus,
)
from controller.pools.freshness import Standard
from controller.pools.snapshot import Snapshot
from controller.pools.telling import Told
from crds import names
from crds.pool import VirtualMachinePool
from statemachines.instance import State

NOW = 1_767_268_800.0  # 2026-01-01T12:00:00Z
POOL = "pool"
POOL_UID = "pool-uid"
NAMESPACE = "ns"

Json = dict[str, Any]


def at(offset: float = 0.0) -> str:
    """The time so many seconds after NOW, as Kubernetes writes it."""
    return datetime.fromtimestamp(NOW + offset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- pools


def make_template(**guest: Any) -> Json:
    """The spec of a small VirtualMachine; `guest` goes into the instance's spec."""
    domain = {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "memory": {"guest": "1Gi"}}
    volume = {"name": "root", "containerDisk": {"image": "registry.example/guest:1"}}
    return {
        "runStrategy": "Always",
        "template": {"spec": {"domain": domain, "volumes": [volume], **guest}},
    }


def make_pool(
    name: str = POOL,
    *,
    uid: str = POOL_UID,
    warm: int = 3,
    template: Json | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    limits: Json | None = None,
    readiness: Json | None = None,
    claims: Json | None = None,
    update: Json | None = None,
    max_warm_age: str | None = None,
    suspend: bool = False,
    deleting: bool = False,
    finalizers: Iterable[str] = (names.FINALIZER_POOL,),
    status: Json | None = None,
) -> VirtualMachinePool:
    metadata: Json = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": uid,
        "generation": 1,
        "creationTimestamp": at(-3600),
        "finalizers": list(finalizers),
    }
    if deleting:
        metadata["deletionTimestamp"] = at(-1)
    spec: Json = {
        "template": {"spec": make_template() if template is None else template},
        "warm": {"replicas": warm},
        "limits": limits or {},
        "readiness": readiness or {},
        "claims": claims or {},
        "updateStrategy": update or {},
        "maxWarmAge": max_warm_age,
        "suspend": suspend,
    }
    if labels is not None or annotations is not None:
        spec["template"]["metadata"] = {"labels": labels, "annotations": annotations}
    return VirtualMachinePool.model_validate({"metadata": metadata, "spec": spec, "status": status})


# ---- VMs, their guests, their nodes


def pool_owner(uid: str = POOL_UID, name: str = POOL) -> OwnerReference:
    return OwnerReference(
        names.API_VERSION, names.POOL_KIND, name, uid, controller=True, block_owner_deletion=True
    )


def claim_owner(uid: str = "claim-uid", name: str = "claim") -> OwnerReference:
    return OwnerReference(
        names.API_VERSION, names.CLAIM_KIND, name, uid, controller=True, block_owner_deletion=True
    )


def make_vm(
    name: str = "pool-aaaaa",
    *,
    uid: str = "",
    state: str | None = names.Mark.POOLED,
    owner: OwnerReference | str | None = "by-state",
    claim_uid: str = "",
    age: float = 600.0,
    deleting: bool = False,
    labels: dict[str, str | None] | None = None,
    annotations: dict[str, str] | None = None,
    pool: str = POOL,
    pool_uid: str = POOL_UID,
    printable: str = "Running",
    conditions: Iterable[Condition] = (),
) -> VirtualMachine:
    """A VM of the pool: owned by it, or by the claim of `claim_uid`. A label of None is taken away."""
    if state == names.Mark.CLAIMED and not claim_uid and owner == "by-state":
        claim_uid = "claim-uid"
    if owner == "by-state":
        owner = claim_owner(claim_uid) if claim_uid else pool_owner(pool_uid, pool)
    written: dict[str, str | None] = {
        names.LABEL_STATE: state,
        names.LABEL_POOL: pool,
        names.LABEL_POOL_UID: pool_uid,
        names.LABEL_REVISION: "0123456789",
        names.LABEL_CLAIM_UID: claim_uid or None,
        **(labels or {}),
    }
    noted = {names.ANNOTATION_CLAIM: "claim"} if claim_uid else {}
    metadata = ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=uid or f"{name}-uid",
        resource_version="1",
        creation_timestamp=at(-age),
        deletion_timestamp=at(-1) if deleting else None,
        labels={key: value for key, value in written.items() if value is not None},
        annotations={names.LABEL_POOL: pool, **noted, **(annotations or {})},
        owner_references=[owner] if isinstance(owner, OwnerReference) else [],
    )
    return VirtualMachine(metadata, VMStatus(printable, list(conditions)))


def make_condition(
    kind: str, status: str = "True", *, since: float | None = -60.0, reason: str = "", message: str = ""
) -> Condition:
    return Condition(kind, status, reason, message, None if since is None else at(since))


def make_vmi(
    name: str = "pool-aaaaa",
    *,
    uid: str = "",
    ready: bool | None = True,
    agent: bool | None = None,
    phase: str = "Running",
    since: float | None = -60.0,
    conditions: Iterable[Condition] = (),
    addresses: Iterable[str] = ("10.0.0.7",),
    node: str = "node-1",
    deleting: bool = False,
    vm_uid: str = "",
) -> VirtualMachineInstance:
    """A guest that runs. A condition of None is absent; `since` is when the conditions changed last."""
    found = [
        make_condition(kind, str(value), since=since)
        for kind, value in (("Ready", ready), ("AgentConnected", agent))
        if value is not None
    ]
    owner = OwnerReference(
        names.KUBEVIRT_API_VERSION, "VirtualMachine", name, vm_uid or f"{name}-uid", controller=True
    )
    metadata = ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=uid or f"{name}-guest",
        deletion_timestamp=at(-1) if deleting else None,
        owner_references=[owner],
    )
    interfaces = [Interface(address, [address]) for address in addresses]
    return VirtualMachineInstance(metadata, VMIStatus(phase, node, [*found, *conditions], interfaces))


def make_node(
    name: str = "node-1",
    *,
    uid: str = "",
    version: str = "",
    ready: str | None = "True",
    cordoned: bool = False,
    taints: Iterable[Taint] = (),
) -> Node:
    conditions = [] if ready is None else [Condition("Ready", ready)]
    meta = ObjectMeta(name=name, uid=uid or f"{name}-uid", resource_version=version)
    return Node(meta, NodeSpec(cordoned, list(taints)), NodeStatus(conditions))


def make_instance(
    name: str = "pool-aaaaa", state: State = State.WARM, *, age: float = 600.0, **vm: Any
) -> Instance:
    """A VM in a state that somebody derived before."""
    return Instance(make_vm(name, age=age, **vm), make_vmi(name), derived=Derived(state), created=NOW - age)


# ---- claims


def make_bound_vm(name: str = "pool-aaaaa", **fields: Any) -> BoundVM:
    vm = BoundVM(
        name,
        f"{name}-uid",
        vmi_uid=f"{name}-guest",
        node="node-1",
        addresses=[Address("InternalIP", "10.0.0.7")],
        warm=True,
    )
    return msgspec.structs.replace(vm, **fields)


def make_claim(
    name: str = "claim",
    *,
    uid: str = "",
    phase: str | None = None,
    pool: str = POOL,
    pool_uid: str = POOL_UID,
    when_empty: str = "Order",
    after: str | None = None,
    timeout: str | None = None,
    lifetime: str | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    ttl: int | None = None,
    age: float = 10.0,
    deleting: bool = False,
    finalizers: Iterable[str] = (),
    vms: Iterable[BoundVM] = (),
    bound: float | None = None,
    expires: float | None = None,
    conditions: Iterable[Condition] = (),
    generation: int = 1,
) -> Claim:
    """A claim on the pool. Without a phase it has no status; `bound` and `expires` are seconds after NOW."""
    metadata = ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=uid or f"{name}-uid",
        resource_version="1",
        generation=generation,
        creation_timestamp=at(-age),
        deletion_timestamp=at(-1) if deleting else None,
        finalizers=list(finalizers),
    )
    spec = ClaimSpec(
        PoolRef(pool),
        WhenEmpty(when_empty, after),
        timeout,
        lifetime,
        ExtraMetadata(labels or {}, annotations or {}),
        ttl,
    )
    if phase is None:
        return Claim(metadata, spec)
    named = list(vms)
    status = ClaimStatus(
        phase=phase,
        pool=pool if named else "",
        pool_uid=pool_uid if named else "",
        release_policy="Delete" if named else "",
        virtual_machines=named,
        bound_at=None if bound is None else at(bound),
        expires_at=None if expires is None else at(expires),
        conditions=list(conditions),
    )
    return Claim(metadata, spec, status)


def make_bound_claim(name: str = "claim", vm: str = "pool-aaaaa", **fields: Any) -> Claim:
    """A claim whose status names a VM, as write 2 left it 30 seconds ago."""
    conditions = [
        make_condition("Bound", since=-30, reason="HandedOver", message=f"VM {vm} was handed over"),
        make_condition("Ready", since=-30, reason="Usable", message=f"VM {vm} is ready at 10.0.0.7"),
    ]
    settings: Json = {
        "phase": "Bound",
        "vms": [make_bound_vm(vm)],
        "bound": -30.0,
        "conditions": [msgspec.structs.replace(each, observed_generation=1) for each in conditions],
    }
    return make_claim(name, **{**settings, **fields})


# ---- snapshots


def make_snapshot(
    pool: VirtualMachinePool | None = None, removable: Iterable[Instance] = (), **fields: Any
) -> Snapshot:
    """What is seen of a pool. A state's name in lower case is its count, or its VMs one by one; those in
    `removable` are counted as well.
    """
    given = list(removable)
    counts = {state: sum(each.state is state for each in given) for state in State}
    for state in State:
        there = fields.get(state.value.lower(), 0)
        counts[state] += there if isinstance(there, int) else len(there)
        if isinstance(there, int):
            fields.pop(state.value.lower(), None)
    pool = pool or make_pool()
    revision = fields.get("revision", "0123456789")
    floor = decide(pool.spec.warm, Stock(0, 0, 0), now=NOW, stabilizer=Stabilizer(), limits=Limits(10))
    decision = fields.pop("decision", floor)
    settings: Json = {"pool": pool, "revision": revision, "now": NOW, "counts": counts}
    settings |= {"target": decision.target, "told": Told(decision)}
    settings["standard"] = replace(Standard.of(pool), revisions=frozenset({revision}))
    return Snapshot(**{**settings, **fields}, removable=given)


# ---- back to what the API server stores


def stored(thing: VirtualMachine | Claim) -> Json:
    """The object as the API server holds it: what is absent is absent, labels and annotations never are."""
    found: Json = _present(msgspec.to_builtins(thing))
    metadata = found["metadata"]
    if isinstance(thing, VirtualMachine):
        metadata.setdefault("labels", {})
        metadata.setdefault("annotations", {})
    return found


def read_vm(raw: Json) -> VirtualMachine:
    return msgspec.convert(raw, VirtualMachine)


def read_claim(raw: Json) -> Claim:
    return msgspec.convert(raw, Claim)


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _present(each) for key, each in value.items() if each not in (None, "", [], {})}
    if isinstance(value, list):
        return [_present(each) for each in value]
    return value
