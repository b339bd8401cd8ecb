"""Each rule of the CRDs, and the one sentence that the API server prints where it does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from e2e.rest import Answer, Rest
from tests.support.kubectl import Kubectl, KubectlError
from tests.support.manifests import TEMPLATE, claim_manifest, pool_manifest

pytestmark = pytest.mark.cluster

DURATION = (
    "write a duration as whole numbers with the units h, m, s or ms and no spaces, "
    "like 90s, 10m, 1h30m or 168h"
)
RATIO = 'write a share of the whole from "0%" to "100%", in quotes, like "80%"'
RESERVED = (
    "keys under bullpen.dev/, kubevirt.io/, kubernetes.io/ and k8s.io/ (and their subdomains) are reserved: "
    "use a domain of your own, like example.com/team"
)
OURS = "keys under bullpen.dev/ are Bullpen's own: use a domain of your own, like example.com/team"
KEY = "a key is a word of at most 63 letters, digits, dots, dashes or underscores"
VALUE = "the value of a label has only letters, digits, dots, dashes and underscores"
# What the API server adds by itself when a mistake keeps it from trying the rules.
NOT_CHECKED = "some validation rules were not checked"


class Case(NamedTuple):
    """A spec, the field that is refused, and the sentence."""

    spec: dict[str, Any]
    field: str
    sentence: str


def dry_run(api: Rest, namespace: str, manifest: dict[str, Any]) -> Answer:
    plural = f"{manifest['kind'].lower()}s"
    path = f"/apis/bullpen.dev/v1alpha1/namespaces/{namespace}/{plural}"
    return api.post(path, manifest, dryRun="All", fieldValidation="Strict")


def causes(answer: Answer) -> list[tuple[str, str]]:
    """(field, sentence) of everything that was refused."""
    found = answer.body["details"]["causes"]
    return [
        (cause.get("field", "").lstrip("."), cause["message"])
        for cause in found
        if NOT_CHECKED not in cause["message"]
    ]


def vm(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"template": {"metadata": metadata, "spec": {**TEMPLATE["spec"], **spec}}}


def warm(**capacity: Any) -> dict[str, Any]:
    return {"warm": capacity}


def lifetime(**policy: str) -> dict[str, Any]:
    return {"claims": {"lifetime": policy}}


OVER_MAX = "warm.replicas must not be more than warm.max: raise warm.max or lower warm.replicas"
OVER_LIMIT = "warm.replicas must not be more than limits.maxReplicas: raise limits.maxReplicas"
OVER_LIFETIME = "lifetime.default must not be longer than lifetime.max: raise max or lower default"

POOLS = {
    "no template": Case({"template": None}, "spec.template", "Required value"),
    "no template.spec": Case({"template": {}}, "spec.template.spec", "Required value"),
    "no template in the template": Case(
        {"template": {"spec": {}}}, "spec.template.spec.template", "Required value"
    ),
    "a run strategy that stops VMs": Case(
        vm({"runStrategy": "Halted"}),
        "spec.template.spec.runStrategy",
        'Unsupported value: "Halted": supported values: "Always", "RerunOnFailure"',
    ),
    "the old field running": Case(
        vm({"running": True}),
        "spec.template.spec.running",
        "remove running and write runStrategy: Always or RerunOnFailure",
    ),
    "a label of ours on the template": Case(
        vm({}, labels={"bullpen.dev/state": "Pooled"}), "spec.template.metadata.labels", OURS
    ),
    "an annotation of ours on the template": Case(
        vm({}, annotations={"bullpen.dev/claim": "me"}), "spec.template.metadata.annotations", OURS
    ),
    "a label value with a space": Case(
        vm({}, labels={"team": "blue and red"}), "spec.template.metadata.labels", VALUE
    ),
    "a label key with a space": Case(
        vm({}, labels={"my team": "blue"}), "spec.template.metadata.labels", KEY
    ),
    "more warm than max": Case(warm(replicas=5, max=3), "spec.warm.replicas", OVER_MAX),
    "the default of one warm over a max of 0": Case(warm(max=0), "spec.warm.replicas", OVER_MAX),
    "more warm than the limit that is written": Case(
        {"warm": {"replicas": 5}, "limits": {"maxReplicas": 4}}, "spec.warm.replicas", OVER_LIMIT
    ),
    "more warm than the limit by default": Case(warm(replicas=101), "spec.warm.replicas", OVER_LIMIT),
    "a word for a number": Case(warm(replicas="five"), "spec.warm.replicas", "must be of type integer"),
    "a huge max": Case(warm(max=10_001), "spec.warm.max", "should be less than or equal to 10000"),
    "too many replicas": Case(
        {"limits": {"maxReplicas": 10_001}},
        "spec.limits.maxReplicas",
        "should be less than or equal to 10000",
    ),
    "no creation at a time": Case(
        {"limits": {"maxConcurrentCreations": 0}},
        "spec.limits.maxConcurrentCreations",
        "should be greater than or equal to 1",
    ),
    "no deletion at a time": Case(
        {"limits": {"maxConcurrentDeletions": 0}},
        "spec.limits.maxConcurrentDeletions",
        "should be greater than or equal to 1",
    ),
    "an unknown readiness": Case(
        {"readiness": {"when": "Booted"}},
        "spec.readiness.when",
        'Unsupported value: "Booted": supported values: "Ready", "AgentConnected", "Running"',
    ),
    "one condition twice": Case(
        {"readiness": {"conditions": ["A", "A"]}}, "spec.readiness.conditions[1]", "Duplicate value"
    ),
    "too many conditions": Case(
        {"readiness": {"conditions": list("abcdefghi")}},
        "spec.readiness.conditions",
        "must have at most 8 items",
    ),
    "a deadline in words": Case(
        {"readiness": {"deadline": "10 minutes"}}, "spec.readiness.deadline", f'"10 minutes": {DURATION}'
    ),
    "no time to boot": Case(
        {"readiness": {"deadline": "0s"}}, "spec.readiness.deadline", "must be longer than 0s, like 10m"
    ),
    "a grace in days": Case(
        {"readiness": {"unreadyGrace": "1d"}}, "spec.readiness.unreadyGrace", f'"1d": {DURATION}'
    ),
    "an endless minReadySeconds": Case(
        {"readiness": {"minReadySeconds": 86_400}},
        "spec.readiness.minReadySeconds",
        "should be less than or equal to 3600",
    ),
    "an order that is none": Case(
        {"claims": {"order": "Random"}},
        "spec.claims.order",
        'Unsupported value: "Random": supported values: "Oldest", "Newest"',
    ),
    "a default lifetime over the longest": Case(
        lifetime(default="2h", max="90m"), "spec.claims.lifetime.default", OVER_LIFETIME
    ),
    "a default lifetime that is no duration": Case(
        lifetime(default="2 h", max="90m"), "spec.claims.lifetime.default", f'"2 h": {DURATION}'
    ),
    "a longest lifetime of nothing": Case(
        lifetime(max="0m"), "spec.claims.lifetime.max", "must be longer than 0s"
    ),
    "a strategy that is none": Case(
        {"updateStrategy": {"type": "OnDelete"}},
        "spec.updateStrategy.type",
        'Unsupported value: "OnDelete": supported values: "Replenish", "RollingUpdate", "Recreate"',
    ),
    "a surge of less than nothing": Case(
        {"updateStrategy": {"maxSurge": -1}},
        "spec.updateStrategy.maxSurge",
        "should be greater than or equal to 0",
    ),
    "neither one more nor one less": Case(
        {"updateStrategy": {"maxSurge": 0}}, "spec.updateStrategy.maxSurge", "write maxSurge: 1 or more"
    ),
    "a floor without percent": Case(
        {"updateStrategy": {"warmFloor": "3"}}, "spec.updateStrategy.warmFloor", RATIO
    ),
    "a floor over the whole": Case(
        {"updateStrategy": {"warmFloor": "101%"}}, "spec.updateStrategy.warmFloor", RATIO
    ),
    "a floor that is a number": Case(
        {"updateStrategy": {"warmFloor": 3}}, "spec.updateStrategy.warmFloor", "must be of type string"
    ),
    "an age in days": Case({"maxWarmAge": "7d"}, "spec.maxWarmAge", f'"7d": {DURATION}'),
    "no age at all": Case({"maxWarmAge": "0s"}, "spec.maxWarmAge", "must be longer than 0s"),
    "suspended perhaps": Case({"suspend": "perhaps"}, "spec.suspend", "must be of type boolean"),
}

CLAIMS = {
    "no pool": Case({"poolRef": None}, "spec.poolRef", "Required value"),
    "a pool without name": Case({"poolRef": {}}, "spec.poolRef.name", "Required value"),
    "an empty pool name": Case({"poolRef": {"name": ""}}, "spec.poolRef.name", "at least 1 chars long"),
    "a pool name that no pool can have": Case(
        {"poolRef": {"name": "p" * 64}}, "spec.poolRef.name", "Too long: may not be more than 63 bytes"
    ),
    "an unknown policy": Case(
        {"whenEmpty": {"policy": "Panic"}},
        "spec.whenEmpty.policy",
        'Unsupported value: "Panic": supported values: "Order", "OrderAfter", "Wait", "Fail"',
    ),
    "OrderAfter without after": Case(
        {"whenEmpty": {"policy": "OrderAfter"}},
        "spec.whenEmpty.after",
        "policy OrderAfter needs after: the wait before one more VM is ordered, like after: 2m",
    ),
    "after with another policy": Case(
        {"whenEmpty": {"policy": "Wait", "after": "2m"}},
        "spec.whenEmpty.after",
        "after belongs to policy OrderAfter: remove after, or write policy: OrderAfter",
    ),
    "after with the default policy": Case(
        {"whenEmpty": {"after": "2m"}}, "spec.whenEmpty.after", "after belongs to policy OrderAfter"
    ),
    "after in words": Case(
        {"whenEmpty": {"policy": "OrderAfter", "after": "soon"}}, "spec.whenEmpty.after", DURATION
    ),
    "a timeout in words": Case({"timeout": "10 minutes"}, "spec.timeout", f'"10 minutes": {DURATION}'),
    "a timeout that is a number": Case({"timeout": 600}, "spec.timeout", "must be of type string"),
    "no time to wait": Case({"timeout": "0s"}, "spec.timeout", "must be longer than 0s"),
    "a lifetime in days": Case({"lifetime": "3d"}, "spec.lifetime", f'"3d": {DURATION}'),
    "a lifetime of nothing": Case({"lifetime": "0h0m"}, "spec.lifetime", "must be longer than 0s"),
    "a duration with too many digits": Case({"lifetime": "123456s"}, "spec.lifetime", DURATION),
    "a negative ttl": Case(
        {"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished", "greater than or equal to 0"
    ),
    "a label value with a space": Case({"metadata": {"labels": {"a": "b c"}}}, "spec.metadata.labels", VALUE),
    "a label value of 64 characters": Case(
        {"metadata": {"labels": {"a": "b" * 64}}},
        "spec.metadata.labels.a",
        "Too long: may not be more than 63 bytes",
    ),
    "a label key with a space": Case({"metadata": {"labels": {"a b": "c"}}}, "spec.metadata.labels", KEY),
    "a label key of 64 letters": Case({"metadata": {"labels": {"a" * 64: "c"}}}, "spec.metadata.labels", KEY),
    "an annotation key with two slashes": Case(
        {"metadata": {"annotations": {"a/b/c": "d"}}}, "spec.metadata.annotations", KEY
    ),
    "too many labels": Case(
        {"metadata": {"labels": {f"k{i}": "v" for i in range(33)}}},
        "spec.metadata.labels",
        "must have at most 32 items",
    ),
}

RESERVED_KEYS = (
    "bullpen.dev/state",
    "x.bullpen.dev/y",
    "kubevirt.io/vm",
    "vm.kubevirt.io/name",
    "kubernetes.io/hostname",
    "app.kubernetes.io/name",
    "k8s.io/x",
    "node.k8s.io/x",
)
FREE_KEYS = ("team", "example.com/team", "notkubevirt.io/x", "kubevirt.io.example.com/x", "k8s.io", "a.b_c-D")


@pytest.fixture(scope="module")
def room(admin: Rest) -> Iterator[str]:
    """One namespace for all cases: nothing is ever made in it."""
    name = "crd-refusals"
    admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("case", POOLS.values(), ids=POOLS)
def test_a_pool_is_refused_with_one_sentence(admin: Rest, room: str, case: Case) -> None:
    spec = {name: value for name, value in {"template": TEMPLATE, **case.spec}.items() if value is not None}
    _expect_one_refusal(dry_run(admin, room, {**pool_manifest("a"), "spec": spec}), case)


@pytest.mark.parametrize("case", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_is_refused_with_one_sentence(admin: Rest, room: str, case: Case) -> None:
    spec = {
        name: value for name, value in {"poolRef": {"name": "p"}, **case.spec}.items() if value is not None
    }
    _expect_one_refusal(dry_run(admin, room, {**claim_manifest("a"), "spec": spec}), case)


def _expect_one_refusal(answer: Answer, case: Case) -> None:
    assert answer.status == 422, answer.message
    found = causes(answer)
    # A bad /scale path is told a second time by the API server's own check of it.
    assert {field for field, _ in found} == {case.field}
    assert case.sentence in found[0][1]
    assert len(found) == 1 or case.field == "spec.warm.replicas"


@pytest.mark.parametrize("where", ["labels", "annotations"])
@pytest.mark.parametrize("key", RESERVED_KEYS)
def test_a_claim_may_not_set_keys_of_others(admin: Rest, room: str, key: str, where: str) -> None:
    answer = dry_run(admin, room, claim_manifest(metadata={where: {"team": "blue", key: "x"}}))
    assert answer.status == 422
    [(field, sentence)] = causes(answer)
    assert field == f"spec.metadata.{where}"
    assert RESERVED in sentence


@pytest.mark.parametrize("key", FREE_KEYS)
def test_a_claim_may_set_keys_of_its_own(admin: Rest, room: str, key: str) -> None:
    metadata = {"labels": {key: "x"}, "annotations": {key: "any thing: {}"}}
    answer = dry_run(admin, room, claim_manifest(metadata=metadata))
    assert answer.status == 201, answer.message


def test_a_label_may_be_empty_and_as_long_as_63_characters(admin: Rest, room: str) -> None:
    labels = {"empty": "", "long": "b" * 63, "k" * 63: "x", f"{'d' * 60}.example.com/{'k' * 63}": "x"}
    answer = dry_run(admin, room, claim_manifest(metadata={"labels": labels}))
    assert answer.status == 201, answer.message


def test_a_template_may_have_keys_of_others_but_ours(admin: Rest, room: str) -> None:
    annotations = {"kubevirt.io/x": "y", "simulator.bullpen.dev/boot": "500ms"}
    answer = dry_run(admin, room, pool_manifest(**vm({}, annotations=annotations)))
    assert answer.status == 201, answer.message


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
def test_vms_that_run_are_let_in(admin: Rest, room: str, strategy: str) -> None:
    assert dry_run(admin, room, pool_manifest(**vm({"runStrategy": strategy}))).status == 201


@pytest.mark.parametrize("written", ["0s", "35ms", "90s", "1h30m", "672h", "1h1m1s1ms"])
def test_a_duration_that_the_models_read_is_let_in(admin: Rest, room: str, written: str) -> None:
    manifest = pool_manifest(readiness={"unreadyGrace": written})
    assert dry_run(admin, room, manifest).status == 201


def test_two_mistakes_are_told_at_once(admin: Rest, room: str) -> None:
    answer = dry_run(admin, room, claim_manifest(timeout="10 minutes", lifetime="3d"))
    assert {field for field, _ in causes(answer)} == {"spec.timeout", "spec.lifetime"}


@pytest.mark.parametrize("manifest", [pool_manifest("n" * 64), claim_manifest("n" * 64)])
def test_a_name_over_63_characters_is_refused(admin: Rest, room: str, manifest: dict[str, Any]) -> None:
    [(field, sentence)] = causes(dry_run(admin, room, manifest))
    assert field == "metadata.name"
    assert (
        "metadata.name must have at most 63 characters, because it becomes the value of a label" in sentence
    )


@pytest.mark.parametrize("manifest", [pool_manifest("n" * 63), claim_manifest("n" * 63)])
def test_a_name_of_63_characters_is_let_in(admin: Rest, room: str, manifest: dict[str, Any]) -> None:
    assert dry_run(admin, room, manifest).status == 201


def test_kubectl_prints_the_field_what_was_written_and_what_to_write(kubectl: Kubectl, room: str) -> None:
    manifest = """
        {apiVersion: bullpen.dev/v1alpha1, kind: VirtualMachineClaim, metadata: {name: ci},
         spec: {poolRef: {name: runners}, timeout: 10 minutes}}"""
    with pytest.raises(KubectlError) as refusal:
        kubectl("apply", "-n", room, "-f", "-", stdin=manifest)
    assert str(refusal.value).strip() == (
        'The VirtualMachineClaim "ci" is invalid: spec.timeout: Invalid value: "10 minutes": '
        f"{DURATION} (there is no unit for days)"
    )
