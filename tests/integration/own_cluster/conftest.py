"""A control plane for tests that no other may share: they stop controllers and change definitions.

Everything that knows the cluster is overridden here; a session's fixture keeps its first value otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.cluster import start_simulator
from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from e2e.rest import Rest
from tests.support.controller import Controller, running_controller
from tests.support.kubectl import Kubectl

Start = Callable[..., Controller]


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of these tests' own, with the stand-in."""
    with ControlPlane.start(tmp_path_factory.mktemp("own") / "plane") as running:
        install_crds(running.kubeconfig)
        start_simulator(running)
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


@pytest.fixture
def start(kubeconfig: Path, tmp_path: Path, namespace: str) -> Iterator[Start]:
    """`start()`: one more controller on the test's own Lease; `start(wait=False)` for one that will wait.

    `resync_interval="5s"` and the like are its settings, `account` a kubeconfig of its own. Its lease is
    long where nobody has to outlive it: a machine that stands still for a while must not end it.
    """
    with ExitStack() as running:

        def one_more(*, wait: bool = True, account: Path = kubeconfig, **settings: str) -> Controller:
            lease = f"lease-of-{namespace}"
            settings = {"lease_duration": "30s", **settings}
            return running.enter_context(
                running_controller(account, tmp_path, lease=lease, wait=wait, **settings)
            )

        yield one_more
