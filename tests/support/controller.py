"""The controller as its own process, as users run it, on a test's control plane."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.controlplane.processes import die_with
from e2e.install import ROOT
from tests.support.ports import free_port


@dataclass
class Controller:
    """One running controller. Every one of a test has a Lease of its own unless it is told another's."""

    process: subprocess.Popen[bytes]
    log: Path
    listen: str

    def kill(self) -> None:
        """SIGKILL: nothing is tidied up."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        """A clean stop; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    @property
    def said(self) -> str:
        return self.log.read_text()

    def wait_until_says(self, words: str, seconds: float = 60.0) -> None:
        """Wait for a line of its log."""
        deadline = time.monotonic() + seconds
        while words not in self.said:
            assert self.process.poll() is None, f"the controller ended: {self.said[-2000:]}"
            assert time.monotonic() < deadline, f"it never said {words!r}: {self.said[-2000:]}"
            time.sleep(0.02)


@contextmanager
def running_controller(
    kubeconfig: Path,
    directory: Path,
    *,
    lease: str = "",
    wait: bool = True,
    module: str = "controller",
    **settings: str,
) -> Iterator[Controller]:
    """A controller for as long as the block runs; `brake_delay="1s"` and the like are its settings."""
    name = lease or f"bullpen-{secrets.token_hex(3)}"
    log = directory / f"controller-{secrets.token_hex(3)}.log"
    listen = f"127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "BULLPEN_LEASE_NAMESPACE": "default",
        "BULLPEN_LEASE_NAME": name,
        "BULLPEN_LEASE_DURATION": "6s",
        "BULLPEN_LISTEN": listen,
        "PYTHONWARNINGS": "error::ResourceWarning",
        **{f"BULLPEN_{key.upper()}": value for key, value in settings.items()},
    }
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=environment,
            stdout=sink,
            stderr=sink,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - no other thread is at work when it starts
        )
    controller = Controller(process, log, listen)
    try:
        if wait:
            controller.wait_until_says('"event": "ready"')
        yield controller
    finally:
        if process.poll() is None:
            controller.kill()


@pytest.fixture(scope="session")
def controller(
    kubeconfig: Path,
    simulator: None,  # noqa: ARG001 - something has to run the VMs
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Controller]:
    """The session's controller, with a brake that probes soon. Tests that kill one start their own."""
    directory = tmp_path_factory.mktemp("controller")
    with running_controller(
        kubeconfig,
        directory,
        brake_delay="2s",
        resync_interval="2s",
        # Nobody takes over from it: a lease lost while the machine stands still would end all that follows.
        lease_duration="60s",
    ) as running:
        yield running
