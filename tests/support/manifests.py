"""Pools and claims as a user writes them: `pool_manifest("ci", warm={"replicas": 3})`."""

from __future__ import annotations

from typing import Any

API_VERSION = "bullpen.dev/v1alpha1"
TEMPLATE: dict[str, Any] = {"spec": {"template": {"spec": {"domain": {}}}}}


def pool_manifest(name: str = "pool", **spec: Any) -> dict[str, Any]:
    """A pool with the smallest template, and these fields of its spec."""
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachinePool",
        "metadata": {"name": name},
        "spec": {"template": TEMPLATE, **spec},
    }


def claim_manifest(name: str = "claim", pool: str = "pool", **spec: Any) -> dict[str, Any]:
    """A claim on this pool, with these fields of its spec."""
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachineClaim",
        "metadata": {"name": name},
        "spec": {"poolRef": {"name": pool}, **spec},
    }
