"""What is observed of a pool at one instant, as nouns. Pure; made anew for each pass, never kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from controller.machines.inventory import Instance
from controller.pools.brake import BrakeState
from controller.pools.changes import Data
from crds.pool import VirtualMachinePool
from statemachines.instance import State


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why no VM can be made at all, as a condition's reason and sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One pool, its VMs by state and its line. Times are epoch seconds of the API server's clock.

    `departing` are in flight still and on their way out by us.
    `instances` yields the VMs of a state when the plan needs them one by one, which only a removal does.
    """

    pool: VirtualMachinePool
    revision: str
    now: float
    counts: dict[State, int]
    handing_over: int = 0
    backorders: int = 0
    pending: int = 0
    creating: int = 0
    removing: int = 0
    oldest_pending: float | None = None
    brake: BrakeState = field(default_factory=BrakeState)
    trouble: Trouble | None = None
    missing: str = ""
    quota: str = ""
    denied: str = ""
    unschedulable: int = 0
    failed: Sequence[Instance] = ()
    draining: Sequence[Instance] = ()
    removable: Sequence[Instance] = ()
    departing: int = 0
    updated: int = 0
    lead_time: tuple[float | None, float | None] = (None, None)
    short_since: float | None = None
    last_failure: str = ""
    checked: bool = True
    data: Data | None = None
    unclaimed_since: Sequence[float] = ()

    @property
    def deleting(self) -> bool:
        return self.pool.metadata.deletion_timestamp is not None

    @property
    def ready(self) -> int:
        """Warm VMs that nobody is being handed."""
        return self.counts[State.WARM] - self.handing_over

    @property
    def in_flight(self) -> int:
        """VMs on their way to warm, those whose creation is under way included."""
        booting = self.counts[State.PROVISIONING] + self.counts[State.WAKING]
        return booting - self.departing + self.creating

    @property
    def total(self) -> int:
        """All VMs that exist, terminating ones included."""
        return sum(self.counts.values()) + self.creating

    @property
    def target(self) -> int:
        return self.pool.spec.warm.replicas
