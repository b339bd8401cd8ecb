"""A real Kubernetes control plane on this machine: etcd, API server, controller manager and scheduler.

Everything listens on 127.0.0.1, speaks TLS and asks for a token (etcd alone is plain); the data is not
synced to disk, since nobody needs it after a crash.
It must never be taken for a place to keep anything: `start` empties its folder.
"""

from __future__ import annotations

import base64
import json
import random
import secrets
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from e2e.controlplane import commands
from e2e.controlplane.binaries import find_or_build
from e2e.controlplane.commands import Plan
from e2e.controlplane.processes import Process, Processes, StartError

ATTEMPTS = 4  # a port that was free a moment ago may be somebody else's now
START_BOUND = 60.0  # seconds; it takes three on an idle machine
# Below the range from which the kernel takes the ports of outgoing connections.
_PORTS = range(20_000, 32_000)
_TAKEN = "address already in use"
# Who asked for what and was answered what; never what was in it.
_AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
"""
PARTS = ("etcd", "apiserver", "controller-manager", "scheduler")


class ControlPlane:
    """A running control plane; a context manager that stops it.

    `processes` may be given more to look after (a stand-in, a controller): they stop with it, first.
    """

    def __init__(self, directory: Path, kubeconfig: Path, processes: Processes) -> None:
        self.directory = directory
        self.kubeconfig = kubeconfig
        self.processes = processes

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        survive: bool = False,
        guarded: bool = False,
        log: Callable[[str], None] = print,
    ) -> ControlPlane:
        """Start one into this folder and return when it serves and the default service account exists.

        Args:
            directory: emptied first; certificates, data, logs and the kubeconfig go there.
            survive: whether it outlives this process; `ControlPlane.load` finds it again.
            guarded: set up as careful clusters are; see `Plan`.
            log: is told what is built, where there are no binaries yet.

        Raises:
            NoBinariesError, BuildError: there is nothing to start.
            StartError: with the last lines of what did not come up.
        """
        binaries = find_or_build(log=log)
        for attempt in range(1, ATTEMPTS + 1):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True, mode=0o700)
            plane = cls(directory, directory / "kubeconfig", Processes(directory, survive=survive))
            try:
                plane._start(binaries, guarded=guarded)
            except BaseException as failure:
                plane.stop()
                if isinstance(failure, StartError) and _TAKEN in str(failure) and attempt < ATTEMPTS:
                    continue
                raise
            return plane
        raise AssertionError("unreachable")

    @classmethod
    def load(cls, directory: Path) -> ControlPlane | None:
        """The one that an earlier process left in this folder, whole or in part; None without one."""
        processes = Processes.load(directory)
        return cls(directory, directory / "kubeconfig", processes) if processes.started else None

    @classmethod
    def given(cls, kubeconfig: Path, directory: Path) -> ControlPlane:
        """Somebody else's cluster: `stop` leaves it alone and ends only what `run_beside` added.

        The directory takes the logs of those.
        """
        return cls(directory, kubeconfig, Processes(directory))

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name: etcd, apiserver, controller-manager, scheduler and what was added."""
        return {process.name: process.pid for process in self.processes.started}

    def run_beside(
        self,
        name: str,
        command: Sequence[str],
        *,
        ready: str | None,
        environ: Mapping[str, str] | None = None,
    ) -> Process:
        """Start one more process, which stops before the rest does.

        Args:
            name: of its log file and in `pids`.
            command: the program and its arguments.
            ready: the line by which it says that it is ready; without one it isn't waited for.
            environ: its environment, this process' own when absent.

        Raises:
            StartError: it ended or did not say so within a minute; it is stopped then.
        """
        process = self.processes.start(name, command, environ)
        if ready is None:
            return process
        try:
            _until(
                lambda: ready in process.lines(),
                f"{name} says {ready!r}",
                [process],
                time.monotonic() + START_BOUND,
            )
        except BaseException:
            self.processes.stop(name)
            raise
        return process

    def stop(self) -> None:
        """End everything, newest first; seconds at most, and nothing is left running."""
        added = [name for name in self.pids if name not in PARTS]
        # The API server goes before etcd, without which it would wait; its clients go before it.
        for wave in (added, ["scheduler", "controller-manager"], ["apiserver"], ["etcd"]):
            if wave:
                self.processes.stop(*wave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self, binaries: dict[str, Path], *, guarded: bool) -> None:
        etcd_port, api_port = _free_ports(2)
        plan = Plan(self.directory, etcd_port, api_port, guarded)
        token = secrets.token_hex(16)
        _write_private(plan.tokens, f'{token},admin,admin,"system:masters"\n')
        plan.audit_policy.write_text(_AUDIT_POLICY)
        bound = time.monotonic() + START_BOUND

        etcd = self._run(binaries["etcd"], "etcd", commands.etcd(plan))
        _until(lambda: _listens(etcd, plan.etcd_port), "etcd listens", [etcd], bound)
        api = self._run(binaries["kube-apiserver"], "apiserver", commands.api_server(plan))
        _until(plan.certificate.exists, "the API server has made its certificate", [etcd, api], bound)
        _write_private(plan.kubeconfig, _kubeconfig(plan, token))
        answers = _Asker(plan, token)
        _until(lambda: answers.ok("/readyz"), "the API server is ready", [etcd, api], bound)
        # They would start sooner beside the API server, and then back off and end later.
        manager = self._run(
            binaries["kube-controller-manager"], "controller-manager", commands.controller_manager(plan)
        )
        scheduler = self._run(binaries["kube-scheduler"], "scheduler", commands.scheduler(plan))
        _until(
            lambda: answers.ok("/api/v1/namespaces/default/serviceaccounts/default"),
            "the default service account exists",
            [etcd, api, manager, scheduler],
            bound,
        )

    def _run(self, binary: Path, name: str, arguments: list[str]) -> Process:
        return self.processes.start(name, [str(binary), *arguments])


class _Asker:
    """Asks the API server yes-or-no questions."""

    def __init__(self, plan: Plan, token: str) -> None:
        self._server = plan.server
        self._headers = {"Authorization": f"Bearer {token}"}
        tls = ssl.create_default_context(cadata=plan.certificate.read_text())
        # A proxy of the environment can't reach our own machine.
        self._http = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )

    def ok(self, path: str) -> bool:
        request = urllib.request.Request(self._server + path, headers=self._headers)  # noqa: S310 - https, ours
        try:
            with self._http.open(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _until(holds: Callable[[], bool], what: str, needed: list[Process], bound: float) -> None:
    """Wait until it holds; StartError when time is up or a process that it needs has ended."""
    while not holds():
        if dead := [process for process in needed if not process.alive()]:
            tails = "\n".join(process.tail() for process in dead)
            raise StartError(f"waited until {what}, but {dead[0].name} ended:\n{tails}")
        if time.monotonic() > bound:
            tails = "\n".join(process.tail() for process in needed)
            raise StartError(f"{START_BOUND:.0f} s were not enough until {what}:\n{tails}")
        time.sleep(0.03)


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise StartError("no port between 20000 and 32000 is free on 127.0.0.1")


def _listens(process: Process, port: int) -> bool:
    """Whether this very process does: an answer could come from somebody who was faster at that port."""
    try:
        sockets = psutil.Process(process.pid).net_connections("tcp")
    except psutil.Error:
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr and one.laddr[1] == port for one in sockets)


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _kubeconfig(plan: Plan, token: str) -> str:
    authority = base64.b64encode(plan.certificate.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "bullpen", "cluster": {"server": plan.server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "bullpen", "context": {"cluster": "bullpen", "user": "admin"}}],
        "current-context": "bullpen",
    }
    return json.dumps(config, indent=1)
