"""What a namespace's router knows of a pool. The pool's own loop fills it in; claims live on without it."""

from dataclasses import dataclass, field

from controller.claims.queue import Queue
from controller.claims.tally import Tally
from controller.machines.inventory import Inventory
from crds.durations import seconds
from crds.pool import VirtualMachinePool

BOOTS_KEPT = 50


@dataclass(slots=True)
class BootTimes:
    """The last boots, in seconds: what an order's lead time is estimated from."""

    last: list[float] = field(default_factory=list)

    def add(self, boot: float) -> None:
        self.last.append(boot)
        del self.last[:-BOOTS_KEPT]

    def quantile(self, share: float) -> float | None:
        """The boot time that `share` of the last boots did not exceed; None before the first."""
        if not self.last:
            return None
        ordered = sorted(self.last)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def median(self) -> float | None:
        return self.quantile(0.5)


@dataclass(slots=True)
class PoolRecord:
    """A pool as the router needs it: whom it serves from, and whether it may hand over now.

    `trouble` is why no VM can be made, `hindrance` why none is made at the moment.
    `held` counts the reasons why it may not, each of which passes; `setbacks` how often in a row that was so.
    """

    pool: VirtualMachinePool
    inventory: Inventory
    queue: Queue
    boots: BootTimes = field(default_factory=BootTimes)
    tally: Tally = field(default_factory=Tally)
    trouble: str = ""
    hindrance: str = ""
    held: int = 0
    setbacks: int = 0
    denied: str = ""

    @property
    def name(self) -> str:
        return self.pool.metadata.name

    @property
    def uid(self) -> str:
        return self.pool.metadata.uid

    @property
    def deleting(self) -> bool:
        return self.pool.metadata.deletion_timestamp is not None

    def lifetimes(self) -> tuple[float | None, float | None]:
        """Default and bound of a claim's lifetime, in seconds."""
        policy = self.pool.spec.claims.lifetime
        if policy is None:
            return None, None
        return (
            seconds(policy.default) if policy.default else None,
            seconds(policy.max) if policy.max else None,
        )
