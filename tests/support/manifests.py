"""Pools and claims as a user writes them: `pool_manifest("ci", warm={"replicas": 3})`."""

from __future__ import annotations

import json
from typing import Any

from tests.support.kubectl import Kubectl

API_VERSION = "bullpen.dev/v1alpha1"
API = f"/apis/{API_VERSION}"
TEMPLATE: dict[str, Any] = {
    "spec": {"template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}}
}


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


def apply(kubectl: Kubectl, namespace: str, *manifests: dict[str, Any], server_side: bool = False) -> str:
    """Apply them as a user does; what kubectl prints."""
    stdin = "\n---\n".join(map(json.dumps, manifests))
    how = ["--server-side"] if server_side else []
    return kubectl("apply", *how, "-n", namespace, "-f", "-", stdin=stdin)


def get(kubectl: Kubectl, namespace: str, *what: str) -> dict[str, Any]:
    """The object that kubectl finds."""
    found: dict[str, Any] = json.loads(kubectl("get", "-n", namespace, *what, "-o", "json"))
    return found


def path_of(manifest: dict[str, Any], namespace: str) -> str:
    """The URL path of a pool or claim."""
    return f"{API}/namespaces/{namespace}/{manifest['kind'].lower()}s/{manifest['metadata']['name']}"
