"""The client, the reflector and the lease against a real API server: it answers what we believe it does."""

import asyncio
import base64
import contextlib
import json
import secrets
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from controller.kube import errors
from controller.kube.client import ApiClient, Priority
from controller.kube.config import Authorization, ClusterConfig, load_config
from controller.kube.lease import LeaderElection
from controller.kube.objects import KubeObject, ObjectMeta
from controller.kube.reflector import Reflector
from controller.kube.store import Store

pytestmark = pytest.mark.cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
NEW_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
FILL, LATER = Priority.REFILL, Priority.STATUS


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_config(str(kubeconfig)), timeout=10.0) as made:
        yield made


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"x": "1"},
    }


async def create(client: ApiClient, path: str, obj: dict[str, Any]) -> ObjectMeta:
    body = await client.post(path, obj, priority=FILL, step="create")
    return msgspec.json.decode(body, type=KubeObject).metadata


async def eventually(holds: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, "did not come about in time"
        await asyncio.sleep(0.02)


async def comes_to_be_refused(client: ApiClient, path: str, kind: type[errors.ApiError]) -> errors.ApiError:
    """What was just configured is in force a moment later: try until it is."""
    deadline = asyncio.get_running_loop().time() + 30.0
    while asyncio.get_running_loop().time() < deadline:
        try:
            await create(client, path, config_map(f"probe-{secrets.token_hex(4)}"))
        except kind as error:
            return error
        await asyncio.sleep(0.1)
    raise AssertionError("never refused")


# Answers


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
        client.get("/apis/no.such.group/v1/things"),
    ):
        with pytest.raises(errors.NotFound):
            await request


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


# Admission


def webhook(name: str, namespace: str, url: str, bundle: str | None) -> dict[str, Any]:
    mine = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    hook = {
        "name": "guard.bullpen.test",
        "clientConfig": {"url": url, **({"caBundle": bundle} if bundle else {})},
        "rules": [NEW_MAPS],
        "namespaceSelector": mine,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


@contextlib.asynccontextmanager
async def configured(client: ApiClient, **objects: dict[str, Any]) -> AsyncIterator[None]:
    """Cluster-wide admission objects, by the plural of their kind; gone afterwards."""
    uids: dict[str, str] = {}
    try:
        for plural, obj in objects.items():
            path = f"{ADMISSION}/{plural}"
            uids[f"{path}/{obj['metadata']['name']}"] = (await create(client, path, obj)).uid
        yield
    finally:
        for path, uid in uids.items():
            await client.delete(path, uid=uid, priority=LATER, step="x")


@contextlib.asynccontextmanager
async def denying(folder: Path, code: int) -> AsyncIterator[tuple[str, str]]:
    """A webhook in this process that says no: its address and its certificate."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    kind = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=hook -days 2"
    address = ("-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(  # noqa: ASYNC221 - a moment, and nothing else runs yet
        ["openssl", "req", *kind.split(), *address, "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )

    async def review(request: web.Request) -> web.Response:
        uid = (await request.json())["request"]["uid"]
        status = {"code": code, "message": "spec.template: that is not how we do it here"}
        response = {"uid": uid, "allowed": False, "status": status}
        return web.json_response(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        )

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    app = web.Application()
    app.router.add_post("/", review)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/", cert.read_text()
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("code", [400, 403, 422, 500])
async def test_a_webhook_that_says_no_is_heard_whatever_its_code(
    client: ApiClient, namespace: str, maps: str, tmp_path: Path, code: int
) -> None:
    async with denying(tmp_path, code) as (url, certificate):
        bundle = base64.b64encode(certificate.encode()).decode()
        hook = webhook(namespace, namespace, url, bundle)
        async with configured(client, validatingwebhookconfigurations=hook):
            error = await comes_to_be_refused(client, maps, errors.WebhookDenied)
    assert type(error) is errors.WebhookDenied
    assert "that is not how we do it here" in error.message


async def test_a_webhook_that_is_not_there_means_not_applied(
    client: ApiClient, namespace: str, maps: str
) -> None:
    hook = webhook(namespace, namespace, "https://127.0.0.1:1/", None)
    async with configured(client, validatingwebhookconfigurations=hook):
        error = await comes_to_be_refused(client, maps, errors.WebhookUnavailable)
    assert error.status == 500


async def test_an_admission_policy_that_says_no_is_a_denial(
    client: ApiClient, namespace: str, maps: str
) -> None:
    mine = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    version = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": namespace}}
    policy = {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": [NEW_MAPS]},
            "validations": [{"expression": "false", "message": "nothing goes"}],
        },
    }
    binding = {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": namespace, "validationActions": ["Deny"], "matchResources": mine},
    }
    async with configured(
        client,
        validatingadmissionpolicies=version | policy,
        validatingadmissionpolicybindings=version | binding,
    ):
        error = await comes_to_be_refused(client, maps, errors.WebhookDenied)
    assert "nothing goes" in error.message


# Clock


async def test_the_servers_clock_is_ours_on_one_machine(client: ApiClient, maps: str) -> None:
    await client.get(maps)
    assert client.clock_agrees()


# Reflector


class Map(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, str] = {}


@contextlib.asynccontextmanager
async def reflecting(
    client: ApiClient, path: str, selector: str = ""
) -> AsyncIterator[tuple[Store[Map], Reflector[Map]]]:
    store = Store[Map]()
    reflector = Reflector(client, path, Map, store, label_selector=selector)
    task = asyncio.create_task(reflector.run())
    try:
        yield store, reflector
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def names(store: Store[Map]) -> set[str]:
    return {found.metadata.name for found in store}


async def test_a_store_follows_creates_patches_and_deletes(
    client: ApiClient, namespace: str, maps: str
) -> None:
    await create(client, maps, config_map("before"))
    async with reflecting(client, maps) as (store, reflector):
        await asyncio.wait_for(reflector.synced.wait(), 10)
        assert "before" in names(store)
        meta = await create(client, maps, config_map("a"))
        await eventually(lambda: store.by_name(namespace, "a"))
        await client.merge_patch(f"{maps}/a", {"data": {"x": "2"}}, priority=FILL, step="x")
        await eventually(lambda: (found := store.get(meta.uid)) and found.data == {"x": "2"})
        await client.delete(f"{maps}/a", uid=meta.uid, priority=FILL, step="x")
        await eventually(lambda: store.get(meta.uid) is None)


async def test_a_list_of_many_pages_and_large_objects_arrives_whole(client: ApiClient, maps: str) -> None:
    large = config_map("large") | {"data": {"blob": "x" * 400_000}}
    await create(client, maps, large)
    await asyncio.gather(*[create(client, maps, config_map(f"m{number}")) for number in range(300)])
    async with reflecting(client, maps) as (store, reflector):
        await asyncio.wait_for(reflector.synced.wait(), 20)
        assert {f"m{number}" for number in range(300)} <= names(store)
        await client.merge_patch(f"{maps}/large", {"data": {"y": "1"}}, priority=FILL, step="x")
        await eventually(lambda: any("y" in found.data for found in store))


async def test_an_object_that_loses_its_label_goes_and_comes_back(
    client: ApiClient, namespace: str, maps: str
) -> None:
    await create(client, maps, config_map("a", labels={"mine": "yes"}))
    await create(client, maps, config_map("b"))
    async with reflecting(client, maps, "mine=yes") as (store, _):
        await eventually(lambda: names(store) == {"a"})
        for label, expected in ((None, set[str]()), ("yes", {"a"})):
            patch = {"metadata": {"labels": {"mine": label}}}
            await client.merge_patch(f"{maps}/a", patch, priority=FILL, step="x")
            await eventually(lambda wanted=expected: names(store) == wanted)  # type: ignore[misc]
        assert store.by_name(namespace, "a") is not None


def definition(namespace: str) -> dict[str, Any]:
    group = f"{namespace}.test"
    anything = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": anything}],
        },
    }


@contextlib.asynccontextmanager
async def defined(client: ApiClient, crd: dict[str, Any]) -> AsyncIterator[None]:
    uid = (await create(client, CRDS, crd)).uid
    try:
        yield
    finally:
        path = f"{CRDS}/{crd['metadata']['name']}"
        await client.delete(path, uid=uid, priority=LATER, step="x")


async def test_a_kind_that_is_defined_later_is_found_and_a_version_from_before_it_is_too_old(
    client: ApiClient, namespace: str
) -> None:
    async with reflecting(client, f"/apis/{namespace}.test/v1/things") as (_, reflector):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reflector.synced.wait(), 0.5)
        async with defined(client, definition(namespace)):
            await asyncio.wait_for(reflector.synced.wait(), 30)
            other = Reflector(client, f"/apis/{namespace}.test/v1/things", Map, Store[Map]())
            other._version = "1"
            with pytest.raises(errors.Gone):
                await asyncio.wait_for(other._watch(), 30)


# Lease


async def test_of_two_contenders_one_leads_and_the_other_takes_over(
    client: ApiClient, namespace: str
) -> None:
    now = asyncio.get_running_loop().time
    one, two, three = [
        LeaderElection(client, namespace, "bullpen", name, duration=3, renew=1)
        for name in ("one", "two", "three")
    ]
    await one.acquire()
    holding = asyncio.create_task(one.hold())
    waiting = asyncio.create_task(two.acquire())
    await asyncio.sleep(4.5)  # more than the lease lasts
    assert one.time_left() > 0
    assert not waiting.done()
    holding.cancel()  # it dies
    await asyncio.wait_for(waiting, 8)
    assert one.time_left() == 0.0
    assert two.time_left() > 0
    last = asyncio.create_task(three.acquire())
    await asyncio.sleep(0.2)
    released = now()
    await two.release()
    await asyncio.wait_for(last, 5)
    assert now() - released <= 2.0
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/bullpen"
    spec = json.loads(await client.get(path))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("three", 3)
