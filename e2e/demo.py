"""`make demo`: a pool fills, ten claims are served, one is given back, and it stays to play with.

Every step is a command that a user would type, and is shown as such. It must never end a process that it did
not start; `make demo-down` ends all that it did.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from crds.durations import seconds
from e2e.cluster import running_cluster, start_cluster, stop_cluster
from e2e.controlplane.binaries import BuildError, NoBinariesError
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.processes import StartError
from e2e.install import ROOT, InstallError

STATE = ROOT / ".state" / "demo"
BOOTS = ("--boot", "3s..8s")
POOL, CLAIMS = "runners", 10
PATIENCE = 120.0  # s for each step
NEXT = """\
[bold]It is all yours. In a shell in this folder:[/bold]

  export KUBECONFIG={kubeconfig}
  export PATH=$PWD/.venv/bin:$PATH           # kubectl

  kubectl get wp,vmc,vm                      # pools, claims, VMs
  kubectl describe vmc job-7
  kubectl scale wp/runners --replicas=8      # keep more of them warm
  kubectl apply -f examples/claim.yaml       # one more claim: mine
  kubectl wait --for=condition=Ready vmc/mine
  kubectl delete vmc mine                    # its VM goes, the pool stays full
  kubectl explain wp.spec.warm

  make demo-down                             # stop and remove everything
"""


class Demo:
    """The story, told step by step on one cluster."""

    def __init__(self, cluster: ControlPlane, console: Console) -> None:
        self._cluster = cluster
        self._console = console

    def tell(self) -> None:
        """All of it. Raises TimeoutError or CalledProcessError when a step does not come out."""
        self._fill()
        self._claim()
        self._table()
        self._give_back()

    def _fill(self) -> None:
        self._say("A pool that keeps five booted VMs")
        self._kubectl("apply", "-f", "examples/pool.yaml")
        began = time.monotonic()
        with self._console.status("") as line:
            self._until(lambda: self._warm(line.update) >= self._target(), "the pool to fill")
        self._console.print(f"  full after {time.monotonic() - began:.1f} s")
        self._kubectl("get", "wp")

    def _claim(self) -> None:
        self._say("Ten claims at once: five VMs are warm, five more are ordered by the claims that wait")
        self._kubectl("apply", "-f", "examples/ten-claims.yaml", quiet=True)
        self._kubectl(
            "wait", "--for=condition=Ready", "vmc", "--all", f"--timeout={PATIENCE:.0f}s", quiet=True
        )
        self._kubectl("get", "vmc")

    def _table(self) -> None:
        self._say("What a hand-over takes, beside what a boot takes")
        table = Table("CLAIM", "VM", "HAND-OVER", "ITS BOOT", "")
        for claim in sorted(self._items("vmc"), key=lambda each: seconds(each["status"]["waited"])):
            status = claim["status"]
            [vm] = status["virtualMachines"]
            waited = seconds(status["waited"])
            how = "[green]was warm[/green]" if waited < 1 else "[yellow]waited for a boot[/yellow]"
            table.add_row(
                claim["metadata"]["name"], vm["name"], status["waited"], self._boot(vm["name"]), how
            )
        self._console.print(table)

    def _give_back(self) -> None:
        self._say("A claim is deleted: its VM is destroyed, and the pool stays full")
        first = self._items("vmc")[0]
        name, vm = first["metadata"]["name"], first["status"]["virtualMachines"][0]["name"]
        self._kubectl("delete", "vmc", name)
        self._kubectl("wait", "--for=delete", f"vm/{vm}", f"--timeout={PATIENCE:.0f}s", quiet=True)
        self._console.print(f"  {vm} is gone")
        with self._console.status("") as line:  # the pool's status is written once a second at most
            self._until(
                lambda: self._warm(line.update) >= self._target() and self._claimed() == CLAIMS - 1,
                "the pool to be full, with one VM less claimed",
            )
        self._kubectl("get", "wp")

    # ---- inside

    def _say(self, words: str) -> None:
        self._console.print(f"\n[bold cyan]{words}[/bold cyan]", soft_wrap=True)

    def _kubectl(self, *arguments: str, quiet: bool = False) -> None:
        self._console.print(f"[dim]$ kubectl {' '.join(arguments)}[/dim]", highlight=False, soft_wrap=True)
        printed = self._ask(*arguments)
        if not quiet:
            self._console.print(printed.rstrip(), highlight=False, markup=False, soft_wrap=True)

    def _ask(self, *arguments: str) -> str:
        kubectl = Path(sys.executable).with_name("kubectl")
        command = [str(kubectl), "--kubeconfig", str(self._cluster.kubeconfig), *arguments]
        return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout

    def _items(self, kind: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self._ask("get", kind, "-o", "json"))["items"]
        return items

    def _pool(self) -> dict[str, Any]:
        pool: dict[str, Any] = json.loads(self._ask("get", "wp", POOL, "-o", "json"))
        return pool

    def _target(self) -> int:
        target: int = self._pool()["spec"]["warm"]["replicas"]
        return target

    def _warm(self, show: Callable[[str], None]) -> int:
        pool = self._pool()
        counts = pool.get("status", {}).get("instances", {})
        warm: int = pool.get("status", {}).get("warm", {}).get("ready", 0)
        show(f"{warm} warm, {counts.get('provisioning', 0)} booting")
        return warm

    def _claimed(self) -> int:
        claimed: int = self._pool()["status"]["instances"]["claimed"]
        return claimed

    def _boot(self, vm: str) -> str:
        """From a VM's creation to its guest being ready; Kubernetes keeps whole seconds of both."""
        machine = json.loads(self._ask("get", "vmi", vm, "-o", "json"))
        made = json.loads(self._ask("get", "vm", vm, "-o", "json"))["metadata"]["creationTimestamp"]
        ready = next(each for each in machine["status"]["conditions"] if each["type"] == "Ready")
        if "lastTransitionTime" not in ready:
            return "?"
        took = datetime.fromisoformat(ready["lastTransitionTime"]) - datetime.fromisoformat(made)
        return f"{took.total_seconds():.0f}s"

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}; see {STATE}/logs/controller.log")
            time.sleep(0.2)


def start_controller(cluster: ControlPlane) -> None:
    """The controller as a process of its own, as `python -m controller` runs it."""
    environ = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "BULLPEN_LEASE_NAMESPACE": "default",
        "BULLPEN_LISTEN": "127.0.0.1:0",
    }
    cluster.run_beside("controller", [sys.executable, "-m", "controller"], ready=None, environ=environ)


def up(console: Console) -> int:
    if found := running_cluster(STATE):
        console.print("The demo runs already.")
        console.print(NEXT.format(kubeconfig=found.kubeconfig), highlight=False)
        return 0
    began = time.monotonic()
    console.print(
        "[bold cyan]A Kubernetes control plane, the CRDs, a KubeVirt stand-in and Bullpen[/bold cyan]"
    )
    cluster = start_cluster(
        STATE, simulator_arguments=BOOTS, log=lambda line: console.print(f"  {line}", soft_wrap=True)
    )
    try:
        start_controller(cluster)
        console.print(
            f"  {', '.join(cluster.pids)} run after {time.monotonic() - began:.1f} s", soft_wrap=True
        )
        Demo(cluster, console).tell()
    except subprocess.CalledProcessError as failure:
        console.print(f"[red]{' '.join(failure.cmd)} failed[/red]; logs are in {STATE}/logs")
        return 1
    console.print()
    console.print(NEXT.format(kubeconfig=cluster.kubeconfig), highlight=False)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.demo", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("up", "down"))
    chosen = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        if chosen.command == "up":
            return up(console)
        console.print("The demo is stopped." if stop_cluster(STATE) else "No demo is running.")
    except KeyboardInterrupt:
        stop_cluster(STATE)
        console.print("\nInterrupted: the demo is stopped, and nothing of it is left.", style="red")
        return 130
    except (NoBinariesError, BuildError, StartError, InstallError, TimeoutError) as failure:
        console.print(str(failure), style="red")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
