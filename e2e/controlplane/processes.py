"""Processes that are started here, remembered on disk, and ended by their own id.

A process is ended only while its id still belongs to what was started: the id is kept together with the
time of its start. It must never signal a process by name, nor one that it did not start.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

TERM_BOUND = 10.0  # seconds between SIGTERM and SIGKILL
_SAME_START = 1.5  # seconds by which two readings of one start may differ
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
# Children of this very process, kept so that they are reaped and never left as zombies.
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}


class StartError(Exception):
    """A process ended or stayed silent while it was started; the text ends with its last lines."""


def die_with(parent: int) -> Callable[[], None]:
    """For a child to call before exec: the kernel kills it when its parent ends, however that ends."""

    def ask_the_kernel() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it ended just before the request
                os._exit(1)

    return ask_the_kernel


@dataclass(frozen=True)
class Process:
    """One started process, known by its id and the time of its start after boot (seconds)."""

    name: str
    pid: int
    started: float
    log: str

    def alive(self) -> bool:
        """Whether the process with this id still is the one that was started, and any thread of it runs."""
        try:
            process = psutil.Process(self.pid)
            if abs(_start(process) - self.started) > _SAME_START:
                return False
            if child := _CHILDREN.get(self.pid):
                return child.poll() is None
            # Its first thread may have ended, and look like a zombie, while others still hold the ports.
            return process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
        except psutil.NoSuchProcess:
            return False

    def signal(self, number: int) -> None:
        if self.alive():
            os.kill(self.pid, number)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within that time."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def lines(self) -> list[str]:
        """What it has written so far."""
        path = Path(self.log)
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    def tail(self, count: int = 15) -> str:
        """The last lines that it wrote, each with its name before it."""
        last = self.lines()[-count:]
        return "\n".join(f"  {self.name}: {line}" for line in last) or f"  {self.name} wrote nothing"


class Processes:
    """What was started into one folder, in order.

    With `survive` they outlive this process and are found again by `Processes.load`; without it the kernel
    kills them together with this process (on Linux).
    """

    def __init__(self, folder: Path, *, survive: bool = False) -> None:
        self.folder = folder
        self.survive = survive
        self.started: list[Process] = []

    @classmethod
    def load(cls, folder: Path) -> Processes:
        """What an earlier process started there and left running."""
        found = cls(folder, survive=True)
        if found._file.exists():
            found.started = [Process(**entry) for entry in json.loads(found._file.read_text())]
        return found

    @property
    def _file(self) -> Path:
        return self.folder / "processes.json"

    def start(self, name: str, command: Sequence[str], environ: Mapping[str, str] | None = None) -> Process:
        """Start it with its output in `logs/NAME.log`; it isn't waited for."""
        log = self.folder / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as sink:
            child = subprocess.Popen(
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to us alone, and we end them in order
                preexec_fn=None if self.survive else die_with(os.getpid()),  # noqa: PLW1509 - prctl alone
            )
        _CHILDREN[child.pid] = child
        process = Process(name, child.pid, _start_of_child(child), str(log))
        self.started.append(process)
        self._save()
        return process

    def stop(self, *names: str) -> None:
        """End these (all, newest first, when none is named) and wait until they are gone."""
        chosen = [one for one in reversed(self.started) if not names or one.name in names]
        if not chosen:
            return
        for process in chosen:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + TERM_BOUND
        for process in chosen:
            if not process.wait(max(0.0, deadline - time.monotonic())):
                process.signal(signal.SIGKILL)
                process.wait(TERM_BOUND)
            if (child := _CHILDREN.get(process.pid)) and child.poll() is not None:
                del _CHILDREN[process.pid]
        self.started = [one for one in self.started if one not in chosen]
        self._save()

    def dead(self) -> list[Process]:
        """Those that ended although nobody stopped them."""
        return [one for one in self.started if not one.alive()]

    def _save(self) -> None:
        if not self.folder.exists():
            return
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps([asdict(one) for one in self.started], indent=1))
        fresh.rename(self._file)


def _start(process: psutil.Process) -> float:
    # After boot, not of the calendar: a clock that is set must not turn our processes into strangers.
    return process.create_time() - psutil.boot_time()


def _start_of_child(child: subprocess.Popen[bytes]) -> float:
    # An ended child keeps its entry until it is reaped, so this can't miss.
    return _start(psutil.Process(child.pid))
