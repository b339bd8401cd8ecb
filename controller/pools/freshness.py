"""Which of a pool's unclaimed VMs are outdated: of another template, or too old.

Pure apart from one remembered time: told of the pool and of the clock, it walks over the VMs only while some
are outdated, and otherwise answers from counts. It never decides whether an outdated VM may go.
"""

import math
from collections.abc import Iterable, Iterator
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

    @property
    def soonest(self) -> float:
        """The age at which the first VM may be too old, in seconds."""
        return self.max_age * (1.0 - JITTER)

    def expires(self, each: Instance, timeline: Timeline = AS_STAMPED) -> float:
        """When a VM that booted is too old (epoch seconds): the same in every pass and for every leader."""
        early = JITTER * crc32(each.uid.encode()) / _CRC_RANGE
        return timeline.restated(each.created) + self.max_age * (1.0 - early)


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
        self.look_at = math.inf

    def configure(self, pool: VirtualMachinePool) -> None:
        """The pool is another one now."""
        self.standard = Standard.of(pool)
        self.look_at = 0.0 if self.standard.max_age < math.inf else math.inf

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
        stale = self._stale(inventory) if found.stale else ()
        old = self._too_old(inventory, now) if now >= self.look_at else ()
        return [each for each in {each.uid: each for each in (*stale, *old)}.values() if not each.busy]

    def _stale(self, inventory: Inventory) -> Iterator[Instance]:
        every = self.standard.replaces_stale
        for each in _walked(inventory, STOCK if every else (State.PROVISIONING,)):
            if (every or each.derived.unschedulable) and self.standard.stale(revision_of(each)):
                yield each

    def _too_old(self, inventory: Inventory, now: float) -> list[Instance]:
        """Look again when the first of these, or of those that will be made, is too old: past if one is."""
        timeline = inventory.timeline()
        ends = [(self.standard.expires(each, timeline), each) for each in _walked(inventory, STOCK)]
        self.look_at = min(now + self.standard.soonest, *(at for at, _ in ends), math.inf)
        return [each for at, each in ends if at <= now and each.state in _AGEING]


def _walked(inventory: Inventory, states: Iterable[State]) -> Iterator[Instance]:
    return (each for state in states for each in inventory.by_state[state].values())
