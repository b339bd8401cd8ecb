"""What the writes of the benchmarks hold: the product's own objects and patches, to the guard.

The VM to create is a copy of one that the controller made. The patches are written down here, so that the
bare client runs none of the product's code; a test compares them with the product's.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from crds import names

VMS = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines"
VMIS = "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstances"
CLAIMS = f"/apis/{names.API_VERSION}/namespaces/{{}}/{names.CLAIMS}"
POOLS = f"/apis/{names.API_VERSION}/namespaces/{{}}/{names.POOLS}"

_LABELS = "/metadata/labels/bullpen.dev~1"
_ANNOTATIONS = "/metadata/annotations/bullpen.dev~1"


@dataclass(frozen=True, slots=True)
class Machine:
    """A VM as far as the bare client has to know it."""

    name: str
    uid: str


def claim(pool: str, name: str) -> bytes:
    return orjson.dumps(
        {
            "apiVersion": names.API_VERSION,
            "kind": "VirtualMachineClaim",
            "metadata": {"name": name},
            "spec": {"poolRef": {"name": pool}},
        }
    )


def pool(example: dict[str, Any], name: str, warm: int, most: int, at_once: int) -> bytes:
    """The example's pool with another name and size."""
    spec = {
        **example["spec"],
        "warm": {"replicas": warm},
        "limits": {
            "maxReplicas": most,
            "maxConcurrentCreations": at_once,
            "maxConcurrentDeletions": at_once,
        },
    }
    return orjson.dumps({**example, "metadata": {"name": name}, "spec": spec})


def delete_options(uid: str) -> bytes:
    return orjson.dumps(
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
    )


class Shape:
    """The bodies of one pool's writes, after the pattern of a warm VM and its instance."""

    def __init__(self, vm: dict[str, Any], vmi: dict[str, Any]) -> None:
        meta = vm["metadata"]
        self.namespace: str = meta["namespace"]
        self.pool: str = meta["labels"][names.LABEL_POOL]
        self.pool_uid: str = meta["labels"][names.LABEL_POOL_UID]
        self._owners = meta["ownerReferences"]
        self._instance = {
            "vmiUID": vmi["metadata"]["uid"],
            "node": vmi["status"]["nodeName"],
            "addresses": [
                {"type": "InternalIP", "address": vmi["status"]["interfaces"][0]["ipAddress"]},
            ],
        }
        kept = ("namespace", "labels", "annotations", "ownerReferences")
        self._vm = {
            "apiVersion": vm["apiVersion"],
            "kind": vm["kind"],
            "metadata": {key: copy.deepcopy(meta[key]) for key in kept},
            "spec": copy.deepcopy(vm["spec"]),
        }

    def vm(self, name: str) -> bytes:
        return orjson.dumps({**self._vm, "metadata": {**self._vm["metadata"], "name": name}})

    def hand_over(self, vm: Machine, claim: str, claim_uid: str) -> bytes:
        """Write 1, with the product's guards."""
        owner = {
            "apiVersion": names.API_VERSION,
            "kind": "VirtualMachineClaim",
            "name": claim,
            "uid": claim_uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return orjson.dumps(
            [
                _test("/metadata/uid", vm.uid),
                _test("/metadata/deletionTimestamp", None),
                _test(_LABELS + "state", "Pooled"),
                _test(_LABELS + "claim-uid", None),
                _test("/metadata/ownerReferences", self._owners),
                _add(_ANNOTATIONS + "claim", claim),
                _add(_ANNOTATIONS + "release-policy", "Delete"),
                _add("/metadata/ownerReferences", [owner]),
                _add(_LABELS + "claim-uid", claim_uid),
                _add(_LABELS + "state", "Claimed"),
            ]
        )

    def publish(self, vm: Machine, claim_uid: str, now: datetime | None = None) -> bytes:
        """Write 2, with the product's guards."""
        at = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        address = self._instance["addresses"][0]["address"]
        status = {
            "phase": "Bound",
            "pool": self.pool,
            "poolUID": self.pool_uid,
            "releasePolicy": "Delete",
            "virtualMachines": [{"name": vm.name, "uid": vm.uid, "warm": True, **self._instance}],
            "boundAt": at,
            "waited": "5ms",
            "conditions": [
                _condition("Bound", "HandedOver", f"VM {vm.name} was handed over", at),
                _condition("Ready", "Usable", f"VM {vm.name} is ready at {address}", at),
            ],
        }
        return orjson.dumps(
            [
                _test("/metadata/uid", claim_uid),
                _test("/metadata/deletionTimestamp", None),
                _test("/status", None),
                _add("/status", status),
            ]
        )


def _condition(kind: str, reason: str, message: str, at: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
        "observedGeneration": 1,
    }


def _test(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}
