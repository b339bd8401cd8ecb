"""How a guest, a VMI and a VM come to their end, in KubeVirt's order of writes.

Pure. Deleting a VM shows three changes on the VM and four on its VMI before each is gone.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from simulator.kubevirt.behaviour import Profile
from simulator.kubevirt.boot import opening
from simulator.kubevirt.life import Life, kept
from simulator.kubevirt.objects import ORPHAN, VMI, VMI_FINALIZERS, reason
from simulator.kubevirt.script import Script, Verb, Write, ordered
from simulator.kubevirt.statuses import GUEST_DOWN, VMI_GONE, reached, ready, vmi_status

_STALE = (0.045, 0.075)  # seconds that a VM goes on saying Ready=True after its guest ended


def replace(life: Life, vmi: VMI) -> Script:
    """The guest ended and another one is wanted; one that was never up counts as a failed start."""
    if life.profile is Profile.MINIMAL:
        return (Write(0, Verb.DELETE, "guest ended"),)
    delete = Write(0.010, Verb.DELETE, "guest ended")
    finalizers = [
        Write(0.015, Verb.UNFINALIZE_VMI, name, {"finalizer": name})
        for name in _held(vmi.metadata.finalizers)
    ]
    if not vmi.ran:
        conditions = [ready(life.when(0), VMI_GONE)]
        crashed = life.vm_write(0.005, "CrashLoopBackOff", conditions, fails=life.fails + 1)
        return (crashed, delete, *finalizers)
    over = 0.005 + life.random.uniform(*_STALE)
    stale = life.vm_write(0.005, "Stopped", None)
    told = life.vm_write(over, "Starting", [ready(life.when(over), VMI_GONE)])
    return (stale, delete, *finalizers, told)


def rest(life: Life, vmi: VMI) -> Script:
    """The guest ended and stays so."""
    if life.profile is Profile.MINIMAL or (
        life.vm.status.printable_status == "Stopped" and not life.vm.ready
    ):
        return ()
    conditions = [*kept(vmi.status.conditions, "Ready"), ready(life.when(0.01), GUEST_DOWN)]
    return (life.vm_write(0.01, "Stopped", conditions, created=True),)


def park(life: Life) -> Script:
    """It should not run: Stopped, and nothing else."""
    writes = list(opening(life))
    shown = life.vm.status
    if life.profile is Profile.OBSERVED and (
        shown.printable_status != "Stopped" or reason(shown.conditions, "Ready") != VMI_GONE[0]
    ):
        writes.append(life.vm_write(0.06, "Stopped", [ready(life.when(0.06), VMI_GONE)], name="Parked"))
    return ordered(writes)


def stop(life: Life) -> Script:
    told = [life.vm_write(0.005, "Stopping", None, created=True)] if life.profile is Profile.OBSERVED else []
    return (*told, Write(0.010, Verb.DELETE, "stopped"))


def tear_down(life: Life) -> Script:
    told = [life.vm_write(0.005, "Terminating", None, created=True)]
    return (*(told if life.profile is Profile.OBSERVED else []), Write(0.010, Verb.DELETE, "VM deleted"))


def release(life: Life) -> Script:
    """Only our finalizer holds the VM: an orphaned VMI is left as it is, and not spoken of."""
    told: list[Write] = []
    if ORPHAN not in life.vm.metadata.finalizers:
        told = [life.vm_write(0.005, "Terminating", [ready(life.when(0), VMI_GONE)])]
    return (*told, Write(0.010, Verb.UNFINALIZE, "released"))


def clean(vmi: VMI, now: datetime, shutdown: float) -> Script:
    """The VMI is being deleted: its guest shuts down, then virt-handler and virt-controller let go."""
    return ordered([*_shut_down(vmi, now, shutdown), *_let_go(vmi, shutdown)])


def _shut_down(vmi: VMI, now: datetime, shutdown: float) -> Iterator[Write]:
    if vmi.final:
        return
    for at, phase in ((0.010, vmi.status.phase), (shutdown, "Succeeded")):
        then = now + timedelta(seconds=at)
        conditions = [*kept(vmi.status.conditions, "Ready", "AgentConnected"), ready(then, GUEST_DOWN)]
        phases = list(vmi.status.phase_transition_timestamps)
        if phase == "Succeeded":
            phases.append(reached(phase, then))
        yield Write(at, Verb.VMI, phase, {"status": vmi_status(phase, conditions, phases)})


def _let_go(vmi: VMI, shutdown: float) -> Iterator[Write]:
    at = 0.0 if vmi.final else shutdown
    for index, name in enumerate(_held(vmi.metadata.finalizers)):
        yield Write(at + 0.010 * (index + 1), Verb.UNFINALIZE_VMI, name, {"finalizer": name})


def _held(finalizers: list[str]) -> list[str]:
    """Ours among them, virt-handler's first."""
    return [name for name in reversed(VMI_FINALIZERS) if name in finalizers]
