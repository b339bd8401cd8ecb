"""Carries out what a claim's plan says: release, expiry, loss, refresh, and telling a waiting claim why.

One task per claim at a time (`in_hand`); when it ends the claim is reviewed again, so that nothing is lost by
a refusal.
"""

from typing import TYPE_CHECKING, Any

import structlog

from controller.claims import release, status
from controller.claims.execute import CLAIM_PATH
from controller.claims.objects import Claim
from controller.claims.patches import queue_place, whole_status
from controller.claims.plan import (
    Action,
    CheckLost,
    Expire,
    GiveBack,
    GiveUp,
    PlaceOrder,
    Refresh,
    RemoveClaim,
)
from controller.claims.protocol import Done, StepName
from controller.claims.queue import Waiting
from controller.claims.tally import Served
from controller.kube import errors
from controller.kube.client import Priority
from controller.kube.paths import collection
from controller.machines.inventory import Instance
from controller.machines.privacy import redacted
from controller.metrics import CLAIMS
from crds import names
from crds.conditions import ClaimReason
from statemachines.claim import Trigger

if TYPE_CHECKING:
    from controller.claims.loop import Namespace

log = structlog.get_logger()

AGAIN = 5.0  # s until a refused action is looked at again
ALIVE_AGAIN = 60.0  # s until a VM is looked for again whose labels somebody stripped


class Aftercare:
    """The tasks of one namespace's claims after and around the commit."""

    def __init__(self, namespace: "Namespace") -> None:
        self._namespace = namespace
        self.refreshed: dict[str, float] = {}

    def forget(self, uid: str) -> None:
        self.refreshed.pop(uid, None)
        self._namespace.router.guest_changed.pop(uid, None)

    async def carry_out(self, claim: Claim, action: Action) -> None:
        """Do what the plan says. The caller has taken the claim in hand."""
        space = self._namespace
        try:
            again = await self._do(claim, action)
        finally:
            space.put_down(claim.uid)
        if again is not None:
            space.look_again(claim.uid, space.now() + again)

    async def _do(self, claim: Claim, action: Action) -> float | None:
        """Seconds after which to look again; None when it is done, or what changed is an event of its own."""
        match action:
            case PlaceOrder():
                self._place_order(claim)
                return None
            case GiveUp(status=fresh):
                return await self._finish(claim, fresh)
            case Expire(status=fresh):
                return await self._drive(release.expire(claim, fresh))
            case GiveBack(vm_name=name, vm_uid=uid, status=fresh):
                return await self._give_back(claim, name, uid, fresh)
            case CheckLost(vm_name=name, vm_uid=uid, status=fresh):
                return await self._check_lost(release.Lost(claim, name, uid, fresh))
            case Refresh(status=fresh):
                if claim.uid in self._namespace.router.claims:  # else it went meanwhile, and was forgotten
                    self.refreshed[claim.uid] = self._namespace.now()
                return await self._drive(
                    release.StatusWrite(StepName.CLAIM_STATUS, claim, whole_status(claim, fresh, alive=False))
                )
            case RemoveClaim():
                return await self._remove(claim)

    def _place_order(self, claim: Claim) -> None:
        router = self._namespace.router
        pool = claim.spec.pool_ref.name
        queue = router.queues.get(pool)  # none: the claim went meanwhile, and the line with it
        if queue is not None and queue.order(claim.uid):
            router.hooks.changed(pool)

    async def _finish(self, claim: Claim, fresh: dict[str, Any]) -> float | None:
        again = await self._drive(
            release.StatusWrite(StepName.FINISH_STATUS, claim, whole_status(claim, fresh))
        )
        if again is None:
            CLAIMS.labels("failed").inc()
            if (record := self._namespace.router.pools.get(claim.spec.pool_ref.name)) is not None:
                record.tally.served.append(Served(self._namespace.now()))
        return again

    async def _give_back(
        self, claim: Claim, name: str, uid: str, fresh: dict[str, Any] | None
    ) -> float | None:
        ended, done = await self._namespace.executor.drive(release.Release(name, uid))
        if done.outcome != release.Outcome.DONE:
            return AGAIN
        if not ended.gone or fresh is None:
            return None  # under way: the VM's end is an event
        return await self._drive(
            release.StatusWrite(StepName.FINISH_STATUS, claim, whole_status(claim, fresh, alive=False))
        )

    async def _check_lost(self, work: release.Lost) -> float | None:
        _, done = await self._namespace.executor.drive(work)
        match done.outcome:
            case release.Outcome.ALIVE:
                return ALIVE_AGAIN
            case release.Outcome.GIVEN_UP | release.Outcome.REFUSED:
                return AGAIN
            case release.Outcome.DONE:
                log.warning("claim lost its VM", claim=work.claim.name, vm=work.vm_name)
        return None

    async def _remove(self, claim: Claim) -> float | None:
        space = self._namespace
        path = f"{collection(CLAIM_PATH, space.name)}/{claim.name}"
        try:
            await space.client.delete(
                path,
                uid=claim.uid,
                priority=Priority.STATUS,
                step=StepName.CLAIM_TTL,
                propagation="Background",
            )
        except errors.NotFound:
            return None
        except errors.ApiError as error:
            if isinstance(error, errors.Conflict) and error.another_has_the_name:
                return None
            why = redacted(str(error), claim.private_texts)
            log.warning("finished claim not removed", claim=claim.name, error=why)
            return AGAIN
        return None

    async def _drive(self, work: release.StatusWrite) -> float | None:
        _, done = await self._namespace.executor.drive(work)
        return self._again(work.claim, done)

    def _again(self, claim: Claim, done: Done) -> float | None:
        if done.outcome == release.Outcome.DONE:
            return None
        if done.message:
            why = redacted(done.message, claim.private_texts)
            log.warning("status refused", claim=claim.name, why=why)
        return AGAIN

    # ---- what is not a plan's action

    async def release(self, instance: Instance) -> None:
        """The watched end of a claim: destroy its VM at once."""
        inventory = self._namespace.router.inventory(
            instance.vm.metadata.labels.get(names.LABEL_POOL_UID, "")
        )
        try:
            _, done = await self._namespace.executor.drive(release.Release(instance.name, instance.uid))
        finally:
            inventory.release(instance)
        if done.outcome != release.Outcome.DONE:
            self._namespace.router.check(instance)

    async def nothing_warm(self, entry: Waiting, pool: str) -> None:
        """WhenEmpty Fail, and nothing is warm."""
        space = self._namespace
        if entry.uid in space.in_hand:
            return
        space.in_hand.add(entry.uid)
        message = f"pool {pool} had no warm VM, and spec.whenEmpty.policy is Fail"
        fresh = status.ended(entry.claim, Trigger.REFUSE, ClaimReason.NOTHING_WARM, message, space.now())
        await self.carry_out(entry.claim, GiveUp(fresh))

    async def tell(
        self, entry: Waiting, reason: ClaimReason, message: str, place: dict[str, Any] | None = None
    ) -> bool:
        """Write why a claim waits; the place alone when that is all that is new. Whether it is told then."""
        space = self._namespace
        claim = space.router.claims.get(entry.uid)
        if claim is None or not claim.waiting or entry.assigned or entry.uid in space.in_hand:
            return False
        fresh = status.waiting(claim, reason, message, space.now(), place)
        before = status.kept(claim)
        without = {key: value for key, value in before.items() if key != "queue"}
        if place is not None and status.same(without, {k: v for k, v in fresh.items() if k != "queue"}):
            work = release.StatusWrite(StepName.CLAIM_QUEUE, claim, queue_place(claim, place))
        elif status.same(before, fresh):
            return True
        else:
            work = release.StatusWrite(StepName.CLAIM_STATUS, claim, whole_status(claim, fresh))
        return await self._drive(work) is None

    async def unreadable(self, claim: Claim) -> None:
        """A stored claim that the present schema would refuse."""
        await self.tell(Waiting(claim, 0.0), ClaimReason.SPEC_INVALID, claim.trouble)
