"""The part of every Kubernetes object that is the same: its metadata.

Forgiving of absent fields, deaf to unknown ones. It must never grow what only one kind has: a kind's own
projection lives with that kind.
"""

import msgspec


class OwnerReference(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """One entry of metadata.ownerReferences."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Metadata as the API server sends it; times are RFC 3339 strings."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class KubeObject(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Any object, seen by its metadata only."""

    metadata: ObjectMeta = ObjectMeta()
