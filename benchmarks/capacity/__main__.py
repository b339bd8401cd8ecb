"""`python -m benchmarks.capacity`: prove the engine in virtual time; 1 when a threshold is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import orjson
from rich.console import Console

from benchmarks.capacity import page, work
from benchmarks.capacity.report import Report
from benchmarks.report import machine


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    began = perf_counter()
    try:
        planned = work.plan(quick=options.quick, only=options.only, workers=options.workers)
    except KeyError as unknown:
        print(unknown.args[0], file=sys.stderr)
        return 2
    found = work.run(planned, _progress(began))
    rows, verdicts, tables = work.judged(planned, found)
    setting = {
        "machine": machine()["machine"],
        "lead times": f"lognormal, P50 {planned.book.lead.p50:g} s, P95 {planned.book.lead.p95:g} s",
        "size": "quick: a smoke test, nothing is judged" if options.quick else "full",
        "took": f"{perf_counter() - began:.0f} s in {options.workers} processes",
    }
    report = Report(setting, rows, [] if options.quick else verdicts, tables)
    report.show(Console() if sys.stdout.isatty() else Console(width=170))
    if options.json:
        options.json.write_bytes(orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2))
    if options.docs:
        page.write(planned, found, report)
    return 0 if report.passed else 1


def _progress(began: float) -> work.Log:
    """Lines on standard error, each with the time since the start."""
    console = Console(stderr=True, style="dim", highlight=False)
    return lambda text: console.print(f"{perf_counter() - began:6.1f} s  {text}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    parser.add_argument("--quick", action="store_true", help="a smoke test in less than half a minute")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="one trace or storm; may be repeated"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument("--docs", action="store_true", help="write tables and pictures into the docs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
