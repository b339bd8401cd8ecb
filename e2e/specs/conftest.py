"""What the specs stand on: Bullpen, installed by its chart into a cluster that had none.

They have a control plane of their own, a guarded one, whose only controller is the installed one. On another
cluster (BULLPEN_E2E_KUBECONFIG; `make e2e KUBECONFIG=file`) they run unchanged, and with BULLPEN_E2E_IMAGE
the chart's Deployment runs the controller there; afterwards the definitions stay. The fixtures have the names
of `tests/support/fixtures.py`, so that what is built on those (`namespace`, `auditor`) works here too.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from e2e.cluster import start_simulator
from e2e.controlplane.plane import ControlPlane
from e2e.install import REDUCED_KUBEVIRT
from e2e.rest import Rest
from e2e.specs.installation import NAMESPACE, Installation, credentials
from e2e.specs.words import TEMPLATE, wait
from e2e.tools.programs import BuildError, NoProgramError, find_or_build
from tests.support.auditing import AuditorThread
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.manifests import apply, claim_manifest

_GIVEN = "BULLPEN_E2E_KUBECONFIG"
_STAND_IN = "kubevirt-stand-in"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have helm before the first spec: its build takes longer than a spec may."""
    if session.config.option.collectonly or not any("e2e/specs/" in item.nodeid for item in session.items):
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            find_or_build("helm")
    except NoProgramError:
        return  # `has_helm` skips each spec, and says why
    except BuildError as failure:
        pytest.exit(str(failure), returncode=1)


@pytest.fixture(scope="session", autouse=True)
def has_helm() -> None:
    """The chart is rendered in every spec."""
    try:
        find_or_build("helm")
    except NoProgramError as failure:
        pytest.skip(str(failure))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("e2e")
    given = os.environ.get(_GIVEN)
    with (
        ControlPlane.given(Path(given), directory)
        if given
        else ControlPlane.start(directory, guarded=True) as plane
    ):
        yield plane


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    return Kubectl(control_plane.kubeconfig)


@pytest.fixture(scope="session")
def simulator(
    control_plane: ControlPlane, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Something that runs VMs: the cluster's KubeVirt, or the stand-in where it has none (nor a stand-in).

    The stand-in may do everything, but as an account like any other: admission policies are for it too.
    """
    with suppress(KubectlError):
        kubectl("get", "kubevirts", "--all-namespaces")
        return
    nodes = kubectl("get", "nodes", "--selector=simulator.bullpen.dev/node", "--no-headers").splitlines()
    if any(line.split()[1] == "Ready" for line in nodes):
        return
    kubectl("apply", "-f", str(REDUCED_KUBEVIRT))
    kubectl("wait", "--for=condition=Established", "-f", str(REDUCED_KUBEVIRT))
    kubectl("create", "namespace", _STAND_IN)
    kubectl("create", "serviceaccount", _STAND_IN, "-n", _STAND_IN)
    subject = f"--serviceaccount={_STAND_IN}:{_STAND_IN}"
    kubectl("create", "clusterrolebinding", _STAND_IN, "--clusterrole=cluster-admin", subject)
    kubeconfig = credentials(kubectl, _STAND_IN, _STAND_IN, tmp_path_factory.mktemp("stand-in"))
    start_simulator(control_plane, ["--kubeconfig", str(kubeconfig)])


@pytest.fixture(scope="session")
def installation(
    control_plane: ControlPlane,
    kubectl: Kubectl,
    simulator: None,  # noqa: ARG001 - the controller watches VMs
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    """The session's; a spec may stop its controller or remove it: `bullpen` puts it back."""
    image = os.environ.get("BULLPEN_E2E_IMAGE", "")
    installed = Installation(control_plane, tmp_path_factory.mktemp("installation"), image)
    installed.refuse_another()
    installed.ensure()
    yield installed
    if _GIVEN in os.environ:
        with suppress(KubectlError):  # pools of the specs' namespaces, which need the controller to go
            kubectl("wait", "--for=delete", "wp", "--all", "--all-namespaces", "--timeout=60s", seconds=70)
        installed.remove()
        kubectl("delete", "namespace", NAMESPACE, seconds=120)
    else:
        installed.stop_controller()


@pytest.fixture(scope="session")
def collected(kubectl: Kubectl, installation: Installation) -> None:  # noqa: ARG001 - its definitions
    """The garbage collector knows the kinds by now; it ignores new ones for up to half a minute.

    Until then a claim that is orphaned would lose its VM: the collector has not seen that there is one.
    """
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": str(uuid.uuid4())}
    meta = {"name": "left-behind", "ownerReferences": [nobody]}
    halted = {"spec": {**TEMPLATE["spec"], "runStrategy": "Halted"}}
    vm = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta, **halted}
    apply(kubectl, "default", claim_manifest("left-behind") | {"metadata": meta}, vm)
    for kind in ("vmc", "vm"):
        wait(kubectl, "default", f"{kind}/left-behind", "delete")


@pytest.fixture(scope="session")
def kubeconfig(control_plane: ControlPlane, installation: Installation) -> Path:  # noqa: ARG001 - in this order
    return control_plane.kubeconfig


@pytest.fixture(scope="session")
def admin(kubeconfig: Path) -> Iterator[Rest]:
    with Rest(kubeconfig) as api:
        yield api


@pytest.fixture
def bullpen(
    installation: Installation,
    auditor: AuditorThread,  # noqa: ARG001 - no invariant is broken in any spec
) -> Installation:
    """Installed and at work, with the auditor watching the spec's namespace."""
    installation.ensure()
    return installation
