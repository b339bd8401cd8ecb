"""The command, as a person calls it."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _run(*asked: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.protocol", *asked]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.thorough
def test_worlds_are_explored_and_counted_in_a_table() -> None:
    done = _run("--world", "hand-over", "--world", "lost-alone")
    assert done.returncode == 0, done.stderr
    assert "| hand-over | 3 | 2 | 2 | 1 |" in done.stdout
    assert "| lost-alone |" in done.stdout


@pytest.mark.thorough
def test_a_mistake_is_told_as_a_story() -> None:
    done = _run("--variant", "no-deletion-test")
    assert done.returncode == 0, done.stderr
    assert "   1. a person deletes vm-1" in done.stdout
