"""What a pool's boots say: of its template (the brake), and of how long VMs take. It writes nothing."""

from collections.abc import Callable

import structlog

from controller.claims.records import PoolRecord
from controller.machines.inventory import Instance, revision_of
from controller.metrics import LEAD_TIME
from controller.pools.brake import BrakeState
from controller.pools.freshness import Standard
from statemachines.instance import State

log = structlog.get_logger()


class Boots:
    """`brake` and `last_failure` as the VMs of the present template make them; `proven` of it became warm.

    `took` is told of each VM that became warm, with its boot in seconds and whether the brake was open then.
    """

    def __init__(
        self,
        record: PoolRecord,
        brake: BrakeState,
        unit: float,
        took: Callable[[Instance, float], None],
        public: Callable[[str], str],
    ) -> None:
        self.brake = brake
        self.last_failure = ""
        self.proven = 0
        self._record = record
        self._unit = unit
        self._took = took
        self._public = public
        self._failed: set[str] = set()

    def another_template(self) -> None:
        """What failed, and what worked, was made from another one."""
        self.brake = BrakeState()
        self.last_failure, self.proven = "", 0

    def count(self, standard: Standard, now: float) -> None:
        """Those that became warm or failed since the last time."""
        inventory = self._record.inventory
        for instance, boot in inventory.drain_boots():
            self._record.boots.add(boot)
            LEAD_TIME.labels(self._record.name).observe(boot)
            self._took(instance, boot)
            if standard.stale(revision_of(instance)):
                continue  # what another template's VMs do says nothing of this one
            self.proven += 1
            if not self.brake.open or instance.created >= (self.brake.open_since or 0.0):
                self.brake = self.brake.succeeded()
        failed = inventory.by_state[State.FAILED]
        for uid, instance in failed.items():
            if uid not in self._failed:
                self._failed.add(uid)
                self._one_failed(instance, standard, now)
        self._failed &= failed.keys()

    def _one_failed(self, instance: Instance, standard: Standard, now: float) -> None:
        why = self._public(instance.derived.reason)
        # An older one says nothing of this template, and neither does one that its node took along.
        if not instance.derived.node_lost and not standard.stale(revision_of(instance)):
            self.last_failure = why
            self.brake = self.brake.failed(now, instance.created, self._unit)
        log.warning("VM failed", pool=self._record.name, vm=instance.name, why=why)
