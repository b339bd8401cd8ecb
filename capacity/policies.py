"""What each policy of a spec asks for, in a sentence. It must never know what another one asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from capacity.decision import Advice, Policy, Stock, WebhookAnswer
from capacity.schedules import Slot
from crds.conditions import PoolReason
from crds.ratios import at_least

GOOD_FOR: Final = 600.0
"""Seconds for which a webhook's last good answer counts while it fails."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one policy asks for, what a person should know of it, and when it changes by itself."""

    policy: Policy
    warnings: tuple[Advice, ...] = ()
    changes_at: float | None = None


def percent(share: str, stock: Stock) -> Ask:
    """A share of the units in use, rounded up."""
    units = at_least(share, stock.in_use)
    return Ask(Policy("percent", units, f"{share} of {stock.in_use} in use, rounded up"))


def schedules(seen: Sequence[Slot]) -> list[Ask]:
    """One policy for each slot; the closed ones ask for nothing and say when they open."""
    return [
        Ask(
            Policy(f"schedule/{slot.schedule.name}", slot.units, slot.because),
            warnings=(Advice(PoolReason.SCHEDULE_NEVER_OPENS, f"{slot.because}: change its start"),)
            if slot.never
            else (),
            changes_at=slot.next_change,
        )
        for slot in seen
    ]


def webhook(answer: WebhookAnswer | None, now: float) -> Ask:
    """The last good answer; while the webhook fails it counts for ten minutes."""
    if answer is None:
        return Ask(Policy("webhook", 0, "was not asked yet"))
    if not answer.error:
        return Ask(Policy("webhook", answer.units or 0, f"answered {answer.units}"))
    ends = answer.at + GOOD_FOR
    if answer.units is None or now > ends:
        because, units, changes = "it fails and has no good answer of the last ten minutes", 0, None
    else:
        because = f"it fails; its last good answer, {answer.units}, counts until {clock(ends)}"
        units, changes = answer.units, ends
    failing = Advice(PoolReason.WEBHOOK_FAILING, f"the webhook fails: {answer.error}; {because}")
    return Ask(Policy("webhook", units, because), (failing,), changes)


def clock(at: float) -> str:
    """A time of the day as a status writes it: `10:05 UTC`."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
