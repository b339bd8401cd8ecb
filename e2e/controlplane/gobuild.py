"""Builds a program of a Go module into a cache, with the Go that is on this machine.

It must never fetch ready-made binaries or another Go, nor write anywhere but into the cache.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.controlplane.processes import die_with
from e2e.controlplane.progress import Progress

Log = Callable[[str], None]

GO_AT_LEAST = (1, 26)
_SCRATCH = ".building-"


class BuildError(Exception):
    """The compiler refused or was not able to; the text ends with its own output."""


@dataclass(frozen=True)
class Program:
    """A program of a Go module: its file's name, its package, the folder of the `go.mod`, linker flags."""

    name: str
    package: str
    module: Path
    linker_flags: str = "-s -w"


def why_no_go(environ: Mapping[str, str]) -> str | None:
    """Why nothing can be built here; None when the stock Go is new enough. It never fetches another one."""
    go = shutil.which("go", path=environ.get("PATH", ""))
    if go is None:
        return "there is no `go` on PATH"
    said = subprocess.run(
        [go, "version"], env={**environ, "GOTOOLCHAIN": "local"}, capture_output=True, text=True, check=False
    )
    version = re.search(r"\bgo(\d+)\.(\d+)", said.stdout)
    if version is None or (int(version[1]), int(version[2])) < GO_AT_LEAST:
        return f"`go version` says {(said.stdout or said.stderr).strip()!r}"
    return None


@contextmanager
def only_builder(cache: Path, log: Log) -> Iterator[None]:
    """One process at a time builds into this cache; the others wait and say so."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log("another process is building the same binaries; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{_SCRATCH}*"):  # by a builder that was killed: the lock says it is gone
            shutil.rmtree(left)
        yield


def build(program: Program, cache: Path, environ: Mapping[str, str], progress: Progress) -> None:
    """Build it into the cache, whole or not at all. Call it as the only builder.

    Raises:
        BuildError: with the compiler's output.
    """
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache) as scratch:
        built = Path(scratch) / program.name
        output = Path(scratch) / "output"
        flags = ["-trimpath", "-ldflags", program.linker_flags, "-o", str(built)]
        settings = {**environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOWORK": "off"}
        with output.open("w") as sink, progress:
            command = ["go", "build", *flags, program.package]
            code = _run(command, program.module, settings, sink.fileno(), progress)
            if code != 0:
                raise BuildError(f"building {program.name} failed:\n{output.read_text()[-4000:]}")
        built.rename(cache / program.name)


def _run(
    command: list[str], module: Path, environ: Mapping[str, str], output: int, progress: Progress
) -> int:
    """Run it in a group of its own, so that an interrupted build leaves no compiler behind."""
    # A Ctrl-C that came while Popen is at work would leave nobody who knows what it has started.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        go = subprocess.Popen(
            command,
            cwd=module,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - prctl alone: nothing that a thread could hold
        )
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        while True:
            try:
                return go.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                progress.tick()
    finally:
        if go.poll() is None:
            os.killpg(go.pid, signal.SIGTERM)
            go.wait()
