"""Asks about processes, for tests that start and end some."""

from __future__ import annotations

import psutil


def alive(pid: int) -> bool:
    """A zombie waits for a parent that isn't ours: nothing of it runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(*pids: int) -> bool:
    return not [pid for pid in pids if alive(pid)]
