"""`make e2e-kind`: the specs on a kind cluster that is made for them and removed afterwards in any case.

The chart's Deployment runs the controller there, from an image that is built here; VMs are run by KubeVirt
with software emulation, or by the stand-in. It needs a container engine and, for KubeVirt, the network.
It must never touch a cluster that it did not make, nor the user's kubeconfig.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from e2e.install import ROOT
from e2e.kind.engine import NO_ENGINE, Engine, NoEngineError, find
from e2e.tools.programs import BuildError, NoProgramError, find_or_build
from tests.support.kubectl import Kubectl, KubectlError

# The release whose writes the stand-in was made after.
KUBEVIRT = "v1.9.0"
_RELEASES = "https://github.com/kubevirt/kubevirt/releases/download"
_EMULATION = '{"spec":{"configuration":{"developerConfiguration":{"useEmulation":true}}}}'
# With a host part, engines that would add one of their own leave it as it is.
IMAGE = "localhost/bullpen:e2e"
CLUSTER = Path(__file__).with_name("cluster.yaml")
LOGS = ROOT / ".state" / "kind-logs"
SPECS = (sys.executable, "-m", "pytest", "e2e/specs")


class Stopped(BaseException):
    """SIGTERM came: the cluster is to be removed all the same."""


@dataclass(frozen=True)
class Kind:
    """The program, and the kind of containers that it is to make."""

    program: Path
    engine: Engine
    environ: Mapping[str, str]

    def __call__(self, *arguments: str) -> None:
        """Raises CalledProcessError."""
        environ = {**self.environ, "KIND_EXPERIMENTAL_PROVIDER": self.engine.name}
        subprocess.run([str(self.program), *arguments], env=environ, check=True)

    @contextmanager
    def cluster(self, name: str, kubeconfig: Path) -> Iterator[None]:
        """A cluster for as long as the block runs; the logs of its node are kept when the block fails."""
        try:
            create = ["--config", str(CLUSTER), "--kubeconfig", str(kubeconfig), "--wait", "180s"]
            self("create", "cluster", "--name", name, *create)
            try:
                yield
            except (subprocess.CalledProcessError, KubectlError):
                with suppress(subprocess.CalledProcessError):  # what went wrong first is what counts
                    self("export", "logs", str(LOGS), "--name", name)
                raise
        finally:
            self("delete", "cluster", "--name", name, "--kubeconfig", str(kubeconfig))


def install_kubevirt(kubectl: Kubectl, version: str) -> None:
    """KubeVirt by its release's manifests, with software emulation. Raises KubectlError."""
    kubectl("apply", "-f", f"{_RELEASES}/{version}/kubevirt-operator.yaml", seconds=120)
    kubectl("wait", "--for=condition=Established", "crd/kubevirts.kubevirt.io", "--timeout=60s", seconds=70)
    kubectl("apply", "-f", f"{_RELEASES}/{version}/kubevirt-cr.yaml", seconds=120)
    kubectl("-n", "kubevirt", "patch", "kubevirt/kubevirt", "--type=merge", "--patch", _EMULATION)
    available = ["wait", "kubevirt/kubevirt", "--for=condition=Available", "--timeout=20m"]
    kubectl("-n", "kubevirt", *available, seconds=1260)


def run(kind: Kind, *, kubevirt: str | None, specs: Sequence[str] = SPECS) -> None:
    """Image, cluster, KubeVirt (if a version is given), specs; the cluster is removed always.

    Raises:
        CalledProcessError, KubectlError: what went wrong first.
    """
    kind.engine.build(IMAGE)
    name = f"bullpen-e2e-{secrets.token_hex(3)}"
    with tempfile.TemporaryDirectory(prefix="bullpen-kind-") as folder:
        kubeconfig, archive = Path(folder) / "kubeconfig", Path(folder) / "image.tar"
        with kind.cluster(name, kubeconfig):
            kind.engine.save(IMAGE, archive)
            kind("load", "image-archive", str(archive), "--name", name)
            if kubevirt:
                print(f"installing KubeVirt {kubevirt} with software emulation (minutes)", flush=True)
                install_kubevirt(Kubectl(kubeconfig), kubevirt)
            given = {
                "BULLPEN_TEST_KUBECONFIG": str(kubeconfig),
                "BULLPEN_E2E_KUBECONFIG": str(kubeconfig),
                "BULLPEN_E2E_IMAGE": IMAGE,
            }
            subprocess.run(specs, cwd=ROOT, env={**kind.environ, **given}, check=True)


def main(arguments: Sequence[str] | None = None, *, specs: Sequence[str] = SPECS) -> int:
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    try:
        engine = find()
        kind = Kind(find_or_build("kind"), engine, os.environ)
        run(kind, kubevirt=None if chosen.stand_in else chosen.kubevirt, specs=specs)
    except NoEngineError as failure:
        print(failure, file=sys.stderr)
        return NO_ENGINE
    except (NoProgramError, BuildError, KubectlError, subprocess.CalledProcessError) as failure:
        print(failure, file=sys.stderr)
        return 1
    except (Stopped, KeyboardInterrupt):
        return 130
    return 0


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.kind.run", description=__doc__.splitlines()[0])
    parser.add_argument("--stand-in", action="store_true", help="no KubeVirt: the stand-in plays the VMs")
    parser.add_argument("--kubevirt", default=KUBEVIRT, metavar="VERSION", help=f"default: {KUBEVIRT}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
