"""What is observed of a pool at one instant, as nouns. Pure; made anew for each pass, never kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from capacity.decision import Stock
from controller.machines.inventory import Instance, revision_of
from controller.pools.brake import BrakeState
from controller.pools.changes import Data
from controller.pools.freshness import Revisions, Standard
from controller.pools.telling import Told
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

    VMs stand here one by one only where the plan may remove them: `removable` while there are too many,
    `outdated` while some are to be replaced. `departing` are in flight still and on their way out by us.
    `proven` is how many of the present template have become warm. `no_room`: VMs of this revision wait for a
    node. `going` are the pool's own that are being deleted, `stuck` all that have been for too long. `target`
    is how many unclaimed VMs are aimed at, `told` what is said about that.
    """

    pool: VirtualMachinePool
    revision: str
    now: float
    counts: dict[State, int]
    target: int
    told: Told
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
    removal_denied: str = ""
    unschedulable: int = 0
    no_room: bool = False
    going: Sequence[Instance] = ()
    stuck: Sequence[Instance] = ()
    failed: Sequence[Instance] = ()
    draining: Sequence[Instance] = ()
    removable: Sequence[Instance] = ()
    outdated: Sequence[Instance] = ()
    standard: Standard = field(default_factory=Standard)
    revisions: Revisions = field(default_factory=Revisions)
    proven: int = 0
    departing: int = 0
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
    def stock(self) -> Stock:
        """What the capacity engine counts."""
        return Stock(self.ready, self.in_flight, self.counts[State.CLAIMED], self.backorders)

    def is_stale(self, instance: Instance) -> bool:
        """Of another template than the present one. Unknown is not stale."""
        return self.standard.stale(revision_of(instance))

    @property
    def out_of_place(self) -> list[Instance]:
        """Outdated VMs that no node has room for: they boot, so that they are of another template."""
        return [each for each in self.outdated if each.derived.unschedulable]

    @property
    def total(self) -> int:
        """All VMs that exist, terminating ones included."""
        return sum(self.counts.values()) + self.creating
