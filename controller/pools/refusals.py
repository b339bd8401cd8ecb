"""What the API server refused to a pool, and when it is asked again: soon, then ever more rarely. Pure.

It must never let a refusal become a storm, nor a pool wait long for what has passed: a refused template waits
for a person, anything else (a quota, a webhook, a right) may be put right at any time.
"""

from dataclasses import dataclass, replace

from controller.machines.privacy import private_texts, redacted
from controller.pools.snapshot import Trouble
from crds.conditions import PoolReason
from crds.pool import VirtualMachinePool

FIRST = 10.0  # s until what was refused is tried again
LONGEST_TEMPLATE, LONGEST = 300.0, 60.0  # s
FIRST_REMOVAL = 5.0  # s until a refused removal is tried again
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that the API server refused: the condition's reason and its sentence."""

    reason: str
    message: str

    def about(self, pool: VirtualMachinePool) -> "Refusal":
        """The same without what the pool's template tells its guests in private."""
        return replace(self, message=redacted(self.message, private_texts(pool)))

    @property
    def quota(self) -> bool:
        return self.reason == PoolReason.QUOTA_REFUSED


@dataclass(frozen=True, slots=True)
class Refusals:
    """What stands against creations. `total` is how many VMs there were when a quota refused another one."""

    trouble: Trouble | None = None
    quota: str = ""
    retry_at: float = 0.0
    pause: float = FIRST
    total: int = 0

    @property
    def any(self) -> bool:
        return self.trouble is not None or bool(self.quota)

    @property
    def template(self) -> str:
        """Why no VM can be made of this template; empty for what passes without a change of it."""
        reasons = (PoolReason.TEMPLATE_INVALID, PoolReason.TEMPLATE_TOO_LARGE)
        return self.trouble.message if self.trouble and self.trouble.reason in reasons else ""

    def refused(self, refusal: Refusal, now: float, total: int) -> "Refusals":
        """One more; those that were under way together are one, and lengthen the pause once."""
        if self.any:
            return self
        longest = LONGEST_TEMPLATE if refusal.reason == PoolReason.TEMPLATE_INVALID else LONGEST
        trouble = None if refusal.quota else Trouble(refusal.reason, refusal.message)
        quota = refusal.message if refusal.quota else ""
        pause = min(self.pause, longest)
        return Refusals(trouble, quota, now + pause, min(longest, 2 * pause), total)

    def failed(self, trouble: Trouble) -> "Refusals":
        """The template can't be used: there is nothing to ask for until it is changed."""
        return replace(self, trouble=trouble, retry_at=NEVER)

    def over(self, now: float, total: int) -> bool:
        """Whether it is time to ask again: the pause is over, or VMs went and the quota may have room."""
        return self.any and (now >= self.retry_at or (bool(self.quota) and total < self.total))

    def again(self) -> "Refusals":
        """It is being asked again."""
        return Refusals(pause=self.pause)


def growing_pause(first: float, setbacks: int) -> float:
    """Seconds until a write is tried again that was refused so often in a row, `first` of them at first."""
    return min(LONGEST, first * 2.0 ** min(setbacks, 10))
