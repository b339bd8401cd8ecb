"""Pools and claims that an older, laxer schema let in: a condition each, and all others are served."""

from __future__ import annotations

from functools import partial

import pytest

from e2e.rest import Rest
from tests.integration.own_cluster.conftest import Start
from tests.support.manifests import claim_manifest, pool_manifest
from tests.support.site import CLAIMS, POOLS, Json, Site, holds, until, vm_template

pytestmark = pytest.mark.cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

BAD_POOLS = {
    "no-number": pool_manifest(
        "no-number", template=vm_template(), limits={"maxConcurrentCreations": "many"}
    ),
    "no-order": pool_manifest("no-order", template=vm_template(), claims={"order": "Random"}),
    "no-duration": pool_manifest("no-duration", template=vm_template(), readiness={"deadline": "soon"}),
    "no-template": {**pool_manifest("no-template"), "spec": {}},
}
BAD_CLAIMS = {
    "no-lifetime": claim_manifest("no-lifetime", "good", lifetime="soon"),
    "no-timeout": claim_manifest("no-timeout", "good", timeout="soon"),
    "no-policy": claim_manifest("no-policy", "good", whenEmpty={"policy": "Perhaps"}),
    "no-after": claim_manifest("no-after", "good", whenEmpty={"policy": "OrderAfter", "after": "soon"}),
}
# The API server's own rules stumble over these, so it takes no status for them: the log says it.
MISTYPED_CLAIMS = {
    "no-pool": {**claim_manifest("no-pool"), "spec": {"poolRef": "good"}},
    "no-labels": claim_manifest("no-labels", "good", metadata={"labels": {"team": 7}}),
}


def let_anything_in(crd: Json) -> Json:
    """The definition's versions without a schema for spec, and without what refers into it."""
    [version] = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    lax = {**schema, "properties": {**schema["properties"], "spec": ANYTHING}}
    versions = [{**version, "schema": {"openAPIV3Schema": lax}, "selectableFields": None}]
    return {"spec": {"versions": versions}}


@pytest.fixture
def bad_objects(site: Site, admin: Rest) -> None:
    """Let anything in, write what is bad, and make the definitions strict again.

    To be asked for before `auditor`: a definition that changes breaks its watches.
    """
    paths = {plural: f"{CRDS}/{plural}.bullpen.dev" for plural in (POOLS, CLAIMS)}
    strict = {plural: admin.get(path).body for plural, path in paths.items()}
    for plural, path in paths.items():
        answer = admin.patch(path, let_anything_in(strict[plural]))
        assert answer.ok, answer.message
    try:
        for manifest in (*BAD_POOLS.values(), *BAD_CLAIMS.values(), *MISTYPED_CLAIMS.values()):
            path = site.path(f"{manifest['kind'].lower()}s")
            until("let in", partial(admin.post, path, manifest), lambda answer: answer.status == 201)
    finally:
        for plural, path in paths.items():
            assert admin.patch(path, {"spec": {"versions": strict[plural]["spec"]["versions"]}}).ok
    for plural, bad in ((POOLS, pool_manifest(warm="many")), (CLAIMS, claim_manifest(timeout="soon"))):
        refused = partial(admin.post, site.path(plural), bad, dryRun="All")
        until("strict again", refused, lambda answer: answer.status == 422)


@pytest.mark.usefixtures("bad_objects", "auditor")
def test_what_can_not_be_read_is_told_and_stops_nobody_else(site: Site, start: Start) -> None:
    controller = start()
    site.pool("good", warm=2)
    site.until_warm(2, "good")
    for name in BAD_POOLS:
        said = site.until_condition(POOLS, name, "Ready", "False", "SpecInvalid")
        assert "spec" in said["message"], name
        site.claim(f"on-{name}", name)
        why = site.until_condition(CLAIMS, f"on-{name}", "Bound", "False", "PoolInvalid")
        assert f"pool {name} can't be read: {said['message']}" == why["message"]
    for name in BAD_CLAIMS:
        said = site.until_condition(CLAIMS, name, "Bound", "False", "SpecInvalid")
        assert "spec" in said["message"], name
    for name in MISTYPED_CLAIMS:
        controller.wait_until_says(f'"claim": "{name}", "why": "VirtualMachineClaim.bullpen.dev')
    site.claim("fine", "good")
    site.bound("fine")
    site.until(POOLS, "good", "refilled", lambda pool: pool["status"]["total"] == 3)
    assert len(site.vms("good")) == 3, "nothing was ordered or handed out for a claim that can't be read"
    size = len(controller.said)
    holds("quiet", lambda: len(controller.said), lambda now: now < size + 2000, 2)
    assert "Traceback" not in controller.said


@pytest.mark.usefixtures("bad_objects", "auditor")
def test_what_is_written_anew_works(site: Site, start: Start) -> None:
    start()
    site.until_condition(POOLS, "no-order", "Ready", "False", "SpecInvalid")
    site.patch(POOLS, "no-order", {"spec": {"claims": {"order": "Newest"}}})
    site.until_warm(1, "no-order")
    site.pool("good", warm=1)
    site.until_condition(CLAIMS, "no-timeout", "Bound", "False", "SpecInvalid")
    site.patch(CLAIMS, "no-timeout", {"spec": {"timeout": "10m"}})
    site.bound("no-timeout")
