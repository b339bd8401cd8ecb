"""The container engine of this machine: found, asked whether it works, used to build the controller's image.

It must never be taken for a dependency: without one, everything but the kind cluster works.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.install import ROOT

NO_ENGINE = 69  # exit code: what this needs is not to be had here
ENGINES = ("docker", "podman")
_PATIENCE = 30.0  # seconds for an engine to say that it is there


class NoEngineError(Exception):
    """No engine answers; the text says what was tried and what a person can do."""


@dataclass(frozen=True)
class Engine:
    """A container engine that answers."""

    name: str
    program: str

    def build(self, image: str) -> None:
        """Build the controller's image under this name. Raises CalledProcessError."""
        self._run("build", "--file", str(ROOT / "Containerfile"), "--tag", image, str(ROOT))

    def save(self, image: str, archive: Path) -> None:
        self._run("save", "--output", str(archive), image)

    def _run(self, *arguments: str) -> None:
        subprocess.run([self.program, *arguments], check=True)


def find(environ: Mapping[str, str] = os.environ) -> Engine:
    """The first engine that answers.

    Raises:
        NoEngineError: there is none, or its daemon does not run.
    """
    tried = []
    for name in ENGINES:
        program = shutil.which(name, path=environ.get("PATH", ""))
        if program is None:
            tried.append(f"{name}: not on PATH")
            continue
        why = _silent(program)
        if not why:
            return Engine(name, program)
        tried.append(f"{name}: {why}")
    reasons = "\n".join(f"  - {each}" for each in tried)
    raise NoEngineError(
        f"No container engine answers on this machine:\n{reasons}\n"
        "Start Docker, or install Podman. Without one, `make e2e` runs the same specs on a control plane of "
        "this machine, and `make e2e KUBECONFIG=file` on a cluster of yours."
    )


def _silent(program: str) -> str:
    """Why the engine does not answer; empty when it does."""
    try:
        asked = subprocess.run(
            [program, "info"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_PATIENCE:.0f} s"
    said = (asked.stderr or asked.stdout).strip().splitlines()
    return (said[-1].strip() if said else f"exit code {asked.returncode}") if asked.returncode else ""


def default_image() -> str:
    """The name that the chart's own values mean."""
    chart = yaml.safe_load((ROOT / "charts" / "bullpen" / "Chart.yaml").read_text())
    return f"bullpen:{chart['appVersion']}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.kind.engine", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["build"])
    parser.add_argument("image", nargs="?", default=default_image(), help="its name, name:tag")
    chosen = parser.parse_args(arguments)
    try:
        engine = find()
    except NoEngineError as failure:
        print(failure, file=sys.stderr)
        return NO_ENGINE
    try:
        engine.build(chosen.image)
    except subprocess.CalledProcessError as failure:
        return failure.returncode
    print(f"built {chosen.image} with {engine.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
