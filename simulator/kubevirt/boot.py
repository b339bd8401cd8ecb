"""From created to Ready, in the order and at the distances that KubeVirt was observed to write.

Pure. Failures are boots that stop on the way; each has a resting place (`RESTING`), where it is left alone.
"""

from collections.abc import Iterator
from typing import Final

from simulator.kubevirt import filling
from simulator.kubevirt.behaviour import Failure, Profile
from simulator.kubevirt.life import Life
from simulator.kubevirt.objects import VM_FINALIZER, reason
from simulator.kubevirt.script import Script, Verb, Write, lagging, ordered
from simulator.kubevirt.statuses import (
    GUEST_DOWN,
    POD_MISSING,
    VMI_GONE,
    Json,
    condition,
    reached,
    ready,
    vmi_status,
)

PHASES: Final = ("", "Pending", "Scheduling", "Scheduled", "Running")
READY_GAP: Final = (0.020, 0.035)  # seconds from Running to Ready
_OPENING: Final = 0.26  # seconds that a boot needs for the opening at the observed pace
# Where a failed start stays: its VMI's phase and what its VM shows.
RESTING: Final = {
    Failure.UNSCHEDULABLE: ("Scheduling", "ErrorUnschedulable"),
    Failure.IMAGE: ("Scheduling", "ImagePullBackOff"),
    Failure.NO_IMAGE: ("Scheduling", "Starting"),
    Failure.SECRET_MISSING: ("Scheduling", "Starting"),
    Failure.PVC_MISSING: ("Pending", "ErrorPvcNotFound"),
    Failure.HANG: ("Scheduled", "Starting"),
}
# What is told by a Warning event and nowhere else.
WARNINGS: Final = {
    Failure.NO_IMAGE: ("InvalidImageName", "the container disk's image name is empty"),
    Failure.SECRET_MISSING: ("FailedMount", "a secret that a volume names was not found"),
}
REFUSALS: Final = {
    Failure.FAILED_CREATE: (
        "FailedCreate",
        "Failed to create the virtual machine instance: no memory requested in its spec",
    ),
    Failure.FAILED_FIND_INSTANCETYPE: (
        "FailedFindInstancetype",
        "the instancetype that the virtual machine names was not found",
    ),
}


def boot(life: Life) -> Script:
    """From wherever the VM is (no VMI yet, or one on its way) to Ready or to its failure's resting place."""
    failure = life.how.failure
    if life.profile is Profile.MINIMAL:
        return _minimal(life)
    if failure in REFUSALS:
        return refused(life, *REFUSALS[failure])
    if failure in RESTING and _rests(life, failure):
        return ()
    whole = ordered([*opening(life), *_Boot(life).writes()])
    return lagging(whole if life.vmi is None else _rest_of(whole, life.vmi.status.phase), life.how.status_lag)


def opening(life: Life) -> Iterator[Write]:
    """What every VM gets once, whether it is to run or not."""
    if life.profile is Profile.MINIMAL:
        return
    pace = _pace(life)
    fill = filling.defaults(life.vm, life.template, life.random)
    if fill:
        yield Write(0, Verb.FILL_DEFAULTS, "defaults", fill)
    if not life.vm.status.printable_status:
        yield Write(0.010 * pace, Verb.VM_STATUS, "Stopped", {"status": {"printableStatus": "Stopped"}})
    if not filling.OBSERVED_VERSIONS.items() <= life.vm.metadata.annotations.items():
        yield Write(0.026 * pace, Verb.ANNOTATE, "annotations", filling.OBSERVED_VERSIONS)
    if VM_FINALIZER not in life.vm.metadata.finalizers:
        yield Write(0.038 * pace, Verb.FINALIZE, "finalizer")


def adopt(life: Life) -> Script:
    """A running VMI of its name belongs to nobody: take it."""
    return ordered([*opening(life), Write(0.052 * _pace(life), Verb.ADOPT, "adopted")])


def refused(life: Life, why: str, message: str) -> Script:
    """No VMI could be made: Stopped, with a condition that says why."""
    if life.profile is Profile.OBSERVED and reason(life.vm.status.conditions, "Failure") == why:
        return ()
    now = life.when(0.06)
    conditions = [ready(now, VMI_GONE), condition("Failure", now, status=True, why=(why, message))]
    return ordered([*opening(life), life.vm_write(0.06, "Stopped", conditions, name=why)])


def _pace(life: Life) -> float:
    return min(1.0, life.how.boot / _OPENING)


def _minimal(life: Life) -> Script:
    """One POST of a VMI that is up already. Whatever fails simply never has one."""
    if life.vmi is not None or life.how.failure not in {None, Failure.LOST_NODE}:
        return ()
    now = life.when(life.how.boot)
    status = vmi_status("Running", [ready(now)], [reached("Running", now)], node=life.node, ip=life.ip)
    vmi = filling.instance(life.vm, life.template, status, finalizers=False, crashed=life.crashed)
    return (Write(life.how.boot, Verb.CREATE, "Running", vmi),)


def _rests(life: Life, failure: Failure) -> bool:
    phase = life.vmi.status.phase if life.vmi else ""
    return (phase, life.vm.status.printable_status) == RESTING[failure]


def _rest_of(script: Script, phase: str) -> Script:
    """What is left of a boot whose VMI is in this phase: a stand-in was restarted in the middle of it."""
    created = next(index for index, write in enumerate(script) if write.verb is Verb.CREATE)
    done = PHASES.index(phase)
    return tuple(
        write
        for index, write in enumerate(script)
        if index > created
        and not (write.verb is Verb.VMI and _phase(write) in PHASES and PHASES.index(_phase(write)) < done)
    )


def _phase(write: Write) -> str:
    return str(write.body["status"]["phase"])


class _Boot:
    """Writes one boot down, stage by stage, remembering the phases it went through."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.failure = life.how.failure
        # DataVolumes are imported first; meanwhile the VM says Provisioning and its VMI is Pending.
        self.provisioning = life.how.boot / 3 if life.vm.spec.data_volume_templates else 0.0
        self.pace = min(1.0, (life.how.boot - self.provisioning) / _OPENING)
        self.phases: list[Json] = list(life.vmi.status.phase_transition_timestamps) if life.vmi else []

    def writes(self) -> Iterator[Write]:
        yield from self._pending()
        if self.failure is Failure.PVC_MISSING:
            yield self._vm(0.115 * self.pace, RESTING[self.failure][1], GUEST_DOWN)
            return
        yield from self._scheduling()
        if self.failure in RESTING and RESTING[self.failure][0] == "Scheduling":
            return
        boot = self.life.how.boot
        yield from self._scheduled(self.provisioning + 0.5 * (boot - self.provisioning))
        if self.failure is Failure.CRASH_LOOP:
            yield self._vmi(boot, "Failed", [ready(self.life.when(boot), GUEST_DOWN)])
        elif self.failure is not Failure.HANG:
            yield from self._running(boot)

    def _pending(self) -> Iterator[Write]:
        life, pace = self.life, self.pace
        start = life.when(0.052 * pace)
        self._reach("Pending", 0.052 * pace)
        vmi = filling.instance(
            life.vm,
            life.template,
            vmi_status("Pending", [], self.phases),
            finalizers=True,
            crashed=life.crashed,
        )
        yield Write(0.052 * pace, Verb.CREATE, "Pending", vmi)
        shown = "Provisioning" if self.provisioning else "Starting"
        yield life.vm_write(0.062 * pace, shown, [ready(start, VMI_GONE)], fails=life.fails)
        conditions = [ready(life.when(0.066 * pace), POD_MISSING)]
        if self.failure is Failure.PVC_MISSING:
            why = ("FailedPvcNotFound", "a PVC that the virtual machine instance names was not found")
            conditions.append(condition("Synchronized", start, status=False, why=why))
        yield self._vmi(0.066 * pace, "Pending", conditions)
        yield self._vm(0.073 * pace, shown, VMI_GONE)

    def _scheduling(self) -> Iterator[Write]:
        at = self.provisioning + 0.105 * self.pace
        down = ready(self.life.when(at), GUEST_DOWN)
        yield self._vmi(at, "Scheduling", [down])
        yield self._vm(at + 0.010 * self.pace, "Starting", GUEST_DOWN)
        at += 0.015 * self.pace
        now = self.life.when(at)
        if self.failure is Failure.UNSCHEDULABLE:
            why = ("Unschedulable", "0/3 nodes are available: 3 Insufficient memory.")
            yield self._vmi(at, "Scheduling", [down, condition("PodScheduled", now, status=False, why=why)])
            yield self._vm(at + 0.01, "ErrorUnschedulable", GUEST_DOWN)
            return
        scheduled = condition("PodScheduled", now, status=True)
        if self.failure is Failure.IMAGE:
            yield from self._image_pull(at, [down, scheduled])
            return
        yield self._vmi(at, "Scheduling", [down, scheduled])
        if self.failure in WARNINGS:
            name, message = WARNINGS[self.failure]
            yield Write(at, Verb.WARN, name, {"message": message})

    def _image_pull(self, at: float, conditions: list[Json]) -> Iterator[Write]:
        later = at + max(0.05, self.life.how.boot / 2)
        for moment, why in ((at, "ErrImagePull"), (later, "ImagePullBackOff")):
            synchronized = condition(
                "Synchronized", self.life.when(moment), status=False, why=(why, "image not found")
            )
            yield self._vmi(moment, "Scheduling", [*conditions, synchronized])
            yield self._vm(moment + 0.01, why, GUEST_DOWN)

    def _scheduled(self, at: float) -> Iterator[Write]:
        down = ready(self.life.when(at), GUEST_DOWN)
        yield self._vmi(at, "Scheduled", [down], node=self.life.node)
        later = at + 0.2 * self.life.how.boot
        migratable = condition("LiveMigratable", self.life.when(later), status=True)
        yield self._vmi(later, "Scheduled", [down, migratable], node=self.life.node)

    def _running(self, at: float) -> Iterator[Write]:
        life = self.life
        migratable = condition("LiveMigratable", life.when(at), status=True)
        down = ready(life.when(at), GUEST_DOWN)
        yield self._vmi(at, "Running", [down, migratable], node=life.node, ip=life.ip)
        yield self._vm(at + 0.008, "Running", GUEST_DOWN)
        at += life.random.uniform(*READY_GAP)
        up = ready(life.when(at))
        yield self._vmi(at, "Running", [up, migratable], node=life.node, ip=life.ip)
        yield life.vm_write(at + 0.010, "Running", [up, migratable], name="Ready", created=True)

    def _vm(self, at: float, printable: str, why: tuple[str, str]) -> Write:
        conditions = [ready(self.life.when(at), why)]
        return self.life.vm_write(at, printable, conditions, created=True, fails=self.life.fails)

    def _vmi(
        self, at: float, phase: str, conditions: list[Json], *, node: str | None = None, ip: str | None = None
    ) -> Write:
        self._reach(phase, at)
        status = vmi_status(phase, conditions, self.phases, node=node, ip=ip)
        return Write(at, Verb.VMI, phase, {"status": status})

    def _reach(self, phase: str, at: float) -> None:
        if all(entry["phase"] != phase for entry in self.phases):
            self.phases.append(reached(phase, self.life.when(at)))
