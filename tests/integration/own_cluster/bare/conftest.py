"""A control plane that begins with no definitions at all: tests install and remove them as people do.

What knows the cluster is repeated: a session's fixture of the folder above keeps its first value otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.controlplane.plane import ControlPlane
from e2e.rest import Rest
from tests.support.kubectl import Kubectl


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane.start(tmp_path_factory.mktemp("bare") / "plane") as running:
        yield running


@pytest.fixture(scope="session")
def kubeconfig(plane: ControlPlane) -> Path:
    return plane.kubeconfig


@pytest.fixture(scope="session")
def admin(kubeconfig: Path) -> Iterator[Rest]:
    with Rest(kubeconfig) as api:
        yield api


@pytest.fixture(scope="session")
def kubectl(kubeconfig: Path) -> Kubectl:
    return Kubectl(kubeconfig)
