"""`make cluster`: a control plane, the definitions and the KubeVirt stand-in, without the controller.

What it starts outlives it and is ended by `make cluster-down`, or by `stop_cluster` for whoever started it
as a library (the demo does).
It must never end a process that it did not start.
"""

from __future__ import annotations

import argparse
import fcntl
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from e2e.controlplane.binaries import BuildError, NoBinariesError
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.processes import StartError
from e2e.install import ROOT, InstallError, install_crds

Log = Callable[[str], None]

STATE = ROOT / ".state" / "cluster"
WHAT_NEXT = """\
  export KUBECONFIG={kubeconfig}
Next:
  .venv/bin/kubectl get crds
  .venv/bin/python -m controller        # the controller, by hand
  make cluster-down                     # stop everything that this started"""


def start_cluster(
    state: Path,
    *,
    simulator: bool = True,
    vm_crd: Path | None = None,
    simulator_arguments: Sequence[str] = (),
    log: Log = print,
) -> ControlPlane:
    """Start a cluster that outlives this process, or return the whole one that runs in this folder.

    Raises:
        NoBinariesError, BuildError, StartError, InstallError: a text for a person; nothing is left running.
    """
    with _alone(state):
        if whole := running_cluster(state):
            return whole
        if remains := ControlPlane.load(state):
            dead = ", ".join(process.name for process in remains.processes.dead())
            log(f"An earlier cluster has lost {dead}; starting anew")
            remains.stop()
        cluster = ControlPlane.start(state, survive=True, log=log)
        try:
            install_crds(cluster.kubeconfig, vm_crd, kubevirt=simulator)
            if simulator:
                start_simulator(cluster, simulator_arguments)
        except BaseException:
            cluster.stop()
            raise
        return cluster


def start_simulator(cluster: ControlPlane, arguments: Sequence[str] = ()) -> None:
    """Start the KubeVirt stand-in beside the control plane and return when it has synced."""
    command = [sys.executable, "-m", "simulator", "kubevirt", "--kubeconfig", str(cluster.kubeconfig)]
    cluster.run_beside("simulator", [*command, *arguments], ready="ready")


def running_cluster(state: Path) -> ControlPlane | None:
    """The cluster in this folder, None unless all of it is alive."""
    found = ControlPlane.load(state)
    return found if found and not found.processes.dead() else None


def stop_cluster(state: Path) -> bool:
    """End what `start_cluster` started there and remove the folder; False when there was nothing."""
    with _alone(state):
        found = ControlPlane.load(state)
        if found:
            found.stop()
        shutil.rmtree(state, ignore_errors=True)
        return found is not None


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Two commands on one folder take turns."""
    state.parent.mkdir(parents=True, exist_ok=True)
    with state.with_name(f"{state.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    state: Path = chosen.state
    try:
        if chosen.command == "up":
            return _up(state, simulator=chosen.simulator == "1", vm_crd=chosen.vm_crd)
        return _down(state) if chosen.command == "down" else _status(state)
    except (NoBinariesError, BuildError, StartError, InstallError, TimeoutError) as failure:
        print(failure, file=sys.stderr)
        return 1


def _up(state: Path, *, simulator: bool, vm_crd: Path | None) -> int:
    if found := running_cluster(state):
        print(f"The cluster runs already ({', '.join(found.pids)}).")
    else:
        began = time.monotonic()
        found = start_cluster(state, simulator=simulator, vm_crd=vm_crd)
        print(f"Started {', '.join(found.pids)} in {time.monotonic() - began:.1f} s.")
    print(WHAT_NEXT.format(kubeconfig=found.kubeconfig))
    return 0


def _down(state: Path) -> int:
    print("The cluster is stopped." if stop_cluster(state) else "No cluster is running.")
    return 0


def _status(state: Path) -> int:
    """Say what runs; 0 only for a whole cluster."""
    found = ControlPlane.load(state)
    if found is None:
        print("No cluster is running.")
        return 1
    for process in found.processes.started:
        print(
            f"{process.name:20}{'running' if process.alive() else 'ended'}, pid {process.pid}, {process.log}"
        )
    return 1 if found.processes.dead() else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, default=STATE, help="folder that the cluster lives in")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start it")
    up.add_argument("--simulator", choices=("0", "1"), default="1", help="0 leaves the KubeVirt stand-in out")
    up.add_argument(
        "--vm-crd", type=Path, metavar="FILE", help="KubeVirt's own definitions, for the reduced ones"
    )
    commands.add_parser("down", help="stop it")
    commands.add_parser("status", help="say what of it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
