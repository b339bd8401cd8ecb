"""Which stretch of its life a VM is in, decided from what is observed and from nothing else.

Pure and level-triggered: a stand-in that starts in the middle of any life goes on from there.
"""

from enum import StrEnum
from typing import Final

from simulator.kubevirt.behaviour import Profile
from simulator.kubevirt.objects import ORPHAN, VM, VM_FINALIZER, VMI, VMI_FINALIZERS, reason
from simulator.kubevirt.statuses import NODE_LOST


class Course(StrEnum):
    IDLE = "idle"  # nothing of ours to do until something changes
    BOOT = "boot"  # it should run and has no VMI
    RESUME = "resume"  # its VMI is on the way to Ready
    LIVE = "live"  # its VMI is Ready
    REPLACE = "replace"  # its guest ended and another one is wanted
    REST = "rest"  # its guest ended and that is as it should be
    ADOPT = "adopt"  # a running VMI of its name belongs to nobody
    STOP = "stop"  # its VMI is to go, it stays
    PARK = "park"  # it should not run and does not
    TEAR_DOWN = "tear-down"  # it is being deleted and its VMI has to go first
    RELEASE = "release"  # it is being deleted and only our finalizer holds it
    CLEAN = "clean"  # its VMI is being deleted
    ORPHANED = "orphaned"  # the VM is gone, its VMI is not


# A script goes on as long as what is observed is a step that the script itself leads to.
LEADS_TO: Final = {
    Course.BOOT: frozenset({Course.BOOT, Course.RESUME, Course.LIVE}),
    Course.RESUME: frozenset({Course.RESUME, Course.LIVE}),
    Course.ADOPT: frozenset({Course.ADOPT, Course.RESUME, Course.LIVE}),
    Course.REPLACE: frozenset({Course.REPLACE, Course.CLEAN, Course.BOOT}),
}
_RUNNING: Final = frozenset({"Always", "RerunOnFailure", "Once"})


def decide(vm: VM | None, vmi: VMI | None, profile: Profile) -> Course:
    if vmi is not None and vmi.deleting:
        return Course.CLEAN if set(VMI_FINALIZERS) & set(vmi.metadata.finalizers) else Course.IDLE
    if vm is None:
        return _without_vm(vmi, profile)
    owned = vmi is not None and vmi.controller is not None and vmi.controller.uid == vm.metadata.uid
    if vm.deleting:
        return _deleting(vm, owned=owned)
    if vmi is None:
        return Course.BOOT if vm.run_strategy in _RUNNING else Course.PARK
    if not owned:
        return Course.ADOPT if vmi.controller is None and not vmi.final else Course.IDLE
    return _with_vmi(vm, vmi)


def _without_vm(vmi: VMI | None, profile: Profile) -> Course:
    """In the observed profile the garbage collector deletes what an owner left, as with KubeVirt."""
    if vmi is None or vmi.controller is None or profile is Profile.OBSERVED:
        return Course.IDLE
    return Course.ORPHANED


def _deleting(vm: VM, *, owned: bool) -> Course:
    if owned and ORPHAN not in vm.metadata.finalizers:
        return Course.TEAR_DOWN
    return Course.RELEASE if VM_FINALIZER in vm.metadata.finalizers else Course.IDLE


def _with_vmi(vm: VM, vmi: VMI) -> Course:
    wanted = vm.run_strategy in _RUNNING
    if not wanted or stop_requested(vm, vmi):
        return Course.STOP
    if vmi.final:
        again = vm.run_strategy == "Always" or (
            vm.run_strategy == "RerunOnFailure" and vmi.status.phase == "Failed"
        )
        return Course.REPLACE if again else Course.REST
    up = vmi.status.phase == "Running"
    excused = vmi.paused or reason(vmi.status.conditions, "Ready") == NODE_LOST[0]
    return Course.LIVE if up and (vmi.ready or excused) else Course.RESUME


def stop_requested(vm: VM, vmi: VMI) -> bool:
    """A restart is a request to stop this VMI, with or without one to start after it."""
    return any(
        request.action == "Stop" and request.uid == vmi.metadata.uid
        for request in vm.status.state_change_requests
    )
