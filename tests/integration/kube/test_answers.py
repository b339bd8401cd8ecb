"""Each refusal of a real API server is what we believe it is."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.kube import errors
from controller.kube.client import ApiClient
from controller.kube.config import Authorization, ClusterConfig, load_config
from controller.kube.objects import KubeObject
from tests.integration.kube.on_server import FILL, LATER, comes_to_be_refused, config_map, create

pytestmark = pytest.mark.cluster

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


async def test_a_failed_test_of_a_json_patch_is_told_from_an_invalid_object(
    client: ApiClient, maps: str
) -> None:
    meta = await create(client, maps, config_map(labels={"state": "free"}))
    guard = {"op": "test", "path": "/metadata/uid", "value": meta.uid}
    wrong = {"op": "test", "path": "/metadata/labels/state", "value": "taken"}
    with pytest.raises(errors.TestFailed) as failed:
        await client.json_patch(f"{maps}/a", [guard, wrong], priority=FILL, step="assign")
    assert (failed.value.reason, failed.value.details) == ("Invalid", {})
    absent = {"op": "test", "path": "/metadata/deletionTimestamp", "value": None}
    long = {"op": "add", "path": "/metadata/labels/state", "value": "x" * 64}
    with pytest.raises(errors.Invalid) as invalid:
        await client.json_patch(f"{maps}/a", [guard, absent, long], priority=FILL, step="assign")
    assert "63" in invalid.value.details["causes"][0]["message"]


async def test_a_json_patch_whose_tests_hold_is_applied(client: ApiClient, maps: str) -> None:
    meta = await create(client, maps, config_map(labels={"state": "free"}))
    ops: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/deletionTimestamp", "value": None},
        {"op": "test", "path": "/metadata/labels/state", "value": "free"},
        {"op": "replace", "path": "/metadata/labels/state", "value": "taken"},
    ]
    body = await client.json_patch(f"{maps}/a", ops, priority=FILL, step="assign")
    assert msgspec.json.decode(body, type=KubeObject).metadata.labels == {"state": "taken"}


async def test_names_and_preconditions_are_told_apart(client: ApiClient, maps: str) -> None:
    meta = await create(client, maps, config_map())
    with pytest.raises(errors.AlreadyExists):
        await create(client, maps, config_map())
    with pytest.raises(errors.Conflict):
        await client.delete(f"{maps}/a", uid="another", priority=FILL, step="release")
    stale = config_map(resourceVersion="1")
    with pytest.raises(errors.Conflict):
        await client.put(f"{maps}/a", stale, priority=FILL, step="put")
    await client.delete(f"{maps}/a", uid=meta.uid, priority=FILL, step="release", propagation="Background")
    for request in (
        client.get(f"{maps}/a"),
        client.delete(f"{maps}/a", uid=meta.uid, priority=FILL, step="release"),
    ):
        with pytest.raises(errors.NotFound):
            await request


async def test_a_kind_that_is_not_served_says_nothing_about_its_objects(client: ApiClient) -> None:
    with pytest.raises(errors.NotServed):
        await client.get("/apis/no.such.group/v1/things")


async def test_a_body_that_makes_no_sense_is_a_bad_request(client: ApiClient, maps: str) -> None:
    await create(client, maps, config_map())
    with pytest.raises(errors.BadRequest):
        await client.merge_patch(f"{maps}/a", ["no patch"], priority=FILL, step="x")
    with pytest.raises(errors.BadRequest):
        await client.post(maps, [], priority=FILL, step="x")


async def test_a_used_up_quota_is_no_missing_permission(client: ApiClient, namespace: str, maps: str) -> None:
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    used_up = {"hard": {"count/configmaps": "1"}, "used": {"count/configmaps": "1"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    await create(client, quotas, quota | {"spec": {"hard": used_up["hard"]}})
    await client.merge_patch(f"{quotas}/q/status", {"status": used_up}, priority=FILL, step="x")
    error = await comes_to_be_refused(client, maps, errors.QuotaExceeded)
    assert "exceeded quota: q" in error.message


@contextlib.asynccontextmanager
async def as_service_account(client: ApiClient, namespace: str) -> AsyncIterator[ApiClient]:
    """A client of somebody who may do nothing."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await create(
        client, accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor"}}
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    body = await client.post(f"{accounts}/poor/token", request, priority=FILL, step="token")
    bearer = f"Bearer {json.loads(body)['status']['token']}"
    config = client.config
    poor = ClusterConfig(config.server, namespace, config.ssl, authorization=Authorization(lambda: bearer))
    async with ApiClient(poor) as made:
        yield made


async def test_a_missing_permission_is_forbidden_and_a_bad_token_unauthorized(
    client: ApiClient, namespace: str, maps: str
) -> None:
    async with as_service_account(client, namespace) as poor:
        with pytest.raises(errors.Forbidden) as caught:
            await create(poor, maps, config_map())
        assert type(caught.value) is errors.Forbidden
    config = client.config
    stranger = ClusterConfig(
        config.server, namespace, config.ssl, authorization=Authorization(lambda: "Bearer no")
    )
    async with ApiClient(stranger) as made:
        with pytest.raises(errors.Unauthorized):
            await create(made, maps, config_map())


async def test_who_is_over_their_share_is_told_to_come_back(
    client: ApiClient, namespace: str, maps: str
) -> None:
    pauses: list[float] = []
    statuses: set[int] = set()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    limited = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
    level = {"kind": "PriorityLevelConfiguration", "metadata": {"name": namespace}}
    account = {"name": "poor", "namespace": namespace}
    rule = {
        "subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}],
    }
    schema = {
        "kind": "FlowSchema",
        "metadata": {"name": namespace},
        "spec": {
            "matchingPrecedence": 2,
            "priorityLevelConfiguration": {"name": namespace},
            "rules": [rule],
        },
    }
    version = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1"}
    spec = {"spec": {"type": "Limited", "limited": limited}}
    made = {
        f"{FLOW}/prioritylevelconfigurations": version | level | spec,
        f"{FLOW}/flowschemas": version | schema,
    }
    uids = {path: (await create(client, path, obj)).uid for path, obj in made.items()}
    try:
        async with as_service_account(client, namespace) as poor:
            poor._sleep = pause
            poor.on_request = lambda _, status, __: statuses.add(status)
            deadline = asyncio.get_running_loop().time() + 30.0
            while 429 not in statuses:
                assert asyncio.get_running_loop().time() < deadline, "the flow schema never came into force"
                together = [create(poor, maps, config_map(f"a{number}")) for number in range(30)]
                await asyncio.gather(*together, return_exceptions=True)
        assert statuses == {403, 429}
        assert pauses, "it came back"
        assert min(pauses) >= 1.0, "and not before it was told to"
    finally:
        for path, uid in reversed(uids.items()):
            await client.delete(f"{path}/{namespace}", uid=uid, priority=LATER, step="x")


async def test_a_deadline_that_passed_leaves_the_outcome_unknown(kubeconfig: Path, maps: str) -> None:
    async with ApiClient(load_config(str(kubeconfig)), timeout=0.001) as hasty:
        answers = await asyncio.gather(
            *[create(hasty, maps, config_map(f"a{number}")) for number in range(50)], return_exceptions=True
        )  # at once: most are too slow for a millisecond
    failed = [answer for answer in answers if isinstance(answer, BaseException)]
    assert failed
    assert {type(error) for error in failed} == {errors.UnknownOutcome}


async def test_the_servers_clock_is_ours_on_one_machine(client: ApiClient, maps: str) -> None:
    await client.get(maps)
    assert abs(client.host_ahead()) < 2.0
