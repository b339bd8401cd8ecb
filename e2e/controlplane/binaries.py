"""Where the binaries of the local control plane come from.

Found in KUBEBUILDER_ASSETS, in the cache or on PATH, in this order, and built from the Go modules of
`go.mod` beside this file otherwise. A place counts only when it holds all four, so that an API server of
one version never runs with the controller manager of another.
It must never fetch ready-made binaries, nor write anywhere but into the cache.
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
from pathlib import Path

from e2e.controlplane.processes import die_with
from e2e.controlplane.progress import Progress

Log = Callable[[str], None]

VERSION = "v1.36.3"
GO_AT_LEAST = (1, 26)
MODULE = Path(__file__).parent
CACHE = Path.home() / ".cache" / "bullpen" / "control-plane" / VERSION
# The largest first: what it compiles, the others use again.
PACKAGES = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "etcd": "go.etcd.io/etcd/server/v3",
}
_SCRATCH = ".building-"
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


class BuildError(Exception):
    """The compiler refused or was not able to; the text ends with its own output."""


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
    cache.mkdir(parents=True, exist_ok=True)
    with _only_builder(cache, log):
        # Another builder may have finished while this one waited, or been stopped half way.
        missing = _missing(cache)
        if missing:
            log(f"Building Kubernetes {VERSION} once into {cache}: {', '.join(missing)} (some minutes)")
        for number, name in enumerate(missing, start=1):
            _build(name, cache, environ, Progress(f"building {name} ({number} of {len(missing)})", log))
    return _of(cache)


def _missing(folder: Path) -> list[str]:
    return [name for name in PACKAGES if not os.access(folder / name, os.X_OK)]


def _of(folder: Path) -> dict[str, Path]:
    return {name: folder / name for name in PACKAGES}


def _require_go(environ: Mapping[str, str]) -> None:
    """Raise unless the stock Go is new enough; it is never asked to fetch another one."""
    go = shutil.which("go", path=environ.get("PATH", ""))
    if go is None:
        raise NoBinariesError(WAYS_OUT.format(why="there is no `go` on PATH"))
    said = subprocess.run(
        [go, "version"], env={**environ, "GOTOOLCHAIN": "local"}, capture_output=True, text=True, check=False
    )
    version = re.search(r"\bgo(\d+)\.(\d+)", said.stdout)
    if version is None or (int(version[1]), int(version[2])) < GO_AT_LEAST:
        raise NoBinariesError(
            WAYS_OUT.format(why=f"`go version` says {(said.stdout or said.stderr).strip()!r}")
        )


@contextmanager
def _only_builder(cache: Path, log: Log) -> Iterator[None]:
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log("another process is building the same binaries; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{_SCRATCH}*"):  # by a builder that was killed: the lock says it is gone
            shutil.rmtree(left)
        yield


def _build(name: str, cache: Path, environ: Mapping[str, str], progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache) as scratch:
        built = Path(scratch) / name
        output = Path(scratch) / "output"
        command = ["go", "build", "-trimpath", "-ldflags", LINKER_FLAGS, "-o", str(built), PACKAGES[name]]
        settings = {**environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOWORK": "off"}
        with output.open("w") as sink, progress:
            code = _run(command, settings, sink.fileno(), progress)
            if code != 0:
                raise BuildError(f"building {name} failed:\n{output.read_text()[-4000:]}")
        built.rename(cache / name)


def _run(command: list[str], environ: Mapping[str, str], output: int, progress: Progress) -> int:
    """Run it in a group of its own, so that an interrupted build leaves no compiler behind."""
    go = subprocess.Popen(
        command,
        cwd=MODULE,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - prctl alone: nothing that a thread could hold
    )
    try:
        while True:
            try:
                return go.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                progress.tick()
    finally:
        if go.poll() is None:
            os.killpg(go.pid, signal.SIGTERM)
            go.wait()
