"""Which Secrets and ConfigMaps a pool's template refers to, and whether a VM holds what they say. Pure.

It must never fail on a template that KubeVirt would refuse: that is found out elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from crds.pool_status import MAX_REFERENCES

Json: TypeAlias = dict[str, Any]

Kind: TypeAlias = Literal["Secret", "ConfigMap"]
SECRET: Kind = "Secret"  # noqa: S105 - a kind
CONFIG_MAP: Kind = "ConfigMap"


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One object that the template names."""

    kind: Kind
    name: str
    held: bool = True
    """A VM holds what it said when the VM started; else it is looked up when needed, or followed live."""
    optional: bool = False
    """VMs start without it, too."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def references(spec: Json) -> tuple[Reference, ...]:
    """What the spec of a VirtualMachine refers to, each object once; at most MAX_REFERENCES of them."""
    found: dict[tuple[str, str], Reference] = {}
    for each in _all(spec):
        known = found.get((each.kind, each.name), each)
        found[each.kind, each.name] = replace(
            each, held=each.held or known.held, optional=each.optional and known.optional
        )
    return tuple(sorted(found.values()))[:MAX_REFERENCES]


def _all(spec: Json) -> Iterator[Reference]:
    guest = _part(_part(spec, "template"), "spec")
    live = {each.get("name") for each in _items(_part(_part(guest, "domain"), "devices"), "filesystems")}
    for volume in _items(guest, "volumes"):
        yield from _volume(volume, held=volume.get("name") not in live)
    for credential in _items(guest, "accessCredentials"):
        yield from _credential(credential)
    boot = _part(_part(_part(guest, "domain"), "firmware"), "kernelBoot")
    yield from _named(SECRET, _part(boot, "container").get("imagePullSecret"), held=False)
    for disk in _items(spec, "dataVolumeTemplates"):
        for source in _part(_part(disk, "spec"), "source").values():
            yield from _import(source if isinstance(source, dict) else {})


def _volume(volume: Json, *, held: bool) -> Iterator[Reference]:
    """A volume's own; shared by virtiofs the guest follows it live."""
    for source in ("cloudInitNoCloud", "cloudInitConfigDrive"):
        for key in ("secretRef", "networkDataSecretRef"):
            yield from _named(SECRET, _part(_part(volume, source), key).get("name"))
    sysprep = _part(volume, "sysprep")
    yield from _named(SECRET, _part(sysprep, "secret").get("name"))
    yield from _named(CONFIG_MAP, _part(sysprep, "configMap").get("name"))
    secret, config_map = _part(volume, "secret"), _part(volume, "configMap")
    yield from _named(SECRET, secret.get("secretName"), held=held, optional=secret.get("optional") is True)
    yield from _named(
        CONFIG_MAP, config_map.get("name"), held=held, optional=config_map.get("optional") is True
    )
    yield from _named(SECRET, _part(volume, "containerDisk").get("imagePullSecret"), held=False)


def _credential(credential: Json) -> Iterator[Reference]:
    """Keys and passwords; what the guest agent propagates reaches running guests as well."""
    for use in ("sshPublicKey", "userPassword"):
        access = _part(credential, use)
        by_agent = "qemuGuestAgent" in _part(access, "propagationMethod")
        secret = _part(_part(access, "source"), "secret")
        yield from _named(SECRET, secret.get("secretName"), held=not by_agent)


def _import(source: Json) -> Iterator[Reference]:
    """What a disk's import needs to reach its source; the disk does not hold it."""
    yield from _named(SECRET, source.get("secretRef"), held=False)
    yield from _named(CONFIG_MAP, source.get("certConfigMap"), held=False)
    headers = source.get("secretExtraHeaders")
    for name in headers if isinstance(headers, list) else ():
        yield from _named(SECRET, name, held=False)


def _named(kind: Kind, name: Any, *, held: bool = True, optional: bool = False) -> Iterator[Reference]:
    if isinstance(name, str) and name:
        yield Reference(kind, name, held, optional)


def _part(parent: Json, key: str) -> Json:
    """A section; empty where there is none, or something that KubeVirt will refuse."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _items(parent: Json, key: str) -> list[Json]:
    value = parent.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
