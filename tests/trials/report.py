"""The table that a person reads of trials that passed or failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.trials.absences import Absence
from tests.trials.bursts import Burst, Line
from tests.trials.chaos import Chaos
from tests.trials.deaths import Death
from tests.trials.rollout import Round
from tests.trials.takeover import TakeOver


@dataclass(frozen=True)
class Row:
    """What was tried, how often, what came of it; `failure` is empty when it passed."""

    trial: str
    times: int
    figures: str
    failure: str = ""


def of_bursts(found: Sequence[Burst]) -> str:
    return "; ".join(
        (
            f"{found[0].claims} claims each",
            f"first {_range([each.first for each in found])}",
            f"the warm ones gone after {_range([each.last_of_warm for each in found])}",
            f"last {_range([each.last for each in found])}",
            f"overtaken at worst by {max(each.overtaken for each in found):.2f} s",
            f"{max(each.requests_per_claim for each in found):.1f} requests a claim at most",
        )
    )


def of_line(found: Line) -> str:
    return (
        f"{found.claims} claims {found.apart:g} s apart on {found.warm} warm: strict order; "
        f"the first waited {found.wait_first:.2f} s, the last {found.wait_last:.1f} s"
    )


def of_deaths(found: Sequence[Death]) -> str:
    died = sum(len(each.after) for each in found)
    return "; ".join(
        (
            f"{died} kills, {sum(each.claims for each in found)} claims",
            f"{sum(each.deleted for each in found)} of them deleted meanwhile",
            f"{sum(each.bound for each in found)} bound",
            f"{sum(each.ended for each in found)} ended with a reason",
            f"{sum(each.published for each in found)} published at the first death",
            f"{sum(each.held for each in found)} handed over and not published then",
            f"at rest after {_range([each.recovered for each in found])}",
        )
    )


def of_absences(found: Sequence[Absence]) -> str:
    away = f"away {_range([each.away for each in found])}; " if any(each.away for each in found) else ""
    return (
        f"{sum(each.claims for each in found)} claims, {away}"
        f"at rest after {_range([each.recovered for each in found])}"
    )


def of_takeovers(found: Sequence[TakeOver]) -> str:
    waits = {how: [each.bound for each in found if each.how == how] for how in ("stopped", "killed")}
    leader, standby = (
        max(mib) for mib in zip(*((each.leader_mib, each.standby_mib) for each in found), strict=True)
    )
    return "; ".join(
        (
            *(f"bound {_range(each)} after the leader was {how}" for how, each in waits.items() if each),
            f"memory of a leader {leader:.0f} MiB, of a standby {standby:.0f} MiB",
        )
    )


def of_rollouts(found: Sequence[Round]) -> str:
    return "; ".join(
        f"{each.what}: {each.replaced} drained in {each.took:.1f} s, never fewer than {each.lowest} of "
        f"{each.warm} ready (floor {each.floor})"
        + (f", {each.claims} claims waited {each.waited:.2f} s at most" if each.claims else "")
        for each in found
    )


def of_chaos(found: Chaos) -> str:
    deeds = ", ".join(f"{number} {deed}" for deed, number in sorted(found.deeds.items()))
    memory = (
        f"{found.requests_per_claim:.1f} requests a claim; "
        f"memory {found.memory_third:.0f} MiB after a third, {found.memory_end:.0f} MiB at the end"
    )
    return (
        f"{found.seconds:g} s: {deeds}; {found.bound} bound; "
        f"{f'{found.deaths} kills' if found.deaths else memory}; at rest after {found.recovered:.1f} s"
    )


def show(rows: Sequence[Row], console: Console) -> None:
    table = Table("trial", "times", "what came of it", "verdict", show_lines=True)
    for row in rows:
        table.add_row(
            row.trial, str(row.times), row.failure or row.figures, "FAILED" if row.failure else "ok"
        )
    console.print(table)


def _range(seconds: Sequence[float]) -> str:
    return f"{min(seconds):.2f}–{max(seconds):.2f} s" if len(seconds) > 1 else f"{seconds[0]:.2f} s"
