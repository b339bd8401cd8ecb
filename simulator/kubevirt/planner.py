"""From what is seen of one VM to the script to play now, with the little that has to be remembered besides.

Must never write or wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from simulator.kubevirt import boot, ending, living
from simulator.kubevirt.behaviour import PREFIX, Behaviour, Defaults, Failure, behaviour
from simulator.kubevirt.course import LEADS_TO, Course, decide
from simulator.kubevirt.filling import DEFAULTED
from simulator.kubevirt.life import Life
from simulator.kubevirt.objects import ORPHAN, VM, VMI
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.script import Script, Verb, Write, ordered
from simulator.kubevirt.sight import Sight

_LONGEST_BACK_OFF: Final = 300.0  # seconds, as KubeVirt's


@dataclass(frozen=True, slots=True)
class Plan:
    """A script and what it was made for; when that changes, the script is dropped."""

    course: Course
    script: Script
    asked: object


class Planner:
    """`now` in its methods is a monotonic clock, in seconds."""

    __slots__ = (
        "_attempts",
        "_crashed",
        "_defaults",
        "_orphaned",
        "_placement",
        "_random",
        "_refused_template",
        "_retry_at",
        "_sight",
    )

    def __init__(self, sight: Sight, placement: Placement, defaults: Defaults, random: Random) -> None:
        self._sight = sight
        self._placement = placement
        self._defaults = defaults
        self._random = random
        self._attempts = 0  # creations that the API server refused, in a row
        self._retry_at = 0.0
        self._refused_template = b""
        self._crashed = ""  # the command that a guest of this VM has obeyed
        self._orphaned = ""  # the VM whose VMI must outlive it

    def plan(self, now: float) -> Plan | None:
        course = self._course()
        if course is Course.IDLE:
            return None
        script = self._script(course, now)
        return Plan(course, script, self._asked()) if script else None

    def holds(self, plan: Plan) -> bool:
        """Whether a script that is being played still has its ground."""
        course = self._course()
        return (
            course is plan.course or course in LEADS_TO.get(plan.course, ())
        ) and self._asked() == plan.asked

    def played(self, plan: Plan, now: float) -> None:
        """The script was played to its end."""
        vm = self._sight.vm
        failure = vm.status.start_failure if vm else None
        if plan.course is Course.REPLACE and failure is not None:
            self._back_off(now, failure.consecutive_fail_count)
        elif any(write.verb is Verb.CREATE for write in plan.script):
            self._attempts = 0

    def refused(self, plan: Plan, sentence: str, now: float) -> Plan | None:
        """The API server refuses the VMI: what to tell, and when to try again."""
        self._attempts += 1
        self._back_off(now, self._attempts)
        life = self._life()
        if life is None or life.vmi is not None:
            return None
        message = f"Failed to create the virtual machine instance: {sentence}"
        return Plan(plan.course, boot.refused(life, "FailedCreate", message), self._asked())

    def _back_off(self, now: float, fails: int) -> None:
        self._retry_at = now + min(_LONGEST_BACK_OFF, self._defaults.back_off * fails**2)
        self._refused_template = bytes(self._sight.vm.spec.template) if self._sight.vm else b""

    def _course(self) -> Course:
        vm, vmi = self._sight.vm, self._sight.vmi
        if vm is not None and vm.deleting and ORPHAN in vm.metadata.finalizers:
            self._orphaned = vm.metadata.uid
        course = decide(vm, vmi, self._defaults.profile)
        if course is Course.ORPHANED and vmi is not None and vmi.controller is not None:
            # The garbage collector took the owner off already, and this is an older state of the VMI.
            return Course.IDLE if vmi.controller.uid == self._orphaned else course
        return course

    def _asked(self) -> object:
        """The VM's identity and what people asked of it that a running script has to heed."""
        vm = self._sight.vm
        if vm is None:
            return None
        annotations = vm.metadata.annotations.items()
        ours = [item for item in annotations if item[0].startswith(PREFIX) and item[0] != DEFAULTED]
        return vm.metadata.uid, tuple(ours), self._waits(vm)

    def _waits(self, vm: VM) -> bool:
        """Whether it is still the template that failed: another one is tried at once."""
        return bool(self._refused_template) and bytes(vm.spec.template) == self._refused_template

    def _script(self, course: Course, now: float) -> Script:
        vmi, life = self._sight.vmi, self._life()
        if course is Course.ORPHANED:
            return (Write(0.0, Verb.DELETE, "VM gone"),)
        if course is Course.CLEAN and vmi is not None:
            shutdown = life.how.shutdown if life else self._defaults.shutdown.sample(self._random)
            return ending.clean(vmi, datetime.now(UTC), shutdown)
        if life is None:
            return ()
        if vmi is not None and course in _WITH_GUEST:
            return self._with_guest(course, life, vmi)
        if course is Course.BOOT:
            delay = max(0.0, self._retry_at - now) if self._waits(life.vm) else 0.0
            return ordered(boot.boot(life), delay=delay)
        return _SIMPLE[course](life)

    def _with_guest(self, course: Course, life: Life, vmi: VMI) -> Script:
        if course is Course.LIVE:
            return living.living(life, vmi, self._defaults.node_grace)
        if course is Course.REPLACE:
            self._crashed = life.how.crash_command
            return ending.replace(life, vmi)
        return ending.rest(life, vmi)

    def _life(self) -> Life | None:
        vm, vmi = self._sight.vm, self._sight.vmi
        if vm is None:
            return None
        template = vm.template()
        how = self._how(vm, vmi, template)
        node = (vmi.status.node_name if vmi else "") or self._placement.seat(str(self._sight))
        if not node:  # every node is full: as if it were commanded, until somebody leaves
            how = replace(how, failure=how.failure or Failure.UNSCHEDULABLE)
        return Life(
            vm=vm,
            vmi=vmi,
            template=template,
            how=how,
            profile=self._defaults.profile,
            node=node,
            ip=(vmi.ip if vmi else "") or self._placement.address(),
            random=self._random,
            now=datetime.now(UTC),
            node_lost=node in self._placement.lost,
            crashed=self._crashed,
        )

    def _how(self, vm: VM, vmi: VMI | None, template: Mapping[str, Any]) -> Behaviour:
        """A running guest heeds the annotations that it was made with, not a template changed since."""
        if vmi is not None:
            template = {**template, "metadata": {"annotations": vmi.metadata.annotations}}
        return behaviour(vm, template, self._defaults, self._random)


_WITH_GUEST: Final = frozenset({Course.LIVE, Course.REPLACE, Course.REST})
_SIMPLE: Final = {
    Course.RESUME: boot.boot,
    Course.ADOPT: boot.adopt,
    Course.PARK: ending.park,
    Course.STOP: ending.stop,
    Course.TEAR_DOWN: ending.tear_down,
    Course.RELEASE: ending.release,
}
