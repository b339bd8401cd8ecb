"""What happens to a VM whose guest is up: the late copy of its status, and what was commanded.

Pure. A VM that is as it should be gets an empty script: ten thousand idle ones cost nothing.
"""

from collections.abc import Iterator

from simulator.kubevirt import filling
from simulator.kubevirt.behaviour import Failure, Profile
from simulator.kubevirt.life import Life, kept
from simulator.kubevirt.objects import VM_FINALIZER, VMI, holds, reason
from simulator.kubevirt.script import Script, Verb, Write, lagging, ordered
from simulator.kubevirt.statuses import (
    GUEST_DOWN,
    NODE_LOST,
    PAUSED,
    Json,
    condition,
    reached,
    ready,
    vmi_status,
)

_LOSS = 0.5  # seconds from Ready to the loss of a node that is to be lost
_IP_GAP = 0.05  # seconds without an address when the agent connects


def living(life: Life, vmi: VMI, node_grace: float) -> Script:
    writes: list[Write] = []
    if life.profile is Profile.OBSERVED and VM_FINALIZER not in life.vm.metadata.finalizers:
        writes.append(Write(0.0, Verb.FINALIZE, "finalizer"))  # somebody took it off
    if vmi.paused != life.how.pause:
        writes += _pause(life, vmi) if life.how.pause else _unpause(life, vmi)
    elif life.profile is Profile.OBSERVED and not _told(life, vmi):
        writes.append(_vm(life, 0.0, kept(vmi.status.conditions), paused=vmi.paused))
    lost = life.node_lost or life.how.failure is Failure.LOST_NODE
    if lost and reason(vmi.status.conditions, "Ready") != NODE_LOST[0]:
        writes += _node_lost(life, vmi, node_grace)
    if life.how.agent is not None and not holds(vmi.status.conditions, "AgentConnected"):
        writes += _agent(life, vmi, life.how.agent)
    obeyed = {life.crashed, vmi.metadata.annotations.get(filling.CRASHED, "")}
    if life.how.crash_command not in obeyed:
        writes += _end(life, life.how.crash_after, "Failed", vmi)
        writes += _end(life, life.how.shutdown_after, "Succeeded", vmi)
    return lagging(ordered(writes), life.how.status_lag)


def _told(life: Life, vmi: VMI) -> bool:
    """Whether the VM's status says already what its VMI's does."""
    shown = life.vm.status
    same_agent = holds(shown.conditions, "AgentConnected") == holds(vmi.status.conditions, "AgentConnected")
    printable = "Paused" if vmi.paused else "Running"
    return shown.printable_status == printable and life.vm.ready == vmi.ready and same_agent


def _vm(life: Life, at: float, conditions: list[Json], *, paused: bool = False) -> Write:
    return life.vm_write(at, "Paused" if paused else "Running", conditions, created=True)


def _vmi(at: float, name: str, conditions: list[Json]) -> Write:
    return Write(at, Verb.VMI, name, {"status": {"conditions": conditions}})


def _pause(life: Life, vmi: VMI) -> Iterator[Write]:
    """Paused while still Ready, then no longer Ready."""
    others = kept(vmi.status.conditions, "Ready", "Paused")
    paused = condition("Paused", life.when(0), status=True, why=PAUSED)
    for at, up in ((0.0, ready(life.when(0))), (0.03, ready(life.when(0.03), GUEST_DOWN))):
        yield _vmi(at, "Paused", [*others, up, paused])
        yield from _copies(life, at + 0.01, [*others, up, paused], paused=True)


def _unpause(life: Life, vmi: VMI) -> Iterator[Write]:
    """The mirror: no longer Paused while not yet Ready, then Ready."""
    others = kept(vmi.status.conditions, "Ready", "Paused")
    for at, up in ((0.0, ready(life.when(0), GUEST_DOWN)), (0.03, ready(life.when(0.03)))):
        yield _vmi(at, "Unpaused", [*others, up])
        yield from _copies(life, at + 0.01, [*others, up], paused=False)


def _copies(life: Life, at: float, conditions: list[Json], *, paused: bool) -> Iterator[Write]:
    if life.profile is Profile.OBSERVED:
        yield _vm(life, at, conditions, paused=paused)


def _node_lost(life: Life, vmi: VMI, grace: float) -> Iterator[Write]:
    at = grace
    if not life.node_lost:
        yield Write(_LOSS, Verb.LOSE_NODE, "node lost")
        at += _LOSS
    conditions = [*kept(vmi.status.conditions, "Ready"), ready(life.when(at), NODE_LOST)]
    yield _vmi(at, "NodeLost", conditions)
    yield from _copies(life, at + 0.01, conditions, paused=vmi.paused)


def _agent(life: Life, vmi: VMI, at: float) -> Iterator[Write]:
    """The agent connects: for a moment the guest reports no address."""
    connected = condition("AgentConnected", life.when(at), status=True)
    conditions = [*kept(vmi.status.conditions, "AgentConnected"), connected]
    status = {"phase": "Running", "conditions": conditions}
    for moment, ip in ((at, ""), (at + _IP_GAP, vmi.ip or life.ip)):
        interfaces = vmi_status("Running", [], [], ip=ip)["interfaces"]
        yield Write(moment, Verb.VMI, "AgentConnected", {"status": {**status, "interfaces": interfaces}})
    yield from _copies(life, at + _IP_GAP + 0.01, conditions, paused=vmi.paused)


def _end(life: Life, at: float | None, phase: str, vmi: VMI) -> Iterator[Write]:
    """The guest crashes (Failed) or shuts itself down (Succeeded)."""
    if at is None:
        return
    now = life.when(at)
    conditions = [*kept(vmi.status.conditions, "Ready", "AgentConnected"), ready(now, GUEST_DOWN)]
    phases = [*vmi.status.phase_transition_timestamps, reached(phase, now)]
    yield Write(at, Verb.VMI, phase, {"status": vmi_status(phase, conditions, phases)})
