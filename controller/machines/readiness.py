"""When a VM counts as warm, read from the VMI because the VM's own status is a late copy of it.

Pure: observation in, verdict out. Times are seconds since the epoch of the API server's clock.
"""

from dataclasses import dataclass
from datetime import datetime

from controller.machines.objects import GONE, Condition, Node, VirtualMachineInstance, condition_of
from crds.durations import seconds
from crds.pool import Readiness, ReadinessWhen

NODE_UNRESPONSIVE = "NodeUnresponsive"  # what KubeVirt says of a guest whose node it does not hear from
_UNTIL_READY = {ReadinessWhen.READY: "Ready", ReadinessWhen.AGENT_CONNECTED: "AgentConnected"}


@dataclass(frozen=True, slots=True)
class ReadinessRule:
    """A pool's `spec.readiness` with its durations in seconds."""

    when: ReadinessWhen = ReadinessWhen.READY
    conditions: tuple[str, ...] = ()
    min_ready_seconds: float = 0.0
    deadline: float = 900.0
    unready_grace: float = 120.0

    @classmethod
    def of(cls, spec: Readiness) -> "ReadinessRule":
        return cls(
            when=spec.when,
            conditions=tuple(spec.conditions),
            min_ready_seconds=float(spec.min_ready_seconds),
            deadline=seconds(spec.deadline),
            unready_grace=seconds(spec.unready_grace),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the rule holds, why not, and since when it has (seconds) where KubeVirt says so.

    `node_lost`: not for anything of its own, but for its node.
    """

    ready: bool
    reason: str = ""
    since: float | None = None
    node_lost: bool = False


def epoch(timestamp: str | None) -> float | None:
    """RFC 3339 text as seconds since the epoch; None for an absent one."""
    return datetime.fromisoformat(timestamp).timestamp() if timestamp else None


def judge(rule: ReadinessRule, vmi: VirtualMachineInstance | None, node: Node | None) -> Verdict:
    """Does the readiness rule hold for this guest on this node, leaving `minReadySeconds` aside?"""
    if vmi is None:
        return Verdict(ready=False, reason="it has no running instance")
    if vmi.metadata.deletion_timestamp is not None:
        return Verdict(ready=False, reason="its instance is shutting down")
    if vmi.status.phase != "Running":
        return Verdict(ready=False, reason=f"its instance is {vmi.status.phase or 'Pending'}")
    if node is not None and (trouble := node_trouble(node)):
        return Verdict(ready=False, reason=f"its node {node.metadata.name} {trouble}", node_lost=True)
    wanted = [*_needed(rule), *rule.conditions]
    since: float | None = None
    for kind in wanted:
        found = condition_of(vmi.status.conditions, kind)
        if found is None or found.status != "True":
            lost = found is not None and found.reason == NODE_UNRESPONSIVE
            return Verdict(ready=False, reason=_unmet(kind, found), node_lost=lost)
        at = epoch(found.last_transition_time)
        since = at if since is None or (at is not None and at > since) else since
    return Verdict(ready=True, since=since)


def _needed(rule: ReadinessRule) -> tuple[str, ...]:
    kind = _UNTIL_READY.get(rule.when)
    return (kind,) if kind else ()


def _unmet(kind: str, found: Condition | None) -> str:
    if found is None:
        return f"condition {kind} is absent"
    return f"condition {kind} is {found.status}" + (f" ({found.reason})" if found.reason else "")


def node_trouble(node: Node) -> str:
    """Why a VM on this node may not be handed out; empty when it may."""
    if node.metadata.deletion_timestamp == GONE:
        return "was deleted"
    ready = condition_of(node.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        return "is not ready"
    if node.spec.unschedulable:
        return "is cordoned"
    if any(taint.effect == "NoExecute" for taint in node.spec.taints):
        return "is tainted NoExecute"
    return ""
