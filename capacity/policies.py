"""What each policy of a spec asks for, in a sentence. It must never know what another one asks for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from capacity.curve import FEWEST, Basis, Curve
from capacity.decision import Advice, Limits, Policy, Stock, WebhookAnswer
from capacity.history import Recent
from capacity.schedules import Slot
from crds.conditions import PoolReason
from crds.ratios import at_least, fraction
from crds.warm import LevelMode, ServiceLevel

ROOM: Final = 1.5
"""Servers for each unit in flight on average, at the busiest time."""
LOOK_AGAIN: Final = 30.0
"""Seconds after which demand may ask for something else although nothing happened."""
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


def service_level(
    level: ServiceLevel,
    curve: Curve | None,
    recent: Recent | None,
    now: float,
    most: Mapping[str, int | None],
) -> Ask:
    """What reaches the level now and as far ahead as units take to come; what a person should know of it.

    Args:
        level: of the spec.
        curve: what was measured; None: nothing yet.
        recent: demand of the last minutes.
        now: epoch seconds.
        most: what bounds the target, by the name of the field; None: nothing.
    """
    applied = level.mode is LevelMode.APPLY
    asked = f"{level.target} of claims within {level.max_wait}"
    found = curve.estimate(fraction(level.target), now, recent) if curve is not None else None
    if curve is None or found is None or found.basis is Basis.FLOOR:
        little = found.because if found is not None else "nothing was measured yet"
        because = f"{little}: the other policies decide until then"
        few = Advice(PoolReason.TOO_FEW_CLAIMS, f"{asked}: {because}")
        return Ask(Policy("serviceLevel", 0, because, applied), (few,), now + LOOK_AGAIN)
    how = "counted" if found.basis is Basis.EMPIRICAL else "fitted"
    lead = round(curve.lead.p50 or 0.0, 1)
    because = f"{asked} need {found.units} ({how}: {found.because}; lead time {lead:g}s)"
    low = tuple(
        Advice(
            PoolReason.LEVEL_UNREACHABLE,
            f"{asked} need {found.units}, and {field} is {bound}: raise it, or ask for a lower level",
        )
        for field, bound in most.items()
        if bound is not None and bound < found.units
    )
    again = min(now + LOOK_AGAIN, found.changes_at or math.inf)
    return Ask(Policy("serviceLevel", found.units, because, applied), low, again)


def too_many(units: int, decided_by: str, limits: Limits) -> tuple[Advice, ...]:
    """Whether more are to stand ready than may exist at all; a service level says so itself."""
    if limits.most is None or units <= limits.most or decided_by == "serviceLevel":
        return ()
    return (
        Advice(
            PoolReason.MAX_REPLICAS_REACHED,
            f"{decided_by} asks for {units}; limits.maxReplicas is {limits.most}: raise it, or ask for less",
        ),
    )


def refill_bound(curve: Curve, limits: Limits) -> tuple[Advice, ...]:
    """Whether the busiest time keeps nearly all servers busy, so that a buffer refills late at any size.

    With `load` = rate times mean lead time in flight on average, 1.5 times as many servers leave a third of
    them free for what the average does not show.
    """
    if curve.claims < FEWEST:
        return ()
    when, rate = curve.busiest()
    enough = math.ceil(ROOM * rate / 3600 * (curve.lead.mean or 0.0))
    if limits.servers >= enough:
        return ()
    return (
        Advice(
            PoolReason.REFILL_BOUND,
            f"{round(rate)} claims an hour ({when}) at a lead time of {curve.lead.mean:.1f}s need "
            f"limits.maxConcurrentCreations: {enough} or more; it is {limits.servers}",
        ),
    )


def clock(at: float) -> str:
    """A time of the day as a status writes it: `10:05 UTC`."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
