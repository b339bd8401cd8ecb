"""In which state of the instance machine a VM is, derived anew from what is observed.

Pure. The label records only what we decided; whether a Pooled VM is warm is read from its VMI each time.
Two things are remembered: whether it was warm before, since that tells Unready from Provisioning, and until
when no node had room for it, since its deadline can't run before that.
"""

from dataclasses import dataclass

from controller.kube.timeline import AS_STAMPED, Timeline
from controller.machines.objects import Node, VirtualMachine, VirtualMachineInstance, condition_of
from controller.machines.readiness import ReadinessRule, epoch, judge
from crds import names
from statemachines.instance import State

_MARKS = {
    names.Mark.CLAIMED: State.CLAIMED,
    names.Mark.DRAINING: State.DRAINING,
    names.Mark.RECYCLING: State.RECYCLING,
    names.Mark.RETAINED: State.RETAINED,
}
# What KubeVirt's printableStatus calls a guest that will not come up by waiting.
_BROKEN = frozenset({"CrashLoopBackOff"})
_UNSCHEDULABLE = "ErrorUnschedulable"


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything about one VM of ours that its state depends on."""

    vm: VirtualMachine
    vmi: VirtualMachineInstance | None
    node: Node | None
    rule: ReadinessRule
    warm_before: bool
    unready_since: float | None
    ready_since: float | None
    now: float
    room_since: float = 0.0
    timeline: Timeline = AS_STAMPED


@dataclass(frozen=True, slots=True)
class Derived:
    """A VM's state, the reason a person reads, and when time alone may change it (epoch seconds).

    `node_lost`: it failed by its node, which says nothing about its template.
    """

    state: State
    reason: str = ""
    ready_since: float | None = None
    unready_since: float | None = None
    recheck_at: float | None = None
    unschedulable: bool = False
    room_since: float = 0.0
    node_lost: bool = False


def created_at(vm: VirtualMachine) -> float:
    return epoch(vm.metadata.creation_timestamp) or 0.0


def derive(seen: Observation) -> Derived:
    """The state of one VM, by its deletion, then its mark, then its guest."""
    meta = seen.vm.metadata
    if meta.deletion_timestamp is not None:
        return Derived(State.TERMINATING)
    mark = meta.labels.get(names.LABEL_STATE, "")
    if mark in _MARKS:
        return Derived(_MARKS[names.Mark(mark)])
    if meta.labels.get(names.LABEL_CLAIM_UID):
        return Derived(State.CLAIMED)  # Pooled with a claim's UID: someone set the label back; never offered
    return _pooled(seen)


def _pooled(seen: Observation) -> Derived:
    verdict = judge(seen.rule, seen.vmi, seen.node)
    if verdict.ready:
        return _ready(seen, verdict.since)
    if seen.warm_before:
        since = seen.unready_since if seen.unready_since is not None else seen.now
        over = seen.timeline.restated(since) + seen.rule.unready_grace
        if seen.now >= over:
            reason = f"it was warm and has not been ready since: {verdict.reason}"
            return Derived(State.FAILED, reason, node_lost=verdict.node_lost)
        return Derived(State.UNREADY, verdict.reason, unready_since=since, recheck_at=over)
    return _provisioning(seen, verdict.reason)


def _ready(seen: Observation, since: float | None) -> Derived:
    ready_since = seen.ready_since
    if ready_since is None:
        ready_since = since if since is not None else seen.now
    warm_at = seen.timeline.restated(ready_since) + seen.rule.min_ready_seconds
    if seen.now >= warm_at or seen.warm_before:
        return Derived(State.WARM, ready_since=ready_since)
    return Derived(
        State.PROVISIONING,
        "it is ready and waits for minReadySeconds",
        ready_since=ready_since,
        recheck_at=warm_at,
        room_since=seen.room_since,
    )


def _provisioning(seen: Observation, reason: str) -> Derived:
    status = seen.vm.status
    if status.printable_status == _UNSCHEDULABLE or _pod_unscheduled(seen.vmi):
        return Derived(State.PROVISIONING, "no node has room for it (Unschedulable)", unschedulable=True)
    if status.printable_status in _BROKEN:
        return Derived(State.FAILED, "its guest crashes again and again (CrashLoopBackOff)")
    failure = condition_of(status.conditions, "Failure")
    if failure is not None and failure.status == "True":
        return Derived(State.FAILED, f"KubeVirt could not start it: {failure.reason}: {failure.message}")
    began = seen.timeline.restated(max(created_at(seen.vm), seen.room_since))
    deadline = began + seen.rule.deadline
    if seen.now >= deadline:
        return Derived(State.FAILED, _late(seen, reason))
    return Derived(State.PROVISIONING, reason, recheck_at=deadline, room_since=seen.room_since)


def _late(seen: Observation, reason: str) -> str:
    status = seen.vm.status.printable_status
    return f"it was not warm within its deadline of {seen.rule.deadline:g} s: {reason}" + (
        f" (KubeVirt says {status})" if status else ""
    )


def _pod_unscheduled(vmi: VirtualMachineInstance | None) -> bool:
    if vmi is None:
        return False
    found = condition_of(vmi.status.conditions, "PodScheduled")
    return found is not None and found.status == "False"
