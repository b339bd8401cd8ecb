"""Bullpen as its users install it: by the chart, with a controller that has the chart's rights and no others.

On a cluster without kubelets the controller is a process beside it, started with the credentials and the
environment that the chart gives its pods; where an image is given, the chart's Deployment runs it.
It must never give the controller a right that the chart does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from e2e.controlplane.plane import ControlPlane
from e2e.install import ROOT
from e2e.specs.words import condition, wait
from e2e.tools.programs import find_or_build
from tests.support.kubectl import Kubectl
from tests.support.ports import free_port

CHART = ROOT / "charts" / "bullpen"
RELEASE = "bullpen"
NAMESPACE = "bullpen-system"
_PROCESS = "controller"
_PATIENCE = 300.0  # seconds until an image is there and the controller has listed everything


class HelmError(Exception):
    """Helm refused; the text is what it wrote to standard error."""


def helm(*arguments: str, kubeconfig: Path | None = None) -> str:
    """What helm prints to standard output."""
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig or os.devnull)}
    command = [str(find_or_build("helm")), *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise HelmError(done.stderr)
    return done.stdout


def rendered(*arguments: str, namespace: str = NAMESPACE, release: str = RELEASE) -> str:
    """The chart's manifests; the arguments are helm's."""
    return helm("template", release, str(CHART), "--namespace", namespace, *arguments)


def objects(manifests: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(manifests) if each]


def one(manifests: str, kind: str) -> dict[str, Any]:
    """The only object of a kind."""
    [found] = [each for each in objects(manifests) if each["kind"] == kind]
    return found


def credentials(kubectl: Kubectl, namespace: str, account: str, directory: Path) -> Path:
    """A kubeconfig of a service account, with a token for two hours."""
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
    token = kubectl("create", "token", account, "-n", namespace, "--duration=2h").strip()
    config["users"] = [{"name": account, "user": {"token": token}}]
    for context in config["contexts"]:
        context["context"]["user"] = account
    path = directory / f"{account}-kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


class Installation:
    """The chart in its namespace of one cluster; `image` is what its Deployment runs, if anything runs it.

    `given` are arguments for helm, on top of what has to be said here.
    """

    def __init__(
        self, cluster: ControlPlane, directory: Path, image: str = "", given: Sequence[str] = ()
    ) -> None:
        self.cluster = cluster
        self.kubectl = Kubectl(cluster.kubeconfig)
        self._directory = directory
        self._image = image
        self._given = given

    @property
    def by_hand(self) -> bool:
        """Whether the controller is a process here, instead of the Deployment's pods."""
        return not self._image

    @property
    def values(self) -> list[str]:
        """The arguments for helm: no pods where no kubelet would run them."""
        if self.by_hand:
            return ["--set", "replicas=0", *self._given]
        repository, _, tag = self._image.rpartition(":")
        image = ["--set", f"image.repository={repository}", "--set-string", f"image.tag={tag}"]
        return [*image, *self._given]

    def refuse_another(self) -> None:
        """Two controllers with two Leases would fight over the VMs of a cluster."""
        label = "--selector=app.kubernetes.io/name=bullpen"
        if found := self.kubectl("get", "deployments", "--all-namespaces", label, "--output=name"):
            raise AssertionError(f"this cluster has a Bullpen ({found.strip()}); the specs install their own")

    def ensure(self) -> None:
        """Installed, with a controller at work; quick when all of it is so."""
        if not self.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"):
            self.kubectl("create", "namespace", NAMESPACE)
        if not self.kubectl("get", "deployment", RELEASE, "-n", NAMESPACE, "--ignore-not-found"):
            self.stop_controller()  # the credentials of an account that is gone are worth nothing
            self.kubectl("apply", "-f", "-", stdin=rendered(*self.values))
            self.kubectl("wait", "--for=condition=Established", "crd", *self.definitions())
        self.start_controller()

    def definitions(self) -> list[str]:
        kind = "CustomResourceDefinition"
        return [each["metadata"]["name"] for each in objects(rendered()) if each["kind"] == kind]

    def remove(self) -> None:
        """Stop the controller and take away all but the definitions."""
        self.stop_controller()
        kept = rendered(*self._given, "--set", "crds.install=false")
        self.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=kept)

    # ---- the controller

    def start_controller(self) -> None:
        """Have one at work; nothing is done when one is."""
        if not self.by_hand:
            self.kubectl("scale", "-n", NAMESPACE, f"deployment/{RELEASE}", "--replicas=2")
            status = ["rollout", "status", f"deployment/{RELEASE}", f"--timeout={_PATIENCE:.0f}s"]
            self.kubectl("-n", NAMESPACE, *status, seconds=_PATIENCE + 30)
        elif _PROCESS not in self.cluster.pids:
            credentials = self.credentials()
            command = [sys.executable, "-m", "controller", "--kubeconfig", str(credentials)]
            environ = self.environ()
            self.cluster.run_beside(_PROCESS, command, ready=None, environ=environ)
            self._until_ready(environ["BULLPEN_LISTEN"])

    def stop_controller(self) -> None:
        """A clean stop, as a drained node or `kubectl scale --replicas=0` makes one."""
        if self.by_hand:
            self.cluster.processes.stop(_PROCESS)
        elif self.kubectl("get", "deployment", RELEASE, "-n", NAMESPACE, "--ignore-not-found"):
            self.kubectl("scale", "-n", NAMESPACE, f"deployment/{RELEASE}", "--replicas=0")
            pods = ["pod", "-n", NAMESPACE, f"--selector=app.kubernetes.io/instance={RELEASE}"]
            self.kubectl("wait", "--for=delete", *pods, "--timeout=90s", seconds=100)

    def leave(self, namespace: str, pool: str) -> None:
        """A clean stop after which the pool says that nobody is there: last words get a second."""
        what = f"wp/{pool}"
        for _ in range(3):
            self.stop_controller()
            if condition(self.kubectl, namespace, what, "Ready")["reason"] == "ControllerStopped":
                return
            self.start_controller()
            wait(self.kubectl, namespace, what, "condition=Ready")
        raise AssertionError(f"{what} was never told that the controller stops")

    def said(self) -> str:
        """The controller's log."""
        if self.by_hand:
            return (self.cluster.directory / "logs" / f"{_PROCESS}.log").read_text()
        selector = f"--selector=app.kubernetes.io/instance={RELEASE}"
        return self.kubectl("logs", "-n", NAMESPACE, selector, "--tail=-1", "--prefix")

    def environ(self) -> dict[str, str]:
        """What the chart's pod would have, but for its name and an address that is free here."""
        [container] = one(rendered(*self._given), "Deployment")["spec"]["template"]["spec"]["containers"]
        given = {each["name"]: each.get("value", "") for each in container["env"]}
        ours = {
            "BULLPEN_LISTEN": f"127.0.0.1:{free_port()}",
            "BULLPEN_IDENTITY": "by-hand",
            "BULLPEN_LEASE_NAMESPACE": NAMESPACE,
            "KUBECONFIG": os.devnull,  # an administrator's would hide a right that the chart lacks
        }
        return {**os.environ, **given, **ours}

    def credentials(self) -> Path:
        """A kubeconfig of the chart's own service account."""
        return credentials(self.kubectl, NAMESPACE, RELEASE, self._directory)

    def _until_ready(self, listen: str) -> None:
        [process] = [each for each in self.cluster.processes.started if each.name == _PROCESS]
        deadline = time.monotonic() + _PATIENCE
        while True:
            with suppress(urllib.error.URLError), urllib.request.urlopen(f"http://{listen}/readyz"):
                return
            if not process.alive() or time.monotonic() > deadline:
                raise AssertionError(f"the controller did not become ready:\n{process.tail(40)}")
            time.sleep(0.05)
