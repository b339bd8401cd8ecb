"""Puts the custom resource definitions into a cluster and waits until they are served.

It must never replace definitions that came with a real KubeVirt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from e2e.rest import Answer, Rest

ROOT = Path(__file__).parent.parent
BULLPEN = ROOT / "crds" / "manifests"
REDUCED_KUBEVIRT = ROOT / "simulator" / "manifests"
MANAGER = "bullpen-install"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class InstallError(Exception):
    """The API server refused a definition; the text holds its sentence."""


def install_crds(kubeconfig: Path, vm_crd: Path | None = None, *, kubevirt: bool = True) -> None:
    """Bring Bullpen's definitions up to date, and KubeVirt's where they are missing.

    Args:
        kubeconfig: of the cluster, with the right to write definitions.
        vm_crd: a file with KubeVirt's own, full definitions, taken instead of the reduced ones.
        kubevirt: without it nothing of KubeVirt is touched but what `vm_crd` holds.

    Raises:
        InstallError: with the API server's sentence.
        TimeoutError: a definition isn't served after 30 s.
    """
    full = _definitions(vm_crd) if vm_crd else {}
    reduced = _definitions(REDUCED_KUBEVIRT) if kubevirt else {}
    bullpen = _definitions(BULLPEN)
    with Rest(kubeconfig) as api:
        for name, crd in (full | bullpen).items():
            _require(name, api.apply(f"{_CRDS}/{name}", crd, manager=MANAGER))
        for name, crd in reduced.items():
            if name not in full:
                answer = api.post(_CRDS, crd, fieldManager=MANAGER)
                # A definition that is there already may be a real KubeVirt's.
                if answer.status != 409:
                    _require(name, answer)
        for name, crd in (reduced | full | bullpen).items():
            _wait_until_served(api, name, crd)


def _definitions(source: Path) -> dict[str, Any]:
    """The definitions of one file or of the YAML files of a folder, by name."""
    files = sorted(source.glob("*.yaml")) if source.is_dir() else [source]
    found = [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]
    return {each["metadata"]["name"]: each for each in found if each["kind"] == "CustomResourceDefinition"}


def _require(name: str, answer: Answer) -> None:
    if not answer.ok:
        raise InstallError(f"the definition {name} was refused ({answer.status}): {answer.message}")


def _wait_until_served(api: Rest, name: str, crd: dict[str, Any]) -> None:
    api.wait(f"{_CRDS}/{name}", lambda answer: answer.ok and _established(answer.body))
    spec = crd["spec"]
    for version in spec["versions"]:
        if version["served"]:
            # Established comes a moment before the first request is answered.
            path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}?limit=1"
            api.wait(path, lambda answer: answer.ok)


def _established(crd: dict[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []  # null in the first moment
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
