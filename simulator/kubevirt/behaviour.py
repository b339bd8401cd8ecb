"""How one VM is to behave: by the stand-in's flags, by annotations, and by what its own spec gets wrong.

Pure. An annotation on the VM wins over the same one on its template, which wins over the flags.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any, Final

from simulator.kubevirt.distributions import Distribution, Fixed, parse
from simulator.kubevirt.objects import VM

PREFIX: Final = "simulator.bullpen.dev/"
KNOWN_INSTANCETYPES: Final = frozenset({"u1.small", "u1.medium"})
MISSING: Final = "missing-"  # a claim or Secret whose name begins so counts as one that does not exist
_NO_TIME: Final = Fixed(0.0)
_BOOT: Final = Fixed(1.0)
_SHUTDOWN: Final = Fixed(0.1)


class Failure(StrEnum):
    """What goes wrong: commanded by name, or read from a spec that KubeVirt accepts and never runs."""

    CRASH_LOOP = "crash-loop"
    UNSCHEDULABLE = "unschedulable"
    IMAGE = "image"
    HANG = "hang"
    LOST_NODE = "lost-node"
    FAILED_CREATE = "failed-create"
    FAILED_FIND_INSTANCETYPE = "failed-find-instancetype"
    PVC_MISSING = "pvc-missing"
    NO_IMAGE = "no-image"
    SECRET_MISSING = "secret-missing"  # noqa: S105 - no secret


class Profile(StrEnum):
    OBSERVED = "observed"
    MINIMAL = "minimal"


@dataclass(frozen=True, slots=True)
class Defaults:
    """The flags: what holds for a VM that says nothing itself. All times in seconds."""

    profile: Profile = Profile.OBSERVED
    boot: Distribution = _BOOT
    shutdown: Distribution = _SHUTDOWN
    status_lag: Distribution = _NO_TIME
    agent: Distribution | None = None
    back_off: float = 10.0
    node_grace: float = 1.0
    failures: Mapping[Failure, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one VM does. All times in seconds; None is never."""

    boot: float
    shutdown: float
    status_lag: float
    agent: float | None
    failure: Failure | None
    crash_after: float | None
    shutdown_after: float | None
    crash_command: str  # the annotations' own words: a guest that crashed by them does not do it again
    pause: bool


def behaviour(vm: VM, template: Mapping[str, Any], defaults: Defaults, random: Random) -> Behaviour:
    """Decide once for a boot; an annotation that cannot be read counts as absent."""
    asked = commands(vm, template)
    share = _by_share(defaults.failures, Random(vm.metadata.uid))
    failure = _named(asked.get("fail")) or (None if "fail" in asked else share) or _in_spec(vm, template)
    agent = _time(asked, "agent", defaults.agent, random)
    return Behaviour(
        boot=_time(asked, "boot", defaults.boot, random) or 0.0,
        shutdown=_time(asked, "shutdown", defaults.shutdown, random) or 0.0,
        status_lag=_time(asked, "status-lag", defaults.status_lag, random) or 0.0,
        agent=agent,
        failure=failure,
        crash_after=_time(asked, "crash-after", None, random),
        shutdown_after=_time(asked, "shutdown-after", None, random),
        crash_command=f"{asked.get('crash-after', '')}|{asked.get('shutdown-after', '')}",
        pause=asked.get("pause") == "true",
    )


def commands(vm: VM, template: Mapping[str, Any]) -> dict[str, str]:
    """The stand-in's annotations without their prefix."""
    on_template = ((template.get("metadata") or {}).get("annotations")) or {}
    both = {**on_template, **vm.metadata.annotations}
    return {key.removeprefix(PREFIX): value for key, value in both.items() if key.startswith(PREFIX)}


def _time(asked: Mapping[str, str], name: str, default: Distribution | None, random: Random) -> float | None:
    try:
        chosen = parse(asked[name]) if name in asked else default
    except ValueError:
        chosen = default
    return None if chosen is None else chosen.sample(random)


def _named(name: str | None) -> Failure | None:
    try:
        return Failure(name) if name else None
    except ValueError:
        return None


def _by_share(shares: Mapping[Failure, float], random: Random) -> Failure | None:
    """By the VM's uid, not by chance: the same VM fails the same way after a restart of the stand-in."""
    drawn = random.random()
    for failure, share in shares.items():
        drawn -= share
        if drawn < 0:
            return failure
    return None


def _in_spec(vm: VM, template: Mapping[str, Any]) -> Failure | None:
    """What KubeVirt accepts and never runs."""
    spec = template.get("spec") or {}
    if vm.spec.instancetype is not None:
        if vm.spec.instancetype.get("name") not in KNOWN_INSTANCETYPES:
            return Failure.FAILED_FIND_INSTANCETYPE
    elif not _has_memory(spec.get("domain") or {}):
        return Failure.FAILED_CREATE
    found = (_in_volume(volume) for volume in spec.get("volumes") or [])
    return next((failure for failure in found if failure is not None), None)


def _in_volume(volume: Mapping[str, Any]) -> Failure | None:
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    cloud_init = volume.get("cloudInitNoCloud") or volume.get("cloudInitConfigDrive") or {}
    secrets = [
        (volume.get("secret") or {}).get("secretName", ""),
        (cloud_init.get("secretRef") or {}).get("name", ""),
    ]
    if claim.startswith(MISSING):
        return Failure.PVC_MISSING
    if any(secret.startswith(MISSING) for secret in secrets):
        return Failure.SECRET_MISSING
    if volume.get("containerDisk") is not None and not volume["containerDisk"].get("image"):
        return Failure.NO_IMAGE
    return None


def _has_memory(domain: Mapping[str, Any]) -> bool:
    memory = domain.get("memory") or {}
    resources = domain.get("resources") or {}
    wanted = [resources.get("requests") or {}, resources.get("limits") or {}]
    return bool(
        memory.get("guest") or memory.get("hugepages") or any(amounts.get("memory") for amounts in wanted)
    )
