"""The failure brake: after repeated failures creations back off, one probe at a time. Pure.

A template that never boots must not be tried ten times a minute for ever; a pool whose VMs work must not be
slowed by one that did not. Claims on other VMs of the pool are never held back by it.
"""

from dataclasses import dataclass, replace

from crds.pool import VirtualMachinePool

OPENS_AFTER = 3  # failures in a row
FIRST_DELAY = 10.0  # s until the first probe
LONGEST_DELAY = 300.0  # s


@dataclass(frozen=True, slots=True)
class BrakeState:
    """Failures in a row, when the next probe may be made (epoch seconds), the pause before it (s)."""

    failures: int = 0
    open_since: float | None = None
    next_probe: float | None = None
    pause: float = 0.0

    @property
    def open(self) -> bool:
        return self.open_since is not None

    def failed(self, now: float, created: float, unit: float = FIRST_DELAY) -> "BrakeState":
        """One more failure. Only a probe's lengthens the pause: the others were made before it opened."""
        failures = self.failures + 1
        if self.open_since is None:
            if failures < OPENS_AFTER:
                return replace(self, failures=failures)
            return BrakeState(failures, now, now + unit, unit)
        if created < self.open_since:
            return replace(self, failures=failures)
        pause = min(LONGEST_DELAY, 2.0 * self.pause)
        return BrakeState(failures, self.open_since, now + pause, pause)

    def succeeded(self) -> "BrakeState":
        """A VM became warm: the brake is closed."""
        return BrakeState()

    def allows(self, in_flight: int, now: float) -> int | None:
        """How many may be created now; None while the brake sets no bound."""
        if not self.open:
            return None
        probing = in_flight > 0 or (self.next_probe is not None and now < self.next_probe)
        return 0 if probing else 1


def restored(pool: VirtualMachinePool, now: float) -> BrakeState:
    """The brake as the last status says: a restart must not let go of it."""
    brake = pool.status.brake if pool.status else None
    if brake is None or brake.open_since is None:
        return BrakeState()
    probe = brake.next_probe_time.timestamp() if brake.next_probe_time else now
    return BrakeState(brake.failures, brake.open_since.timestamp(), probe, max(FIRST_DELAY, probe - now))
