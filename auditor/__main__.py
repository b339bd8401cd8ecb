"""`python -m auditor`: watch a cluster, or a recording, and say what was broken (exit code 1 if anything)."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from auditor.events import Recording, Violation
from auditor.judge import Judge
from auditor.watching import Auditor
from crds import durations

_LOOK = 0.5  # seconds between two looks at what was found


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m auditor", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="default: KUBECONFIG, or from within the cluster")
    parser.add_argument("-n", "--namespace", help="default: all of them")
    parser.add_argument(
        "--for", dest="length", type=durations.seconds, help="like 30s; default: until Ctrl-C"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the events, one JSON line each")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="judge a recording instead of a cluster")
    return parser.parse_args(arguments)


def _say(found: list[Violation]) -> None:
    for violation in found:
        print(violation, flush=True)  # noqa: T201 - the program's output


async def _watch(options: argparse.Namespace) -> list[Violation]:
    async with Auditor.watching(options.kubeconfig, options.namespace, record=options.record) as auditor:
        loop, said = asyncio.get_running_loop(), 0
        end = loop.time() + (options.length or float("inf"))
        while loop.time() < end:
            await asyncio.sleep(min(_LOOK, end - loop.time()))
            found = auditor.violations
            _say(found[said:])
            said = len(found)
        found = await auditor.settled()
        _say(found[said:])
        print(", ".join(f"{number} {kind}" for kind, number in auditor.seen.items()), "seen")  # noqa: T201 - likewise
        return found


def _replay(path: Path) -> list[Violation]:
    judge = Judge()
    for event in Recording(path).read():
        judge.see(event)
    found = judge.violations + judge.at_rest()
    _say(found)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code."""
    options = _arguments(arguments)
    try:
        found = _replay(options.replay) if options.replay else asyncio.run(_watch(options))
    except KeyboardInterrupt:
        return 130
    print(f"{len(found)} violations" if found else "no violation")  # noqa: T201 - likewise
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
