"""What the revision depends on. A changed hash replaces VMs, so those once given are recorded as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.machines.rendering import render
from controller.machines.revision import current_revisions, revision
from crds.generate import crd
from crds.kinds import POOL
from crds.pool import VirtualMachinePool
from tests.support.builders import make_pool

Json = dict[str, Any]
GOLDEN: list[Json] = json.loads(Path(__file__).with_name("revisions.json").read_text())
GUEST: Json = {"domain": {"memory": {"guest": "64Mi"}}}


def pool_of(template: Json) -> VirtualMachinePool:
    metadata = {"name": "pool", "namespace": "ns", "uid": "pool-uid"}
    return VirtualMachinePool.model_validate({"metadata": metadata, "spec": {"template": template}})


def written(spec: Json | None = None, guest: Json | None = None, **metadata: Any) -> VirtualMachinePool:
    template = {"spec": {"template": {"spec": GUEST, **(guest or {})}, **(spec or {})}}
    return pool_of({**template, "metadata": metadata} if metadata else template)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: str(case["what"]))
def test_a_recorded_revision_stays_what_it_was(case: Json) -> None:
    assert revision(pool_of(case["template"])) == case["revision"]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: str(case["what"]))
def test_what_an_earlier_release_wrote_onto_vms_is_recognised(case: Json) -> None:
    for release, label in case["earlier"].items():
        assert label in current_revisions(pool_of(case["template"])), release


def test_the_recorded_templates_are_not_all_the_same() -> None:
    assert len({case["revision"] for case in GOLDEN}) == 7


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(written({"runStrategy": "Always"}), id="the run strategy that is put in anyway"),
        pytest.param(written(labels={}), id="no labels"),
        pytest.param(written(labels={}, annotations={}), id="no labels and no annotations"),
        pytest.param(written(labels=None), id="labels of null"),
        pytest.param(written(guest={"metadata": {}}), id="no metadata of the guest"),
        pytest.param(written(guest={"metadata": None}), id="null as the guest's metadata"),
        pytest.param(written(guest={"metadata": {"labels": {}}}), id="no labels of the guest"),
    ],
)
def test_what_makes_no_other_vm_makes_no_other_revision(same: VirtualMachinePool) -> None:
    assert revision(same) == revision(written())
    assert render(same, "r", "aaaaa") == render(written(), "r", "aaaaa")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(written({"runStrategy": "RerunOnFailure"}), id="another run strategy"),
        pytest.param(written(labels={"team": "a"}), id="a label"),
        pytest.param(written(annotations={"team": "a"}), id="an annotation"),
        pytest.param(written(guest={"metadata": {"labels": {"team": "a"}}}), id="a label of the guest"),
        pytest.param(written(guest={"spec": {**GUEST, "hostname": ""}}), id="an empty field of the guest"),
        pytest.param(written({"dataVolumeTemplates": []}), id="an empty field of KubeVirt's own"),
    ],
)
def test_what_may_make_another_vm_makes_another_revision(other: VirtualMachinePool) -> None:
    assert current_revisions(other).isdisjoint(current_revisions(written()))


def test_no_field_outside_of_the_template_is_part_of_it() -> None:
    other = make_pool(
        "other",
        uid="other",
        warm=9,
        limits={"maxReplicas": 10},
        readiness={"minReadySeconds": 5},
        claims={"order": "Newest"},
        update={"type": "Recreate", "maxSurge": 3},
        max_warm_age="1h",
        suspend=True,
    )
    assert revision(other) == revision(make_pool())


def test_judging_a_template_leaves_it_as_it_is() -> None:
    pool = written(guest={"metadata": {"labels": {}}})
    before = pool.model_dump()
    current_revisions(pool)
    assert pool.model_dump() == before


def test_the_definition_puts_no_default_into_a_template() -> None:
    """A default there would change what is hashed the day that it is added."""

    def defaults(node: Json) -> list[Any]:
        below = [*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")]
        here = [node["default"]] if "default" in node else []
        return here + [each for child in below if isinstance(child, dict) for each in defaults(child)]

    schema = crd(POOL)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert defaults(schema["properties"]["spec"]["properties"]["template"]) == []
