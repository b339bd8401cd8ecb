"""Uninstalling as `docs/uninstall.md` says: the commands of the page, run as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.install import ROOT
from e2e.specs.installation import CHART, NAMESPACE, RELEASE, HelmError, Installation, helm
from e2e.specs.people import POOLS, Person, settle
from e2e.specs.words import condition, full, make_claim, make_pool, names, vm_of, wait
from e2e.tools.programs import find_or_build
from tests.support.kubectl import Kubectl
from tests.support.site import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("collected")]
PAGE = ROOT / "docs" / "uninstall.md"


def commands(section: str = "Uninstalling") -> list[str]:
    """The shell lines of one section of the page, in order."""
    text = PAGE.read_text().partition(f"# {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


class Shell:
    """A user's shell in a checkout, with kubectl, helm and KUBECONFIG."""

    def __init__(self, kubeconfig: Path, **placeholders: str) -> None:
        here = str(Path(sys.executable).parent)
        path = os.pathsep.join((str(find_or_build("helm").parent), here, os.environ.get("PATH", "")))
        self._environ = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig)}
        self._placeholders = placeholders

    def __call__(self, command: str) -> str:
        for word, value in self._placeholders.items():
            command = re.sub(rf"\b{word}\b", value, command)
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=ROOT,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(kubeconfig: Path, namespace: str) -> Shell:
    return Shell(kubeconfig, NAME="ci", NAMESPACE=namespace)


@pytest.fixture
def released(bullpen: Installation, kubeconfig: Path) -> Iterator[Installation]:
    """What `kubectl apply` installed, taken over by a release of helm's."""
    helm("install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--take-ownership",
         "--force-conflicts", *bullpen.values, kubeconfig=kubeconfig)  # fmt: skip
    yield bullpen
    bullpen.stop_controller()
    if RELEASE in helm("list", "--short", "--namespace", NAMESPACE, kubeconfig=kubeconfig).split():
        helm("uninstall", RELEASE, "--namespace", NAMESPACE, kubeconfig=kubeconfig)


def test_scale_to_0_delete_the_pools_uninstall(
    kubectl: Kubectl, namespace: str, shell: Shell, released: Installation, kubeconfig: Path
) -> None:
    make_pool(kubectl, namespace, "ci", warm=2)
    make_claim(kubectl, namespace, "job", "ci")
    wait(kubectl, namespace, "vmc/job", "condition=Ready")
    full(kubectl, namespace, "ci", 2)
    claimed = vm_of(kubectl, namespace, "job")

    look, scale, delete, uninstall, _ = commands()
    assert {"virtualmachinepool.bullpen.dev/ci", "virtualmachineclaim.bullpen.dev/job"} <= set(
        shell(look).split()
    )
    shell(scale)
    wait(kubectl, namespace, "wp/ci", "jsonpath={.status.total}=1")
    shell(delete)
    assert names(kubectl, namespace, "wp") == set()
    if released.by_hand:
        released.stop_controller()  # as helm stops the pods before it takes their rights
    shell(uninstall)

    assert kubectl("get", "deployment,serviceaccount,role", "-n", NAMESPACE, "-o", "name").split() == [
        "serviceaccount/default"
    ]
    assert f"{NAMESPACE}:{RELEASE}" not in kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert set(released.definitions()) <= names(kubectl, namespace, "crd")
    assert condition(kubectl, namespace, "vmc/job", "Ready")["status"] == "True"
    assert names(kubectl, namespace, "vm") == {claimed}

    kubectl("delete", "vmc/job", "-n", namespace)
    wait(kubectl, namespace, f"vm/{claimed}", "delete")

    with pytest.raises(HelmError, match="ownership"):
        helm(
            "install",
            "other",
            str(CHART),
            "--namespace",
            namespace,
            "--set",
            "replicas=0",
            kubeconfig=kubeconfig,
        )
    helm("install", RELEASE, str(CHART), "--namespace", NAMESPACE, *released.values, kubeconfig=kubeconfig)
    released.start_controller()
    make_pool(kubectl, namespace, "again", warm=1)
    full(kubectl, namespace, "again", 1)


def test_what_kubectl_applied_is_taken_away_by_kubectl(
    kubectl: Kubectl, namespace: str, shell: Shell, bullpen: Installation
) -> None:
    make_pool(kubectl, namespace, "ci", warm=1)
    full(kubectl, namespace, "ci", 1)
    _, scale, delete, _, uninstall = commands()
    shell(scale)
    shell(delete)
    bullpen.stop_controller()
    shell(uninstall.replace("--set", f"{' '.join(bullpen.values)} --set"))
    assert kubectl("get", "deployment,role", "-n", NAMESPACE, "-o", "name") == ""
    assert set(bullpen.definitions()) <= names(kubectl, namespace, "crd")


@pytest.fixture
def owner(kubectl: Kubectl, namespace: str, tmp_path: Path) -> Iterator[Person]:
    """The namespace's administrator."""
    with settle(kubectl, namespace, "owner", ["admin"], tmp_path) as person:
        yield person


def test_a_namespaces_administrator_takes_the_finalizer_off_once_no_controller_runs(
    kubectl: Kubectl, namespace: str, bullpen: Installation, owner: Person
) -> None:
    make_pool(kubectl, namespace, "ci", warm=1)
    full(kubectl, namespace, "ci", 1)
    until("aggregated", lambda: owner.get(POOLS, "ci").status, lambda status: status == 200)
    freed = {"metadata": {"finalizers": None}}
    assert owner.patch(POOLS, "ci", freed).status == 403
    kept = owner.delete(POOLS, "ci", "Orphan")
    assert (kept.status, "takes the right to delete VMs" in kept.message) == (403, True)
    bullpen.leave(namespace, "ci")
    assert owner.delete(POOLS, "ci").ok
    assert owner.patch(POOLS, "ci", freed).ok
    wait(kubectl, namespace, "wp/ci", "delete")


def test_the_page_says_what_the_pool_says(
    kubectl: Kubectl, namespace: str, shell: Shell, bullpen: Installation
) -> None:
    make_pool(kubectl, namespace, "ci", warm=1)
    full(kubectl, namespace, "ci", 1)
    bullpen.leave(namespace, "ci")
    message = condition(kubectl, namespace, "wp/ci", "Ready")["message"]
    told = re.findall(r"`(kubectl .*?)`", message)
    written = commands("A pool deleted while no controller runs")
    assert [re.sub(r"\bNAME\b", "ci", line).replace("NAMESPACE", namespace) for line in written] == told
    for command in written:
        shell(command)
    wait(kubectl, namespace, "wp/ci", "delete")
