"""People who are no administrators: accounts of one namespace, each with its roles and its own credentials.

It must never borrow an administrator's rights: what they may do is what the roles say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from e2e.rest import Answer, Rest
from e2e.specs.installation import NAMESPACE, RELEASE, credentials
from tests.support.kubectl import Kubectl
from tests.support.manifests import API_VERSION

Json = dict[str, Any]
CLAIMANT = f"{NAMESPACE}:{RELEASE}:claimant"
VMS, CLAIMS, POOLS = "virtualmachines", "virtualmachineclaims", "virtualmachinepools"
_API = {VMS: "kubevirt.io/v1", CLAIMS: API_VERSION, POOLS: API_VERSION}


@dataclass(frozen=True)
class Person:
    """What one account asks of the API server in its namespace. A context manager that hangs up."""

    api: Rest
    namespace: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()

    def path(self, plural: str, name: str = "", namespace: str = "") -> str:
        where = f"/apis/{_API[plural]}/namespaces/{namespace or self.namespace}/{plural}"
        return f"{where}/{name}" if name else where

    def make(self, plural: str, manifest: Json, **params: str | int) -> Answer:
        return self.api.post(self.path(plural), manifest, **params)

    def patch(self, plural: str, name: str, body: Any, subresource: str = "") -> Answer:
        """A merge patch for an object, a JSON patch for a list."""
        path = self.path(plural, name)
        return self.api.patch(f"{path}/{subresource}" if subresource else path, body)

    def get(self, plural: str, name: str) -> Answer:
        return self.api.get(self.path(plural, name))

    def delete(self, plural: str, name: str, propagation: str = "Background") -> Answer:
        return self.api.delete(self.path(plural, name), propagationPolicy=propagation)


def settle(
    kubectl: Kubectl, namespace: str, name: str, roles: Iterable[str], directory: Path, *rules: Json
) -> Person:
    """An account with these ClusterRoles in its namespace, and a Role of these rules."""
    kubectl("create", "serviceaccount", name, "-n", namespace)
    whom = f"--serviceaccount={namespace}:{name}"
    for index, role in enumerate(roles):
        kubectl("create", "rolebinding", f"{name}-{index}", "-n", namespace, f"--clusterrole={role}", whom)
    if rules:
        manifest: Json = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
        manifest |= {"metadata": {"name": name}, "rules": list(rules)}
        kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(manifest))
        kubectl("create", "rolebinding", f"{name}-own", "-n", namespace, f"--role={name}", whom)
    return Person(Rest(credentials(kubectl, namespace, name, directory)), namespace)


def may(group: str, resources: Iterable[str], *verbs: str) -> Json:
    """One rule of a Role."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
