"""`python -m benchmarks handover|scale`: measure, show, write JSON; 1 when a threshold is missed."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import orjson
import uvloop
from rich.console import Console

from benchmarks import handover, scale, thresholds
from benchmarks.bare import RefusedError
from benchmarks.report import Report, machine
from benchmarks.rig import BOOT, Log, RigError, rig
from benchmarks.rows import Row
from e2e.controlplane.binaries import BuildError, NoBinariesError
from e2e.controlplane.processes import StartError
from e2e.install import InstallError

_EXPECTED = (
    RigError,
    RefusedError,
    NoBinariesError,
    BuildError,
    StartError,
    InstallError,
    TimeoutError,
)
STAND_IN = f"minimal profile, boots in {BOOT}; beside the floor as beside the product"


async def _handover(options: argparse.Namespace, log: Log) -> list[Row]:
    sizes = handover.QUICK if options.quick else handover.Sizes()
    if options.seconds is not None:
        sizes = dataclasses.replace(sizes, stream=options.seconds)
    async with rig(vm_crd=options.vm_crd, log=log) as found:
        return await handover.HandOver(found, sizes).run()


async def _scale(options: argparse.Namespace, log: Log) -> list[Row]:
    sizes = dataclasses.replace(scale.QUICK if options.quick else scale.Sizes(), pools=options.pools)
    async with rig(vm_crd=options.vm_crd, log=log) as found:
        return await scale.Scale(found, sizes).run()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    setting = machine() | {
        "VM definition": str(options.vm_crd or "reduced"),
        "KubeVirt stand-in": STAND_IN,
        "size": "quick: a smoke test, nothing is judged" if options.quick else "full",
    }
    run = _handover if options.benchmark == "handover" else _scale
    try:
        rows = uvloop.run(run(options, _progress()))
    except _EXPECTED as failure:
        print(failure, file=sys.stderr)
        return 2
    limits = [] if options.quick else thresholds.read(options.benchmark)
    report = Report(options.benchmark, setting, rows, thresholds.judge(limits, rows))
    report.show(_console())
    if options.json:
        options.json.write_bytes(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2))
    return 0 if report.passed else 1


def _progress() -> Log:
    """Lines on standard error, each with the time since the start."""
    console, began = Console(stderr=True, style="dim", highlight=False), perf_counter()
    return lambda text: console.print(f"{perf_counter() - began:6.1f} s  {text}")


def _console() -> Console:
    """Wide enough for the tables where there is no terminal to ask."""
    return Console() if sys.stdout.isatty() else Console(width=130)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="benchmark", required=True)
    for name, what in (
        ("handover", "rates, latencies and costs of hand-overs beside the raw floor"),
        ("scale", "memory, start and CPU with 1,000 and 10,000 VMs"),
    ):
        command = commands.add_parser(name, help=what, description=what)
        command.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
        command.add_argument("--vm-crd", type=Path, metavar="FILE", help="KubeVirt's own definitions")
        command.add_argument("--quick", action="store_true", help="a smoke test in less than a minute")
        if name == "handover":
            command.add_argument("--seconds", type=float, help="of each stream and the overload (60)")
        else:
            command.add_argument("--pools", type=int, default=1, help="over how many pools (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
