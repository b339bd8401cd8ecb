"""`kubectl bullpen audit` as an operator runs it, by kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Said:
    """What one run of it said."""

    code: int
    out: str
    error: str

    @property
    def findings(self) -> list[Json]:
        found: list[Json] = json.loads(self.out)["findings"]
        return found

    @property
    def whats(self) -> list[tuple[str, str, str]]:
        """Severity, what and name of each finding."""
        return [(each["severity"], each["what"], each["name"]) for each in self.findings]


@dataclass(frozen=True)
class Command:
    """`kubectl bullpen audit` in one namespace."""

    kubeconfig: Path
    namespace: str

    def __call__(self, *options: str, settle: str = "1s", json: bool = True, within: bool = True) -> Said:
        arguments = ["--settle", settle, *(["-o", "json"] if json else []), *options]
        done = self._started(*arguments, *(["-n", self.namespace] if within else []))
        out, error = done.communicate(timeout=120)
        return Said(done.returncode, out, error)

    def start(self, *options: str) -> subprocess.Popen[str]:
        return self._started(*options, "-n", self.namespace)

    def _started(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(BIN / "kubectl"), "bullpen", "audit", *options],
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig), "PATH": f"{BIN}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def audit(kubeconfig: Path, namespace: str) -> Command:
    return Command(kubeconfig, namespace)
