"""What tests and specs on a control plane share: one control plane a session, one namespace a test.

With BULLPEN_TEST_KUBECONFIG they run on that cluster instead, whatever it is.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.cluster import start_simulator
from e2e.controlplane.binaries import BuildError, NoBinariesError, find_or_build
from e2e.controlplane.plane import ControlPlane
from e2e.install import install_crds
from e2e.rest import Rest
from tests.support.kubectl import Kubectl


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have the control plane's binaries before the first test: a build takes longer than a test may."""
    needed = any(item.get_closest_marker("cluster") for item in session.items)
    if not needed or session.config.option.collectonly or "BULLPEN_TEST_KUBECONFIG" in os.environ:
        return
    try:
        find_or_build(log=_past_the_capture(session.config))
    except (NoBinariesError, BuildError) as failure:
        pytest.exit(str(failure), returncode=1)


def _past_the_capture(config: pytest.Config) -> Callable[[str], None]:
    """Tell a person something now, while pytest keeps what tests print."""
    capture = config.pluginmanager.getplugin("capturemanager")

    def tell(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(text, flush=True)

    return tell


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The session's control plane, without definitions; stopped by process id, also after a failure."""
    directory = tmp_path_factory.mktemp("control-plane")
    if theirs := os.environ.get("BULLPEN_TEST_KUBECONFIG"):
        plane = ControlPlane.given(Path(theirs), directory)
    else:
        plane = ControlPlane.start(directory)
    with plane:
        yield plane


@pytest.fixture(scope="session")
def kubeconfig(control_plane: ControlPlane) -> Path:
    """Of a cluster that serves Bullpen's and KubeVirt's definitions."""
    install_crds(control_plane.kubeconfig)
    return control_plane.kubeconfig


@pytest.fixture(scope="session")
def simulator(control_plane: ControlPlane, kubeconfig: Path) -> None:
    """Something that runs VMs: the stand-in, or the real KubeVirt where the cluster has one."""
    with Rest(kubeconfig) as api:
        real = api.get("/apis/kubevirt.io/v1/kubevirts")
    if not (real.ok and real.body["items"]):
        start_simulator(control_plane)


@pytest.fixture(scope="session")
def admin(kubeconfig: Path) -> Iterator[Rest]:
    """Requests as the cluster's administrator."""
    with Rest(kubeconfig) as api:
        yield api


@pytest.fixture
def namespace(admin: Rest, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace, named after the test; deleted afterwards, without waiting for it."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))
    name = f"{words[:40].strip('-')}-{secrets.token_hex(3)}"
    made = admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert made.status == 201, made.message
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def kubectl(kubeconfig: Path) -> Kubectl:
    """`kubectl(*arguments, stdin=None)`: what it prints; KubectlError with what it complains about."""
    return Kubectl(kubeconfig)
