"""The VMs of a pool that are being deleted: which are the pool's own, and which do not go. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller.kube.timeline import AS_STAMPED, Timeline
from controller.machines.inventory import Instance
from controller.machines.ownership import OwnerKind, owner_of
from controller.machines.readiness import epoch


@dataclass(frozen=True, slots=True)
class Endings:
    """`going` belong to the pool; `stuck` are all that have been on their way out for too long.

    `under_way` counts the others; `next_late` is when the next of them is late (epoch seconds).
    """

    going: tuple[Instance, ...] = ()
    stuck: tuple[Instance, ...] = ()
    under_way: int = 0
    next_late: float = 0.0


def endings(
    terminating: Iterable[Instance], now: float, patience: float, timeline: Timeline = AS_STAMPED
) -> Endings:
    """Sort the VMs under deletion; `patience` in seconds, `now` in epoch seconds of the server's clock."""
    found = [(timeline.restated(_begun(each, now)) + patience, each) for each in terminating]
    late = [at for at, _ in found if at > now]
    return Endings(
        going=tuple(each for _, each in found if _of_a_pool(each)),
        stuck=tuple(each for at, each in found if at <= now),
        under_way=len(late),
        next_late=min(late, default=0.0),
    )


def _begun(instance: Instance, now: float) -> float:
    begun = epoch(instance.vm.metadata.deletion_timestamp)
    return now if begun is None else begun


def _of_a_pool(instance: Instance) -> bool:
    """A claimed one is its claim's: the pool need not wait for it."""
    owner = owner_of(instance.vm.metadata)
    return owner is not None and owner.kind is OwnerKind.POOL
