"""kubectl, as a person would use it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


class KubectlError(Exception):
    """It refused; the text is what it wrote to standard error."""


@dataclass(frozen=True)
class Kubectl:
    """The kubectl of this Python environment, for one cluster."""

    kubeconfig: Path

    def __call__(self, *arguments: str, stdin: str | None = None, seconds: float = 60.0) -> str:
        """What it prints to standard output."""
        done = subprocess.run(
            [self._program(), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlError(done.stderr)
        return done.stdout

    @staticmethod
    def _program() -> str:
        here = str(Path(sys.executable).parent)
        found = shutil.which("kubectl", path=here) or shutil.which("kubectl")
        if found is None:
            raise KubectlError("there is no kubectl: run `make setup`")
        return found
