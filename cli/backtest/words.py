"""Numbers and sentences of a back-test, the same in the terminal and on the page."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cli.backtest.study import Setting, Study
from crds import durations

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def percent(share: float) -> str:
    """A share as people read it. Cut, not rounded: only what missed nothing is 100%."""
    hundredths = math.floor(share * 10_000 + 1e-6)  # 0.99 is a little less than 99 hundredths in binary
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + "%"


def hours(amount: float) -> str:
    """Unit-hours a day, to three digits or so."""
    return f"{amount:.1f}" if amount < 100 else f"{amount:,.0f}"  # noqa: PLR2004 - three digits either way


def seconds(length: float) -> str:
    """A lead time: to a tenth where that is seen."""
    return durations.text(round(length, 1) if length < 10 else round(length))  # noqa: PLR2004


def vms(units: str | int) -> str:
    """`1 VM`, `6 VMs`, `2 to 9 VMs`."""
    return f"{units} VM" if str(units) == "1" else f"{units} VMs"


def claims(number: int) -> str:
    """`1 claim`, `12,345 claims`."""
    return f"{number:,} claim" if number == 1 else f"{number:,} claims"


def at(moment: float) -> datetime:
    """Epoch seconds as a time."""
    return datetime.fromtimestamp(moment, UTC)


def facts(study: Study) -> str:
    """How much was replayed, and with which lead times."""
    lead = study.lead
    fast = f"half within {seconds(lead.p50)}, 19 of 20 within {seconds(lead.p95)}"
    return f"{claims(study.claims)}; {lead.what}: {fast}"


def when(moment: float, zone: str) -> str:
    """A moment as a person of that zone reads it."""
    return f"{at(moment).astimezone(ZoneInfo(zone)):%a %d %b %Y, %H:%M}"


def span(study: Study) -> str:
    """From when until when, and how long that is."""
    length = study.days
    long = f"{length:.1f} days" if length >= 2 else f"{length * 24:.1f} hours"  # noqa: PLR2004
    return f"{when(study.since, study.zone)} to {when(study.until, study.zone)} {study.zone} ({long})"


def found(study: Study) -> str:
    """What a claim that was a hit found."""
    if study.wait <= 0:
        return "found a warm VM"
    return f"had a VM within {durations.text(study.wait)}"


def slot(hour: int) -> str:
    """An hour of the week: `Mon 08:00`."""
    return f"{DAYS[hour // 24]} {hour % 24:02}:00"


def summary(study: Study) -> list[str]:
    """What came of it, in plain words: what is, what would have been enough, what the engine would do."""
    told = [_today(study, study.today)] if study.today else []
    told.append(_least(study))
    if study.engine:
        told.append(_engine(study, study.engine))
    return told


def _today(study: Study, today: Setting) -> str:
    verdict = "which meets" if today.hit_ratio >= study.level else "short of"
    share = f"{percent(today.hit_ratio)} of {claims(study.claims)} {found(study)}"
    return (
        f"With today's {vms(today.units)}, {share}, {verdict} {percent(study.level)}; "
        f"{hours(today.idle_hours)} VM-hours a day stood idle."
    )


def _least(study: Study) -> str:
    least = study.least
    if study.today and study.today.units == least.units:
        return f"That is also the smallest fixed number that meets {percent(study.level)}."
    return (
        f"The smallest fixed number that meets {percent(study.level)} is {vms(least.units)}, "
        f"at {hours(least.idle_hours)} idle VM-hours a day."
    )


def _engine(study: Study, engine: Setting) -> str:
    reaches = f"The engine, which would keep {vms(engine.units)}, reaches {percent(engine.hit_ratio)}"
    if engine.hit_ratio < study.level:
        reaches += f", short of {percent(study.level)},"
    cost = f"at {hours(engine.idle_hours)} idle VM-hours a day"
    if not study.least.idle_hours:
        return f"{reaches} {cost}."
    change = engine.idle_hours / study.least.idle_hours - 1
    than = f"{abs(change) * 100:.0f}% {'less' if change < 0 else 'more'} than that fixed number"
    return (
        f"{reaches} {cost}: {than}." if round(change, 2) else f"{reaches} {cost}, as that fixed number does."
    )
