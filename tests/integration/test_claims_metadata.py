"""spec.metadata reaches the VM at the hand-over; what can't be put there stops that claim and no other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.manifests import claim_manifest
from tests.support.site import CLAIMS, VMS, Site, named_vm, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller", "auditor")]


def test_the_claims_labels_and_annotations_reach_the_vm(site: Site) -> None:
    site.pool(warm=1)
    site.until_warm(1)
    asked = {"labels": {"example.com/job": "build-7", "team": ""}, "annotations": {"note": "a b\nc/~"}}
    site.claim(metadata=asked)
    vm = site.get(VMS, named_vm(site.bound())["name"])
    assert asked["labels"].items() <= vm["metadata"]["labels"].items()
    assert asked["annotations"].items() <= vm["metadata"]["annotations"].items()
    assert vm["metadata"]["annotations"]["bullpen.dev/claim"] == "claim"


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_a_key_that_the_vm_has_already_stops_the_claim_and_not_the_line(site: Site, kind: str) -> None:
    template = vm_template()
    template["metadata"].setdefault(kind, {})["team"] = "the-pools"
    site.pool(warm=1, template=template)
    site.until_warm(1)
    before = site.vm_names()
    site.claim("greedy", metadata={kind: {"team": "mine"}})
    said = site.until_condition(CLAIMS, "greedy", "Bound", "False", "MetadataConflict")
    assert said["message"] == "spec.metadata can't be put onto a VM: the VM has team already"
    site.claim("modest", metadata={kind: {"other": "mine"}})
    taken = named_vm(site.bound("modest"))["name"]
    assert taken in before, "the refused hand-over cost no VM"
    assert site.get(VMS, taken)["metadata"][kind]["team"] == "the-pools"
    assert site.get(CLAIMS, "greedy")["status"]["phase"] == "Pending"


def test_metadata_that_the_api_server_refuses_stops_the_claim_and_not_the_line(site: Site) -> None:
    """Both are within their bounds; together they are more annotations than an object may have."""

    def annotations(whose: str) -> dict[str, str]:
        return {f"{whose}{number}.{'d' * 60}.{'d' * 60}/key": "x" * 4096 for number in range(31)}

    template = vm_template()
    template["metadata"]["annotations"] |= annotations("p")
    site.pool(warm=1, template=template)
    site.until_warm(1)
    site.claim("heavy", metadata={"annotations": {**annotations("c"), "one-more": "x" * 4096}})
    said = site.until_condition(CLAIMS, "heavy", "Bound", "False", "MetadataRefused")
    assert "is invalid: [metadata.annotations: Too long" in said["message"]
    site.claim("light")
    site.bound("light")
    assert site.get(CLAIMS, "heavy")["status"]["phase"] == "Pending"


def test_a_refused_claim_can_be_deleted_and_made_again(site: Site) -> None:
    template = vm_template()
    template["metadata"]["labels"] = {"team": "the-pools"}
    site.pool(warm=1, template=template)
    site.until_warm(1)
    site.claim(metadata={"labels": {"team": "mine"}})
    site.until_condition(CLAIMS, "claim", "Bound", "False", "MetadataConflict")
    site.delete(CLAIMS, "claim")
    site.until_gone(CLAIMS, "claim")
    site.claim()
    site.bound()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"labels": {"bad key": "x"}}, "a key is a word of at most 63"),
    ({"labels": {"a": "b c"}}, "the value of a label has only letters"),
    ({"labels": {"a": "x" * 64}}, "Too long"),
    ({"labels": {"bullpen.dev/state": "Pooled"}}, "are reserved"),
    ({"annotations": {"kubevirt.io/x": "y"}}, "are reserved"),
]


def test_metadata_that_no_vm_can_have_is_refused_with_a_sentence(site: Site) -> None:
    for metadata, sentence in REFUSED:
        answer = site.api.post(site.path(CLAIMS), claim_manifest(metadata=metadata))
        assert answer.status == 422
        assert sentence in answer.message
