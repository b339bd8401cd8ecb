"""`python -m tests.faults [--scenario NAME …] [--only STEP …] [--kind KIND …] [--lanes N] [--seed N]`.

Every fault at every step of every scenario, and the table of what fired. 1 if anything was wrong, or if a
step never met a fault (asked for only when nothing is left out).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.faults import table
from tests.faults.addresses import Nature
from tests.faults.company import Company
from tests.faults.kinds import Kind, kinds_for
from tests.faults.plan import Exploration
from tests.faults.runs import Report
from tests.faults.scenarios import SCENARIOS
from tests.trials.stage import own_plane, stage

LANES = 8


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("--only", nargs="+", metavar="STEP", help="steps whose name begins so")
    parser.add_argument("--kind", nargs="+", choices=list(Kind), metavar="KIND", type=Kind)
    parser.add_argument("--seed", type=int, default=1, help="of the order of the runs")
    parser.add_argument("--lanes", type=int, default=LANES, help="runs side by side")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the table, as FILE.md and FILE.json")
    return parser.parse_args()


async def _explore(options: argparse.Namespace, plane: object, directory: Path) -> list[Report]:
    def kinds(nature: Nature, address: str) -> list[Kind]:
        if options.only and not address.startswith(tuple(options.only)):
            return []
        return [kind for kind in kinds_for(nature, address) if not options.kind or kind in options.kind]

    began = time.monotonic()

    def say(report: Report) -> None:
        missed = "" if report.all_fired else " (did not fire)"
        print(
            f"{time.monotonic() - began:6.0f} s  {report.run}{missed}: {report.took:.1f} s"
            + (f"\n  FAILED: {report.failure}" if report.failure else "")
            + "".join(f"\n  logged: {each[:300]}" for each in report.errors),
            flush=True,
        )

    explorations = [
        Exploration(name, frozenset(SCENARIOS[name].provoked), kinds, random=Random(options.seed))
        for name in options.scenario
    ]
    async with stage(plane, directory, recordings=directory) as where:  # type: ignore[arg-type]
        return await Company(where, options.lanes, say).explore(explorations)


def main() -> int:
    """Run them; 1 if anything was wrong."""
    options = _options()
    directory = Path(tempfile.mkdtemp(prefix="bullpen-faults-"))
    with own_plane(directory) as plane:
        began = time.monotonic()
        reports = asyncio.run(_explore(options, plane, directory))
        seconds = time.monotonic() - began
    found = table.document(reports, seconds=seconds)
    shown = table.markdown(table.fired(reports))
    print(shown)
    print(f"{len(reports)} runs in {seconds:.0f} s; the longest rest took {found['longest_rest_seconds']} s")
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.with_suffix(".md").write_text(shown)
        options.write.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    whole = options.scenario == list(SCENARIOS) and not options.only and not options.kind
    wrong = [*found["failures"], *found["unnamed"], *(found["never"] if whole else [])]
    for each in wrong:
        print(f"WRONG: {each}")
    if wrong:
        print(f"logs and the auditor's recordings: {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
