"""Node objects for the guests to land on, their leases renewed as a kubelet does.

Must never renew the lease of a node that is lost: the control plane's own node controller does the rest.
"""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any, Final

from simulator.api import Api, ApiError
from simulator.kubevirt.behaviour import PREFIX
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.statuses import stamp

log = logging.getLogger(__name__)
_RENEW: Final = 10.0  # seconds, as a kubelet
_LEASE_SECONDS: Final = 40
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_CONFLICT: Final = 409
_AMOUNTS: Final = {"cpu": "64", "memory": "256Gi", "pods": "250", "devices.kubevirt.io/kvm": "1k"}


class Nodes:
    """Args: the client, and the placement whose names become Node objects."""

    def __init__(self, api: Api, placement: Placement) -> None:
        self._api = api
        self._placement = placement

    async def create(self) -> None:
        """Create what is not there yet; what is there is taken over."""
        for name in self._placement.names:
            for path, obj in (("/api/v1/nodes", _node(name)), (_LEASES, _lease(name))):
                try:
                    await self._api.post(path, obj)
                except ApiError as error:
                    if error.status != _CONFLICT:
                        raise

    async def renew(self) -> None:
        """For ever; one refused renewal is no more than one renewal missed."""
        while True:
            for name in self._placement.names:
                if name not in self._placement.lost:
                    await self._renew(name)
            await asyncio.sleep(_RENEW)

    async def _renew(self, name: str) -> None:
        try:
            await self._api.merge_patch(f"{_LEASES}/{name}", {"spec": {"renewTime": _now()}})
        except ApiError as error:
            log.warning("lease of %s: %s", name, error)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _node(name: str) -> dict[str, Any]:
    now = stamp(datetime.now(UTC))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubevirt.io/schedulable": "true",
                f"{PREFIX}node": "true",
            },
        },
        # Nobody runs pods here: without the taint the scheduler would send some.
        "spec": {"taints": [{"key": f"{PREFIX}node", "effect": "NoSchedule"}]},
        "status": {
            "capacity": _AMOUNTS,
            "allocatable": _AMOUNTS,
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "the stand-in renews this node's lease",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
            ],
        },
    }


def _lease(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": _now()},
    }
