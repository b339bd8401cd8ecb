"""What the scripts are written from: one VM as it is now, how it is to behave, and where it lands."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import msgspec

from simulator.kubevirt.behaviour import Behaviour, Profile
from simulator.kubevirt.course import stop_requested
from simulator.kubevirt.objects import VM, VMI, Condition
from simulator.kubevirt.script import Verb, Write
from simulator.kubevirt.statuses import Json, vm_status


@dataclass(frozen=True, slots=True)
class Life:
    vm: VM
    vmi: VMI | None
    template: Mapping[str, Any]
    how: Behaviour
    profile: Profile
    node: str
    ip: str
    random: Random
    now: datetime
    node_lost: bool = False
    crashed: str = ""

    def when(self, at: float) -> datetime:
        return self.now + timedelta(seconds=at)

    @property
    def fails(self) -> int:
        failure = self.vm.status.start_failure
        return failure.consecutive_fail_count if failure else 0

    def vm_write(
        self,
        at: float,
        printable: str,
        conditions: list[Json] | None,
        *,
        name: str = "",
        created: bool = False,
        fails: int = 0,
    ) -> Write:
        asked = self.vm.status.state_change_requests
        status = vm_status(
            printable,
            conditions,
            created=created,
            generation=self.vm.metadata.generation,
            fails=fails,
            stopped=bool(asked) and not (self.vmi and stop_requested(self.vm, self.vmi)),
        )
        return Write(at, Verb.VM_STATUS, name or printable, {"status": status})


def kept(conditions: list[Condition], *dropped: str) -> list[Json]:
    """The conditions as they are, without the types that are about to be written anew."""
    return [msgspec.to_builtins(each) for each in conditions if each.type not in dropped]
