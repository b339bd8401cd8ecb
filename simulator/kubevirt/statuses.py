"""The statuses that KubeVirt writes, as plain dicts: merge patches that replace every list they name.

Pure: the time comes with the call. Nothing is ever removed but by an explicit None.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

Json = dict[str, Any]

VMI_GONE: Final = ("VMINotExists", "VMI does not exist")
GUEST_DOWN: Final = ("GuestNotRunning", "Guest VM is not reported as running")
POD_MISSING: Final = ("PodNotExists", "virt-launcher pod has not yet been scheduled")
NODE_LOST: Final = ("NodeUnresponsive", "the node has stopped renewing its lease")
PAUSED: Final = ("PausedByUser", "VMI was paused by user")


def stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, now: datetime, *, status: bool, why: tuple[str, str] = ("", "")) -> Json:
    made: Json = {
        "type": kind,
        "status": "True" if status else "False",
        "lastProbeTime": None,
        "lastTransitionTime": stamp(now),
    }
    if why[0]:
        made |= {"reason": why[0], "message": why[1]}
    return made


def ready(now: datetime, why: tuple[str, str] | None = None) -> Json:
    """Ready=True, or Ready=False for the reason given."""
    return condition("Ready", now, status=why is None, why=why or ("", ""))


def vm_status(
    printable: str,
    conditions: Sequence[Json] | None,
    *,
    created: bool = False,
    generation: int = 0,
    fails: int = 0,
    stopped: bool = False,
) -> Json:
    """A VirtualMachine's status; conditions None leaves those that are there (KubeVirt's stale ones).

    Args:
        printable: what `kubectl get vm` shows as STATUS.
        conditions: all there are to be.
        created: whether its VMI exists.
        generation: of the VM whose spec was looked at.
        fails: starts in a row that failed; 0 clears the count.
        stopped: whether a stop that was asked for has happened.
    """
    status: Json = {
        "printableStatus": printable,
        "created": created or None,
        "startFailure": {"consecutiveFailCount": fails} if fails else None,
    }
    if stopped:
        status["stateChangeRequests"] = None
    if conditions is not None:
        is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
        status |= {"conditions": list(conditions), "ready": is_ready or None}
    if generation:
        status |= {"observedGeneration": generation, "desiredGeneration": generation}
    return status


def vmi_status(
    phase: str,
    conditions: Sequence[Json],
    transitions: Sequence[Mapping[str, str]],
    *,
    node: str | None = None,
    ip: str | None = None,
) -> Json:
    """A VirtualMachineInstance's status; `ip` "" is a guest that reports none just now."""
    status: Json = {
        "phase": phase,
        "conditions": list(conditions),
        "phaseTransitionTimestamps": [dict(entry) for entry in transitions],
    }
    if node is not None:
        status["nodeName"] = node
    if ip is not None:
        addresses = {"ipAddress": ip, "ipAddresses": [ip]} if ip else {}
        status["interfaces"] = [{"name": "default", "queueCount": 1, "infoSource": "domain", **addresses}]
    return status


def reached(phase: str, now: datetime) -> Json:
    return {"phase": phase, "phaseTransitionTimestamp": stamp(now)}
