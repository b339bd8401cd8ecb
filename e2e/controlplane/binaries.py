"""Where the binaries of the local control plane come from.

Found in KUBEBUILDER_ASSETS, in the cache or on PATH, in this order, and built from the Go modules of
`go.mod` beside this file otherwise. A place counts only when it holds all four, so that an API server of
one version never runs with the controller manager of another.
It must never fetch ready-made binaries, nor write anywhere but into the cache.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from e2e.controlplane.gobuild import BuildError, Log, Program, build, only_builder, why_no_go
from e2e.controlplane.progress import Progress

__all__ = ["BuildError", "NoBinariesError", "find", "find_or_build"]

VERSION = "v1.36.3"
MODULE = Path(__file__).parent
CACHE = Path.home() / ".cache" / "bullpen" / "control-plane" / VERSION
# The largest first: what it compiles, the others use again.
PACKAGES = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "etcd": "go.etcd.io/etcd/server/v3",
}
_COMPONENT = "k8s.io/component-base/version"
LINKER_FLAGS = (
    f"-s -w -X {_COMPONENT}.gitVersion={VERSION} -X {_COMPONENT}.gitMajor=1 -X {_COMPONENT}.gitMinor=36"
)
WAYS_OUT = f"""\
There are no binaries of a control plane on this machine, and no Go >= 1.26 to build them ({{why}}).
One of these helps:
  - install Go 1.26 or newer and run this again (it builds them once, some 6 minutes on two cores);
  - set KUBEBUILDER_ASSETS to a folder that holds {", ".join(PACKAGES)};
  - put these four on PATH;
  - use a cluster of your own: make e2e KUBECONFIG=its kubeconfig, or for the other tests
    BULLPEN_TEST_KUBECONFIG=its kubeconfig make test.
"""


class NoBinariesError(Exception):
    """There are none, and they can't be built here; the text says what a person can do."""


def find(environ: Mapping[str, str], cache: Path = CACHE, log: Log = print) -> dict[str, Path] | None:
    """The four binaries by name from the first place that holds them all, None without such a place."""
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        if not (missing := _missing(Path(assets))):
            return _of(Path(assets))
        log(f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(missing)}; looking elsewhere")
    if not _missing(cache):
        return _of(cache)
    on_path = {name: shutil.which(name, path=environ.get("PATH", "")) for name in PACKAGES}
    if all(on_path.values()):
        return {name: Path(path) for name, path in on_path.items() if path}
    return None


def find_or_build(
    environ: Mapping[str, str] = os.environ, cache: Path = CACHE, log: Log = print
) -> dict[str, Path]:
    """The four binaries by name, built into the cache first where there are none (minutes, once).

    Raises:
        NoBinariesError: there are none and no Go that could build them.
        BuildError: with the compiler's output.
    """
    if found := find(environ, cache, log):
        return found
    _require_go(environ)
    with only_builder(cache, log):
        # Another builder may have finished while this one waited, or been stopped half way.
        missing = _missing(cache)
        if missing:
            log(f"Building Kubernetes {VERSION} once into {cache}: {', '.join(missing)} (some minutes)")
        for number, name in enumerate(missing, start=1):
            program = Program(name, PACKAGES[name], MODULE, LINKER_FLAGS)
            build(program, cache, environ, Progress(f"building {name} ({number} of {len(missing)})", log))
    return _of(cache)


def _missing(folder: Path) -> list[str]:
    return [name for name in PACKAGES if not os.access(folder / name, os.X_OK)]


def _of(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in PACKAGES}


def _require_go(environ: Mapping[str, str]) -> None:
    if why := why_no_go(environ):
        raise NoBinariesError(WAYS_OUT.format(why=why))
