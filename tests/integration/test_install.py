"""The definitions get in, are served at once, and never replace a real KubeVirt's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds.names import API_VERSION, CLAIMS, POOLS
from e2e.install import REDUCED_KUBEVIRT, install_crds
from e2e.rest import Rest

pytestmark = pytest.mark.cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(plural: str, kind: str, description: str = "first") -> dict[str, Any]:
    """The smallest definition of a group that nobody else uses."""
    schema = {"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.install.test"},
        "spec": {
            "group": "install.test",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def description(api: Rest, name: str) -> str:
    (version,) = api.get(f"{CRDS}/{name}").body["spec"]["versions"]
    return str(version["schema"]["openAPIV3Schema"]["description"])


@pytest.fixture
def things(admin: Rest) -> Iterator[str]:
    yield "things"
    admin.delete(f"{CRDS}/things.install.test")
    admin.wait(f"{CRDS}/things.install.test", lambda answer: answer.status == 404)


def test_everything_of_ours_and_the_reduced_kubevirt_is_served(admin: Rest) -> None:
    assert admin.get(f"/apis/{API_VERSION}/{POOLS}").status == 200
    assert admin.get(f"/apis/{API_VERSION}/{CLAIMS}").status == 200
    assert admin.get("/apis/kubevirt.io/v1/virtualmachines").status == 200
    assert admin.get("/apis/kubevirt.io/v1/virtualmachineinstances").status == 200


def test_a_file_of_definitions_is_served_when_install_returns_and_again_brings_it_up_to_date(
    admin: Rest, kubeconfig: Path, tmp_path: Path, things: str
) -> None:
    file = tmp_path / "full.yaml"
    file.write_text(
        yaml.safe_dump_all([definition(things, "Thing"), {"kind": "ConfigMap", "metadata": {"name": "x"}}])
    )
    install_crds(kubeconfig, file)
    assert admin.get("/apis/install.test/v1/things").status == 200
    file.write_text(yaml.safe_dump(definition(things, "Thing", "second")))
    install_crds(kubeconfig, file)
    assert description(admin, "things.install.test") == "second"


def test_a_full_definition_takes_the_place_of_the_reduced_one_of_its_name(
    admin: Rest, kubeconfig: Path, tmp_path: Path, things: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced, full = tmp_path / "reduced", tmp_path / "full.yaml"
    reduced.mkdir()
    (reduced / "things.yaml").write_text(yaml.safe_dump(definition(things, "Thing", "reduced")))
    full.write_text(yaml.safe_dump(definition(things, "Thing", "full")))
    monkeypatch.setattr("e2e.install.REDUCED_KUBEVIRT", reduced)
    install_crds(kubeconfig, full)
    assert description(admin, "things.install.test") == "full"


def test_a_definition_that_came_with_a_real_kubevirt_is_left_as_it_is(
    admin: Rest, kubeconfig: Path, tmp_path: Path, things: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admin.post(CRDS, definition(things, "Thing", "real")).status == 201
    (tmp_path / "things.yaml").write_text(yaml.safe_dump(definition(things, "Thing", "reduced")))
    monkeypatch.setattr("e2e.install.REDUCED_KUBEVIRT", tmp_path)
    install_crds(kubeconfig)
    assert description(admin, "things.install.test") == "real"


def test_without_kubevirt_nothing_of_the_reduced_definitions_gets_in(
    admin: Rest, kubeconfig: Path, tmp_path: Path, things: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "things.yaml").write_text(yaml.safe_dump(definition(things, "Thing")))
    monkeypatch.setattr("e2e.install.REDUCED_KUBEVIRT", tmp_path)
    install_crds(kubeconfig, kubevirt=False)
    assert admin.get(f"{CRDS}/things.install.test").status == 404


def test_the_reduced_definitions_are_there_to_be_installed() -> None:
    kinds = {
        yaml.safe_load(file.read_text())["spec"]["names"]["kind"] for file in REDUCED_KUBEVIRT.glob("*.yaml")
    }
    assert {"VirtualMachine", "VirtualMachineInstance"} <= kinds
