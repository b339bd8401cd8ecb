"""Only timeout and lifetime of a claim may change, and no sequence of writes walks round that."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.rest import Answer, Rest
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.manifests import claim_manifest

pytestmark = pytest.mark.cluster

FULL: dict[str, Any] = {
    "whenEmpty": {"policy": "OrderAfter", "after": "1m"},
    "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "first"}},
    "ttlSecondsAfterFinished": 60,
    "timeout": "5m",
    "lifetime": "1h",
}


def made(api: Rest, namespace: str, **spec: Any) -> str:
    """The path of a new claim with this spec."""
    claims = f"/apis/bullpen.dev/v1alpha1/namespaces/{namespace}/virtualmachineclaims"
    answer = api.post(claims, claim_manifest("claim", **spec))
    assert answer.status == 201, answer.message
    return f"{claims}/claim"


def expect_refused(answer: Answer, field: str) -> None:
    assert answer.status == 422, answer.body
    [cause] = answer.body["details"]["causes"]
    assert cause["field"] == f"spec.{field}"
    assert f"{field} can't be changed, added or removed once the claim exists" in cause["message"]
    assert "delete the claim and make another (only lifetime and timeout may change)" in cause["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("poolRef", {"name": "other"}),
        ("whenEmpty", {"policy": "Wait", "after": None}),
        ("whenEmpty", {"after": "2m"}),
        ("metadata", {"labels": {"team": "red"}}),
        ("metadata", {"labels": {"more": "red"}}),
        ("metadata", {"annotations": {"note": "second"}}),
        ("metadata", {"annotations": None}),
        ("ttlSecondsAfterFinished", 61),
    ],
)
def test_a_field_is_not_changed(admin: Rest, namespace: str, field: str, value: Any) -> None:
    claim = made(admin, namespace, **FULL)
    expect_refused(admin.patch(claim, {"spec": {field: value}}), field)


@pytest.mark.parametrize("field", ["metadata", "ttlSecondsAfterFinished"])
def test_a_field_is_not_removed_so_that_it_cannot_be_added_again_with_another_value(
    admin: Rest, namespace: str, field: str
) -> None:
    claim = made(admin, namespace, **FULL)
    expect_refused(admin.patch(claim, [{"op": "remove", "path": f"/spec/{field}"}]), field)
    assert admin.get(claim).body["spec"][field] == FULL[field]


def test_removing_when_empty_would_bring_its_default_back_and_is_refused(admin: Rest, namespace: str) -> None:
    claim = made(admin, namespace, **FULL)
    expect_refused(admin.patch(claim, [{"op": "remove", "path": "/spec/whenEmpty"}]), "whenEmpty")


@pytest.mark.parametrize("field", ["metadata", "ttlSecondsAfterFinished"])
def test_a_field_that_was_left_out_is_not_added(admin: Rest, namespace: str, field: str) -> None:
    claim = made(admin, namespace)
    expect_refused(admin.patch(claim, {"spec": {field: FULL[field]}}), field)


def test_the_pool_reference_is_not_emptied(admin: Rest, namespace: str) -> None:
    claim = made(admin, namespace, **FULL)
    answer = admin.patch(claim, [{"op": "remove", "path": "/spec/poolRef"}])
    assert answer.status == 422
    assert "spec.poolRef: Required value" in answer.message


def test_the_spec_is_neither_removed_nor_put_anew(admin: Rest, namespace: str) -> None:
    claim = made(admin, namespace, **FULL)
    removed = admin.patch(claim, [{"op": "remove", "path": "/spec"}])
    assert removed.status == 422
    assert "spec: Required value" in removed.message
    stored = admin.get(claim).body
    stored["spec"] = {"poolRef": {"name": "other"}}
    replaced = admin.put(claim, stored)
    assert replaced.status == 422
    assert "poolRef can't be changed" in replaced.message


def test_a_write_to_the_status_does_not_change_the_spec(admin: Rest, namespace: str) -> None:
    claim = made(admin, namespace)
    answer = admin.patch(
        f"{claim}/status", {"spec": {"poolRef": {"name": "other"}}, "status": {"phase": "Bound"}}
    )
    assert answer.ok, answer.message
    assert answer.body["spec"]["poolRef"] == {"name": "pool"}
    assert answer.body["status"]["phase"] == "Bound"


@pytest.mark.parametrize("field", ["timeout", "lifetime"])
def test_timeout_and_lifetime_may_be_changed_removed_and_added(
    admin: Rest, namespace: str, field: str
) -> None:
    claim = made(admin, namespace, **FULL)
    for step in ("2h", None, "3h"):
        answer = admin.patch(claim, {"spec": {field: step}})
        assert answer.ok, answer.message
        assert answer.body["spec"].get(field) == step


def test_labels_and_finalizers_of_the_claim_itself_are_free(admin: Rest, namespace: str) -> None:
    claim = made(admin, namespace, **FULL)
    answer = admin.patch(claim, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
    assert answer.ok, answer.message


def test_kubectl_says_what_to_do_instead(kubectl: Kubectl, namespace: str) -> None:
    manifest = (
        "{{apiVersion: bullpen.dev/v1alpha1, kind: VirtualMachineClaim, metadata: {{name: ci}}, spec: {}}}"
    )
    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest.format("{poolRef: {name: blue}}"))
    with pytest.raises(KubectlError) as refusal:
        kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest.format("{poolRef: {name: red}}"))
    assert str(refusal.value).strip() == (
        'The VirtualMachineClaim "ci" is invalid: spec.poolRef: Invalid value: poolRef can\'t be changed, '
        "added or removed once the claim exists: delete the claim and make another "
        "(only lifetime and timeout may change)"
    )
