"""The README's tour, run as it is written: each command that a newcomer types, and what comes back.

`python -m e2e.tour --write` runs it on the demo's cluster (`make demo` first) and puts what came back into
the README. It must never know a command that the README does not show.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.demo import STATE
from e2e.install import ROOT

README = ROOT / "README.md"
PATIENCE = 180.0  # seconds for one command
_SECTION = re.compile(r"^## A five-minute tour$(.*?)^## ", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```console( refused)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = "$ "


class TourError(Exception):
    """A command did not come out as the README says; the text shows it and what it printed."""


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the tour. `refused`: it shows a mistake, and has to fail."""

    line: str
    refused: bool = False


def commands(readme: str) -> list[Command]:
    """The commands of the tour, in order."""
    return [
        Command(line.removeprefix(_PROMPT), refused)
        for refused, block in _blocks(readme)
        for line in block.splitlines()
        if line.startswith(_PROMPT)
    ]


def run(command: Command, kubeconfig: Path) -> str:
    """What it prints, as a person in this folder sees it. Raises TourError."""
    environ = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.line],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if (done.returncode != 0) is not command.refused:
        raise TourError(f"$ {command.line}\n{done.stdout}\nended with {done.returncode}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip().splitlines())


def rewritten(readme: str, outputs: Iterator[str]) -> str:
    """The README with what its commands printed; `outputs` in the order of `commands`."""

    def block(found: re.Match[str]) -> str:
        shown = [f"```console{found[1] or ''}\n"]
        for line in found[2].splitlines():
            if line.startswith(_PROMPT):
                shown += [f"{line}\n", next(outputs)]
        return "".join([*shown, "```"])

    def section(found: re.Match[str]) -> str:
        return _BLOCK.sub(block, found[0])

    return _SECTION.sub(section, readme, count=1)


def _blocks(readme: str) -> Iterator[tuple[bool, str]]:
    section = _SECTION.search(readme)
    if section is None:
        raise TourError("the README has no section `## A five-minute tour` with another one behind it")
    for found in _BLOCK.finditer(section[1]):
        yield bool(found[1]), found[2]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.tour", description=__doc__.splitlines()[0])
    parser.add_argument("--kubeconfig", type=Path, default=STATE / "kubeconfig", help="default: the demo's")
    parser.add_argument("--write", action="store_true", help="put what came back into the README")
    chosen = parser.parse_args(arguments)
    readme = README.read_text()
    outputs: list[str] = []
    try:
        for command in commands(readme):
            outputs.append(run(command, chosen.kubeconfig))
            print(f"$ {command.line}\n{outputs[-1]}", end="", flush=True)
    except TourError as failure:
        print(failure, file=sys.stderr)
        return 1
    if chosen.write:
        README.write_text(rewritten(readme, iter(outputs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
