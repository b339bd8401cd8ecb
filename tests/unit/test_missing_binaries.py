"""A session that needs a control plane and can't have one says so once, before any test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from e2e.install import ROOT


def run_pytest(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In the home of somebody who has neither a cache nor Go."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={"HOME": str(home), "PATH": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_ways_out_are_named_and_no_test_is_tried(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "tests/integration/test_control_plane.py")
    assert done.returncode == 1
    assert "install Go 1.26" in done.stdout + done.stderr
    assert "failed" not in done.stdout
    assert "error" not in done.stdout


def test_tests_that_need_no_control_plane_run_all_the_same(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "tests/unit/test_progress.py")
    assert done.returncode == 0, done.stdout
