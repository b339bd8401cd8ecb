"""What is to be done about one claim, from what is seen of it: the policy of everything around the commit.

Pure and level-triggered: the same claim seen again gets the same answer. The order of the rules is the
policy.
"""

from dataclasses import dataclass
from typing import Any

from controller.claims import status
from controller.claims.objects import Claim
from controller.claims.patches import timestamp
from controller.kube.timeline import AS_STAMPED, Timeline
from controller.machines.objects import VirtualMachine, VirtualMachineInstance
from controller.machines.ownership import controller_reference
from controller.machines.readiness import epoch
from crds.conditions import ClaimReason
from crds.durations import seconds
from statemachines.claim import State, Trigger

SETTLE = 1.0  # s: a guest's address flaps while it boots
KEEP_EMPTIED = 30.0  # s: KubeVirt empties the addresses for a moment when the guest's agent connects
SWEEP = 60.0  # s after a bind in which the garbage collector may still take the VM for the pool's
WRITE_INTERVAL = 5.0  # s: at most one refresh of a claim's status


@dataclass(frozen=True, slots=True)
class View:
    """Everything that the decision about one claim depends on. Times are epoch seconds."""

    claim: Claim
    now: float
    timeline: Timeline = AS_STAMPED
    missing: str = ""  # KubeVirt's kinds are not served: nothing is known of any VM, and nothing can be done
    pool_known: bool = True
    pool_swept: bool = False  # gone, or under deletion with foreground propagation
    lifetime_default: float | None = None
    lifetime_max: float | None = None
    vm: VirtualMachine | None = None
    vmi: VirtualMachineInstance | None = None
    guest_changed: float = 0.0
    refreshed_at: float = 0.0
    stuck_after: float = 300.0  # s under deletion, from which on a VM counts as one that does not go


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Finish a claim that was never served."""

    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlaceOrder:
    """OrderAfter: its patience is over."""


@dataclass(frozen=True, slots=True)
class Expire:
    """Its lifetime is over: Releasing first, then the VM."""

    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Destroy its VM; when it is gone and the claim is not, say Released."""

    vm_name: str
    vm_uid: str
    status: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class CheckLost:
    """Its VM is not to be seen: look without the cache, and say Lost if that is so."""

    vm_name: str
    vm_uid: str
    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refresh:
    """Write how its guest is now, or a changed expiry."""

    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RemoveClaim:
    """Its time to live after the finish is over."""


Action = GiveUp | PlaceOrder | Expire | GiveBack | CheckLost | Refresh | RemoveClaim


@dataclass(frozen=True, slots=True)
class Plan:
    """At most one thing to do now, and when to look again if nothing changes before."""

    action: Action | None = None
    look_again: float | None = None


def plan(view: View) -> Plan:
    """What to do about a claim that no task of ours is at work on."""
    match view.claim.phase:
        case State.PENDING:
            return _pending(view)
        case State.BOUND:
            return _bound(view)
        case State.RELEASING:
            return _releasing(view)
        case _:
            return _finished(view)


def _pending(view: View) -> Plan:
    claim, now = view.claim, view.now
    if claim.going:
        return Plan()
    created = view.timeline.restated(epoch(claim.metadata.creation_timestamp) or now)
    due = [at for at in (_after(created, claim.spec.timeout),) if at is not None]
    if due and due[0] <= now:
        return Plan(GiveUp(_timed_out(view)))
    if claim.spec.when_empty.policy == "OrderAfter":
        order_at = _after(created, claim.spec.when_empty.after) or created
        if order_at <= now:
            return Plan(PlaceOrder(), _earliest(due))
        due.append(order_at)
    return Plan(None, _earliest(due))


def _timed_out(view: View) -> dict[str, Any]:
    claim = view.claim
    if view.pool_known:
        message = f"no VM was handed over within spec.timeout ({claim.spec.timeout})"
        return status.ended(claim, Trigger.TIME_OUT, ClaimReason.EXPIRED, message, view.now)
    message = f"pool {claim.spec.pool_ref.name} did not exist when spec.timeout ({claim.spec.timeout}) ended"
    return status.ended(claim, Trigger.REFUSE, ClaimReason.POOL_NOT_FOUND, message, view.now)


def _bound(view: View) -> Plan:
    claim, now = view.claim, view.now
    if claim.status is None or not claim.status.virtual_machines:
        return Plan()
    named = claim.status.virtual_machines[0]
    if claim.orphans:
        return Plan()  # its VM becomes the user's own
    if view.missing:
        fresh = status.unserved(claim, view.missing, now)
        return Plan() if claim.going or status.same(status.kept(claim), fresh) else Plan(Refresh(fresh))
    if claim.going:
        there = view.vm is not None and not _dying(view.vm) and not _kept(view.vm)
        return Plan(GiveBack(named.name, named.uid, None)) if there else Plan()
    if view.vm is None:
        return Plan(CheckLost(named.name, named.uid, _lost(view, named.name)))
    expires = epoch(claim.status.expires_at)
    wanted = _expiry(view)
    if expires != wanted:
        return Plan(Refresh(status.with_expiry(claim, wanted)))
    over = _over(view, expires)
    if over is not None and over <= now:
        message = f"its lifetime ended at {claim.status.expires_at}"
        return Plan(Expire(status.ended(claim, Trigger.RELEASE, ClaimReason.LIFETIME_OVER, message, now)))
    return _refresh(view, over)


def _over(view: View, expires: float | None) -> float | None:
    """When that is by the clock as it is set now: what is shown stays as it was promised."""
    bound_at = epoch(view.claim.status.bound_at) if view.claim.status else None
    if expires is None or bound_at is None:
        return expires
    return expires + view.timeline.restated(bound_at) - bound_at


def _expiry(view: View) -> float | None:
    """When the claim's VM is given back by its lifetime as it is written now."""
    claim = view.claim
    if claim.status is None or claim.status.bound_at is None:
        return None
    if not view.pool_known:  # nobody to ask for its bounds: what was promised stands
        return epoch(claim.status.expires_at)
    lifetime = status.bounded_lifetime(claim, view.lifetime_default, view.lifetime_max)
    bound_at = epoch(claim.status.bound_at)
    return None if lifetime is None or bound_at is None else float(int(bound_at + lifetime))


def _refresh(view: View, expires: float | None) -> Plan:
    claim, now = view.claim, view.now
    fresh = status.refreshed(claim, view.vm, view.vmi, now)
    before = status.kept(claim)
    if status.same(before, fresh):
        return Plan(None, expires)
    settle = KEEP_EMPTIED if _emptied(before, fresh) else SETTLE
    at = max(view.guest_changed + settle, view.refreshed_at + WRITE_INTERVAL)
    if at > now:
        return Plan(None, _earliest([at, *([expires] if expires else [])]))
    return Plan(Refresh(fresh), expires)


def _emptied(before: dict[str, Any], fresh: dict[str, Any]) -> bool:
    """The same guest has lost its addresses, and nothing else speaks against it."""
    old, new = before["virtualMachines"][0], fresh["virtualMachines"][0]
    return bool(old.get("addresses")) and not new.get("addresses") and old.get("vmiUID") == new.get("vmiUID")


def _lost(view: View, name: str) -> dict[str, Any]:
    bound_at = epoch(view.claim.status.bound_at) if view.claim.status else None
    if view.pool_swept and bound_at is not None and view.now - view.timeline.restated(bound_at) < SWEEP:
        message = f"VM {name} went with its pool, which was deleted in the foreground as it was handed over"
        return status.ended(view.claim, Trigger.LOSE, ClaimReason.POOL_DELETED, message, view.now)
    message = f"VM {name} was gone when it was looked for at {timestamp(view.now)}; nobody released it"
    return status.ended(view.claim, Trigger.LOSE, ClaimReason.LOST, message, view.now)


def _releasing(view: View) -> Plan:
    claim = view.claim
    if claim.status is None or not claim.status.virtual_machines or claim.orphans or view.missing:
        return Plan()
    if claim.going and view.vm is not None and _kept(view.vm):
        return Plan()
    if view.vm is not None and _dying(view.vm):
        return _held_up(view, view.vm)
    named = claim.status.virtual_machines[0]
    message = f"VM {named.name} was given back"
    released = None
    if not claim.going:
        released = status.ended(claim, Trigger.FINISH, ClaimReason.RELEASED, message, view.now)
    return Plan(GiveBack(named.name, named.uid, released))


def _kept(vm: VirtualMachine) -> bool:
    """It is its user's own: a deletion with `orphan` took the claim's reference off it.

    The claim may be deleted once more in another way before it is gone, and does not show that any longer.
    """
    return controller_reference(vm.metadata) is None


def _held_up(view: View, vm: VirtualMachine) -> Plan:
    """Its end is an event; one that does not come is told."""
    late = view.timeline.restated(epoch(vm.metadata.deletion_timestamp) or view.now) + view.stuck_after
    if view.now < late:
        return Plan(None, late)
    fresh = status.held_up(view.claim, vm, view.now)
    return Plan() if status.same(status.kept(view.claim), fresh) else Plan(Refresh(fresh))


def _finished(view: View) -> Plan:
    claim = view.claim
    ttl, finished = claim.spec.ttl_seconds_after_finished, epoch(status.finished_at(claim))
    if ttl is None or finished is None or claim.going:
        return Plan()
    over = view.timeline.restated(finished) + ttl
    return Plan(RemoveClaim()) if over <= view.now else Plan(None, over)


def _dying(vm: VirtualMachine) -> bool:
    return vm.metadata.deletion_timestamp is not None


def _after(start: float, duration: str | None) -> float | None:
    return None if duration is None else start + seconds(duration)


def _earliest(times: list[float]) -> float | None:
    return min(times, default=None)
