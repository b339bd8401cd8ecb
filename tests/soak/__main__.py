"""`python -m tests.soak [--minutes N] [--seed S] [--json FILE]`: a soak, and a table of what came of it.

Logs and the auditor's events of one that failed are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import orjson
from rich.console import Console

from tests.soak.soak import flags, soak
from tests.soak.summary import Summary, table
from tests.trials.stage import own_plane, stage


def main() -> int:
    """Run it; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the summary for machines")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    directory = Path(tempfile.mkdtemp(prefix="bullpen-soak-"))

    async def run() -> Summary:
        def say(found: object) -> None:
            console.print(f"  {found}", markup=False, highlight=False)

        async with stage(plane, directory, say=say, recordings=directory) as where:
            return await soak(where, minutes=options.minutes, seed=options.seed)

    with own_plane(directory, flags()) as plane:
        found = asyncio.run(run())
    console.print(table(found), markup=False)
    if options.json:
        options.json.write_bytes(orjson.dumps(found.as_json(), option=orjson.OPT_INDENT_2))
    if not found.passed:
        console.print(f"logs and the auditor's recordings: {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
