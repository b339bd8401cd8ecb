"""`python -m tests.trials [--only NAME …] [--seed N]`: all trials at full size, and a table of the outcome.

It takes about a quarter of an hour on two idle cores. The auditor's events of a trial that failed are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console

from tests.trials import report
from tests.trials.absences import frozen, outages, rivals
from tests.trials.bursts import bursts, line
from tests.trials.chaos import chaos
from tests.trials.deaths import deaths
from tests.trials.report import Row
from tests.trials.rollout import rollouts
from tests.trials.stage import Stage, own_plane, stage
from tests.trials.takeover import takeovers

Trial = Callable[[Stage, int], Awaitable[tuple[int, str]]]


async def _bursts(where: Stage, _seed: int) -> tuple[int, str]:
    return 5, report.of_bursts(await bursts(where, times=5))


async def _line(where: Stage, _seed: int) -> tuple[int, str]:
    return 1, report.of_line(await line(where))


async def _deaths(where: Stage, seed: int) -> tuple[int, str]:
    found = await deaths(where, rounds=20, seed=seed)
    return len(found.rounds), report.of_deaths(found.rounds)


async def _frozen(where: Stage, seed: int) -> tuple[int, str]:
    return 3, report.of_absences(await frozen(where, rounds=3, seed=seed))


async def _rivals(where: Stage, _seed: int) -> tuple[int, str]:
    return 3, report.of_absences(await rivals(where, rounds=3))


async def _outages(where: Stage, seed: int) -> tuple[int, str]:
    return 3, report.of_absences(await outages(where, rounds=3, seed=seed))


async def _takeovers(where: Stage, _seed: int) -> tuple[int, str]:
    return 8, report.of_takeovers(await takeovers(where, kills=3, stops=5))


async def _rollouts(where: Stage, seed: int) -> tuple[int, str]:
    return 3, report.of_rollouts(await rollouts(where, seed=seed))


async def _chaos(where: Stage, seed: int) -> tuple[int, str]:
    return 1, report.of_chaos(await chaos(where, seed=seed))


async def _chaos_and_deaths(where: Stage, seed: int) -> tuple[int, str]:
    return 1, report.of_chaos(await chaos(where, seconds=90.0, seed=seed, kill_every=5.0))


TRIALS: dict[str, tuple[str, Trial]] = {
    "bursts": ("200 claims at once on 50 warm VMs", _bursts),
    "line": ("claims a second apart, too few VMs", _line),
    "deaths": ("SIGKILL in the middle of a burst", _deaths),
    "frozen": ("SIGSTOP longer than the lease, then SIGCONT", _frozen),
    "rivals": ("two controllers that both lead", _rivals),
    "takeover": ("a leader stopped, or killed, beside a standby; default lease", _takeovers),
    "outages": ("the API server killed in a burst", _outages),
    "rollout": ("a changed template: at rest, under load, with a kill", _rollouts),
    "chaos": ("everything at once", _chaos),
    "doom": ("everything at once, and kills", _chaos_and_deaths),
}


async def _run(where: Stage, chosen: list[str], seed: int, console: Console) -> list[Row]:
    rows = []
    for name in chosen:
        title, trial = TRIALS[name]
        console.print(f"[bold]{name}[/]: {title}")
        began = time.monotonic()
        try:
            times, figures = await trial(where, seed)
            rows.append(Row(title, times, figures))
        except AssertionError as failure:
            rows.append(Row(title, 0, "", str(failure)))
            console.print(f"  FAILED: {failure}", markup=False)
        console.print(f"  {time.monotonic() - began:.0f} s")
    return rows


def main() -> int:
    """Run them; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.trials", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TRIALS, default=list(TRIALS), metavar="NAME")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    directory = Path(tempfile.mkdtemp(prefix="bullpen-trials-"))

    async def run() -> list[Row]:
        def say(found: object) -> None:
            console.print(f"  {found}", markup=False, highlight=False)

        async with stage(plane, directory, say=say, recordings=directory) as where:
            return await _run(where, options.only, options.seed, console)

    with own_plane(directory) as plane:
        rows = asyncio.run(run())
    report.show(rows, console)
    if any(row.failure for row in rows):
        console.print(f"logs and the auditor's recordings: {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
