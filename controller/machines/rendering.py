"""A VM made from a pool's template: pure, and the same for the same input.

Refuses what two VMs of one pool can't share. It never reads the API server, and never puts anything of ours
where KubeVirt would show it to the guest, except the labels that the launcher pod needs.
"""

import copy
from typing import Any

import orjson

from controller.machines.objects import manifest_owner
from crds import names
from crds.pool import TemplateMetadata, VirtualMachinePool

MAX_TEMPLATE_BYTES = 256 * 1024
# The alphabet of Kubernetes' own generated names: no vowels, no 0, 1, 3, so no words and no look-alikes.
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
MAX_NAME_LENGTH = 63
_RUN_STRATEGIES = ("Always", "RerunOnFailure")


class TemplateError(Exception):
    """A template that can't make a pool's VMs. The text says what to write instead."""

    reason = "TemplateInvalid"


class TemplateTooLargeError(TemplateError):
    """The template alone would fill a good part of etcd's limit for an object."""

    reason = "TemplateTooLarge"


def check(pool: VirtualMachinePool) -> None:
    """Raise TemplateError for a template whose VMs could not live side by side."""
    spec = pool.spec.template.spec
    size = len(orjson.dumps(spec))
    if size > MAX_TEMPLATE_BYTES:
        raise TemplateTooLargeError(
            f"spec.template is {size // 1024} kB, more than {MAX_TEMPLATE_BYTES // 1024} kB: "
            "move user data into a Secret and refer to it"
        )
    strategy = spec.get("runStrategy", "Always")
    if "running" in spec:
        raise TemplateError("spec.template.spec.running: write runStrategy: Always instead")
    if strategy not in _RUN_STRATEGIES:
        raise TemplateError(
            f"spec.template.spec.runStrategy is {strategy}: a warm VM has to run; "
            "write Always or RerunOnFailure"
        )
    template = _mapping(spec.get("template"), "spec.template.spec.template")
    _part(_part(template, "metadata"), "labels")
    guest = _mapping(template.get("spec"), "….template.spec")
    _check_identity(_part(guest, "domain"))
    for volume in _items(guest, "volumes"):
        _check_volume(volume)
    for disk in _items(spec, "dataVolumeTemplates"):
        if not isinstance(_part(disk, "metadata").get("name"), str):
            raise TemplateError("dataVolumeTemplates: each needs a metadata.name that its volume refers to")


def _check_identity(domain: dict[str, Any]) -> None:
    firmware = _part(domain, "firmware")
    for key in ("uuid", "serial"):
        if firmware.get(key):
            raise TemplateError(
                f"domain.firmware.{key} is fixed: leave it out, "
                "or every VM of the pool would have the same one"
            )
    for interface in _items(_part(domain, "devices"), "interfaces"):
        if interface.get("macAddress"):
            raise TemplateError(
                f"interface {interface.get('name', '?')} has a fixed macAddress: leave it out, "
                "or every VM of the pool would have the same one"
            )


def _check_volume(volume: dict[str, Any]) -> None:
    _part(volume, "dataVolume")
    claim = _part(volume, "persistentVolumeClaim")
    if claim and claim.get("readOnly") is not True:
        raise TemplateError(
            f"volume {volume.get('name', '?')} is a writable persistentVolumeClaim, which one VM alone can "
            "have: use dataVolumeTemplates for a disk of each VM's own, or set readOnly: true"
        )


def render(pool: VirtualMachinePool, revision_hash: str, suffix: str) -> dict[str, Any]:
    """The VirtualMachine to create, named `<pool>-<suffix>` (a long pool name is cut to fit).

    Call `check` first. The VM is Pooled, owned by the pool, and carries at least one annotation, because a
    JSON patch can't add a key to a map that is absent.
    """
    name = f"{pool.metadata.name[: MAX_NAME_LENGTH - len(suffix) - 1].rstrip('-.')}-{suffix}"
    spec = copy.deepcopy(pool.spec.template.spec)
    spec.setdefault("runStrategy", "Always")
    shared = {
        names.LABEL_POOL: pool.metadata.name,
        names.LABEL_POOL_UID: pool.metadata.uid,
        names.LABEL_REVISION: revision_hash,
    }
    template = spec["template"]
    metadata = template["metadata"] = template.get("metadata") or {}
    metadata["labels"] = {**(metadata.get("labels") or {}), **shared}
    _rename_data_volumes(spec, name)
    written = pool.spec.template.metadata or TemplateMetadata()
    return {
        "apiVersion": names.KUBEVIRT_API_VERSION,
        "kind": "VirtualMachine",
        "metadata": {
            "name": name,
            "namespace": pool.metadata.namespace,
            "labels": {**(written.labels or {}), **shared, names.LABEL_STATE: names.Mark.POOLED.value},
            "annotations": {**(written.annotations or {}), names.LABEL_POOL: pool.metadata.name},
            "ownerReferences": [pool_reference(pool)],
        },
        "spec": spec,
    }


def pool_reference(pool: VirtualMachinePool) -> dict[str, Any]:
    return manifest_owner("VirtualMachinePool", names.API_VERSION, pool.metadata.name, pool.metadata.uid)


def _rename_data_volumes(spec: dict[str, Any], vm: str) -> None:
    """Give each dataVolumeTemplate a name of this VM's own, and follow it in every volume."""
    renamed: dict[str, str] = {}
    for disk in _items(spec, "dataVolumeTemplates"):
        metadata = disk["metadata"]
        renamed[metadata["name"]] = metadata["name"] = f"{vm}-{metadata['name']}"
    for volume in _items(spec["template"]["spec"], "volumes"):
        for source, key in (("dataVolume", "name"), ("persistentVolumeClaim", "claimName")):
            reference = _part(volume, source)
            name = reference.get(key)
            if isinstance(name, str) and name in renamed:
                reference[key] = renamed[name]


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TemplateError(f"{where} has to be a mapping: write a kubevirt.io/v1 VirtualMachine's spec")
    return value


def _part(parent: dict[str, Any], key: str) -> dict[str, Any]:
    """A section that may be absent or empty."""
    return _mapping(parent.get(key) or {}, f"{key} in spec.template.spec")


def _items(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of sections that may be absent or empty."""
    value = parent.get(key) or []
    if not isinstance(value, list):
        raise TemplateError(f"{key} in spec.template.spec has to be a list")
    return [_mapping(each, f"each of {key} in spec.template.spec") for each in value]
