"""Explore the hand-over protocol: python -m tests.protocol [--world NAME …] [--variant NAME …] [--small]."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.protocol.explore import Explorer, explored
from tests.protocol.report import row, table, trace
from tests.protocol.variants import VARIANTS
from tests.protocol.worlds import WORLDS, World, named


def _worlds(chosen: list[World]) -> int:
    """All of them, the biggest first, on as many cores as there are."""
    started, reports = time.monotonic(), {}
    with ProcessPoolExecutor(max_tasks_per_child=1) as cores:
        asked = [cores.submit(explored, each) for each in sorted(chosen, key=lambda each: not each.big)]
        for report in (each.result() for each in as_completed(asked)):
            reports[report.world.name] = report
            print("  ".join(row(report)), flush=True)
            for found in report.broken:
                print(trace(report, found), flush=True)
    done = [reports[world.name] for world in chosen]
    print(f"\n{table(done)}\n")
    for report in done:
        for found, why in report.allowed.items():
            print(f"known limit in {report.world.name}: {found}. {why}")
    total = sum(report.transitions for report in done)
    states = sum(report.states for report in done)
    print(f"{states:,} states, {total:,} transitions, {time.monotonic() - started:.0f} s")
    return int(any(report.broken or report.unmet or not report.complete for report in done))


def _variant(name: str) -> int:
    variant = next(each for each in VARIANTS if each.name == name)
    with variant.applied():
        report = Explorer(named(variant.world)).run(stop_at=variant.finds)
    found = [each for each in report.broken if each.startswith(variant.finds)]
    print(f"{variant.name}: {variant.about}")
    print("\n".join(trace(report, each) for each in found) or "  NOT FOUND")
    return int(not found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.protocol", description=__doc__)
    parser.add_argument("--world", action="append", default=[], choices=[each.name for each in WORLDS])
    parser.add_argument("--variant", action="append", default=[], choices=[each.name for each in VARIANTS])
    parser.add_argument("--small", action="store_true", help="without the biggest worlds")
    asked = parser.parse_args()
    if asked.variant:
        return max(_variant(name) for name in asked.variant)
    chosen = [each for each in WORLDS if each.name in asked.world or not asked.world]
    return _worlds([each for each in chosen if not (asked.small and each.big)])


if __name__ == "__main__":
    sys.exit(main())
