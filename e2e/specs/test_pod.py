"""The controller runs as the chart's pod does, shown without a kubelet: in a mount namespace of its own.

What a container of the chart has and a process beside the cluster has not: the credentials of the account in
their usual folder, a root file system that is read-only, a user that no file knows, no capability.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from e2e.install import ROOT
from e2e.specs.installation import NAMESPACE, Installation
from e2e.specs.words import full, make_claim, make_pool, wait
from tests.support.kubectl import Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
USER = "65532"
_AS_NOBODY = [
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"),
    *("--bounding-set=-all", "--inh-caps=-all"),
]
_POD = """
set -e
mount -t tmpfs pod /var/run
mkdir -p /var/run/secrets/kubernetes.io
cp -r "$SECRETS" /var/run/secrets/kubernetes.io/serviceaccount
chmod -R a+rX /var/run/secrets
mount -o remount,ro,bind /
exec "$@"
"""


def why_not() -> str:
    """Why a pod can't be imitated here; empty when it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "imitating a pod takes root on Linux"
    if missing := [name for name in ("unshare", "setpriv") if shutil.which(name) is None]:
        return f"imitating a pod takes {' and '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "--mount", *_AS_NOBODY, sys.executable, "-c", "import aiohttp"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no other user may run {sys.executable} here: {tried.stderr}" if tried.returncode else ""


def lay_secrets(installation: Installation, folder: Path) -> str:
    """The files of a pod's account, and the address of the API server."""
    config = json.loads(installation.credentials().read_text())
    [cluster] = [each["cluster"] for each in config["clusters"]]
    folder.mkdir()
    (folder / "token").write_text(config["users"][0]["user"]["token"])
    (folder / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    (folder / "namespace").write_text(NAMESPACE)
    return str(cluster["server"])


def test_the_controller_runs_as_nobody_on_a_read_only_file_system_with_a_pods_credentials(
    kubectl: Kubectl, namespace: str, bullpen: Installation, tmp_path: Path
) -> None:
    if not bullpen.by_hand:
        pytest.skip("the chart's own pods run the controller here")
    if reason := why_not():
        pytest.skip(reason)
    bullpen.stop_controller()
    server = urlsplit(lay_secrets(bullpen, tmp_path / "secrets"))
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SECRETS": str(tmp_path / "secrets"),
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
        **{key: value for key, value in bullpen.environ().items() if key.startswith("BULLPEN_")},
    }
    pod = ["unshare", "--mount", "--propagation=private", "sh", "-c", _POD, "pod", *_AS_NOBODY]
    process = bullpen.cluster.run_beside(
        "pod", [*pod, sys.executable, "-m", "controller"], ready=None, environ=environ
    )
    try:
        make_pool(kubectl, namespace, "ci", warm=1)
        full(kubectl, namespace, "ci", 1)
        make_claim(kubectl, namespace, "job", "ci")
        wait(kubectl, namespace, "vmc/job", "condition=Ready")
        status = Path(f"/proc/{process.pid}/status").read_text().split()
        assert status[status.index("Uid:") + 1] == USER
    finally:
        bullpen.cluster.processes.stop("pod")
    said = process.lines()
    assert any('"event": "stopped"' in line for line in said)
    assert not any('"level": "error"' in line for line in said)
