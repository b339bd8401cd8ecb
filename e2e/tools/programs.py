"""helm and kind: on PATH, in the cache, or built from the Go modules of `go.mod` beside this file.

It must never fetch a ready-made program.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from e2e.controlplane.gobuild import BuildError, Log, Program, build, only_builder, why_no_go
from e2e.controlplane.progress import Progress

__all__ = ["BuildError", "NoProgramError", "find_or_build"]

MODULE = Path(__file__).parent
CACHE = Path.home() / ".cache" / "bullpen" / "tools"
_PACKAGES = {"helm": "helm.sh/helm/v4/cmd/helm", "kind": "sigs.k8s.io/kind"}
_VERSION_OF_HELM = "helm.sh/helm/v4/internal/version.version"


class NoProgramError(Exception):
    """It is not here and can't be built here; the text says what a person can do."""


def find_or_build(
    name: str, environ: Mapping[str, str] = os.environ, cache: Path = CACHE, log: Log = print
) -> Path:
    """`helm` or `kind`, built into the cache first where there is none (some two minutes, once).

    Raises:
        NoProgramError: there is none and no Go that could build it.
        BuildError: with the compiler's output.
    """
    if on_path := shutil.which(name, path=environ.get("PATH", "")):
        return Path(on_path)
    version = version_of(name)
    folder = cache / f"{name}-{version}"  # another version is another program
    program = folder / name
    if os.access(program, os.X_OK):
        return program
    if why := why_no_go(environ):
        raise NoProgramError(
            f"There is no {name} on this machine, and no Go >= 1.26 to build it ({why}). "
            f"Install Go 1.26 or newer, or put {name} on PATH."
        )
    with only_builder(folder, log):
        if not os.access(program, os.X_OK):  # another builder may have finished while this one waited
            flags = f"-s -w -X {_VERSION_OF_HELM}={version}" if name == "helm" else "-s -w"
            wanted = Program(name, _PACKAGES[name], MODULE, flags)
            build(wanted, folder, environ, Progress(f"building {name} {version} (once)", log))
    return program


def version_of(name: str) -> str:
    """The version that `go.mod` names, "v4.3.2"."""
    module = _PACKAGES[name].removesuffix("/cmd/helm")
    found = re.search(rf"^\s*{re.escape(module)} (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise AssertionError(f"go.mod has no {module}")
    return found[1]
