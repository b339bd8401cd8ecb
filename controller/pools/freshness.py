"""Which of a pool's unclaimed VMs are outdated: of another template, or too old.

Pure apart from one remembered time: told of the pool and of the clock, it walks over the VMs only while some
are outdated, and otherwise answers from counts. It never decides whether an outdated VM may go.
"""

import math
from dataclasses import dataclass
from zlib import crc32

from controller.kube.timeline import AS_STAMPED, Timeline
from controller.machines.inventory import STOCK, Instance, Inventory, revision_of
from controller.machines.revision import current_revisions
from crds.durations import seconds
from crds.pool import UpdateType, VirtualMachinePool
from statemachines.instance import State

JITTER = 0.1  # share of maxWarmAge by which a VM may go earlier
_CRC_RANGE = 2**32
_AGEING = frozenset({State.WARM, State.UNREADY, State.STANDBY})  # one that boots has a deadline


@dataclass(frozen=True, slots=True)
class Standard:
    """What an unclaimed VM has to be. `revisions` are those of the present template."""

    revisions: frozenset[str] = frozenset()
    replaces_stale: bool = False
    max_age: float = math.inf

    @classmethod
    def of(cls, pool: VirtualMachinePool) -> "Standard":
        spec = pool.spec
        replaces = spec.update_strategy.type is not UpdateType.REPLENISH
        age = seconds(spec.max_warm_age) if spec.max_warm_age else math.inf
        return cls(current_revisions(pool), replaces, age)

    def stale(self, revision: str) -> bool:
        """Of another template. Unknown is not stale."""
        return bool(revision) and revision not in self.revisions

    def expires(self, each: Instance, timeline: Timeline = AS_STAMPED) -> float:
        """When a VM is too old (epoch seconds): the same in every pass and for every leader."""
        early = JITTER * crc32(each.uid.encode()) / _CRC_RANGE
        created = timeline.restated(each.created)
        return created + self.max_age * (1.0 - early) if each.state in _AGEING else math.inf


@dataclass(frozen=True, slots=True)
class Revisions:
    """How many unclaimed VMs are of the present template, how many of those are warm, and of other ones."""

    updated: int = 0
    updated_warm: int = 0
    stale: int = 0


class Freshness:
    """One pool's standard, and when the next VM falls short of it by its age alone (epoch seconds)."""

    def __init__(self) -> None:
        self.standard = Standard()
        self.look_at = 0.0

    def configure(self, pool: VirtualMachinePool) -> None:
        """The pool is another one now."""
        self.standard = Standard.of(pool)
        self.look_at = 0.0

    def count(self, inventory: Inventory) -> Revisions:
        """Without a walk: there are a few revisions at most."""
        stale = self.standard.stale
        known = {rev: number for rev, number in inventory.revisions(*STOCK).items() if rev}
        warm = {rev: number for rev, number in inventory.revisions(State.WARM).items() if rev}
        return Revisions(
            updated=sum(number for rev, number in known.items() if not stale(rev)),
            updated_warm=sum(number for rev, number in warm.items() if not stale(rev)),
            stale=sum(number for rev, number in known.items() if stale(rev)),
        )

    def outdated(self, inventory: Inventory, found: Revisions, now: float) -> list[Instance]:
        """The VMs that are to be replaced and on which nothing of ours is under way.

        Whatever the strategy: those that no node has room for and that are of another template. They count as
        booting, and would keep the template that was put right from ever being made.
        """
        standard = self.standard
        stale = found.stale > 0 and standard.replaces_stale
        if not stale and now < self.look_at:
            return [each for each in self._stranded(inventory) if not each.busy] if found.stale else []
        walked = [each for state in STOCK for each in inventory.by_state[state].values()]
        timeline = inventory.timeline()
        going = {each.uid for each in walked if standard.expires(each, timeline) <= now}
        going |= {each.uid for each in self._stranded(inventory)}
        self.look_at = self._next(walked, timeline, now)
        return [
            each
            for each in walked
            if not each.busy and (each.uid in going or (stale and standard.stale(revision_of(each))))
        ]

    def _stranded(self, inventory: Inventory) -> list[Instance]:
        booting = inventory.by_state[State.PROVISIONING].values()
        return [e for e in booting if e.derived.unschedulable and self.standard.stale(revision_of(e))]

    def _next(self, walked: list[Instance], timeline: Timeline, now: float) -> float:
        """When the first of these, or of those that will be made, is too old: past if one is."""
        unborn = now + self.standard.max_age * (1.0 - JITTER)
        return min(unborn, *(self.standard.expires(each, timeline) for each in walked), math.inf)
