"""What webhooks and policies of a real API server say when they say no."""

import base64
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from controller.kube import errors
from controller.kube.client import ApiClient
from tests.integration.kube.on_server import LATER, comes_to_be_refused, create

pytestmark = pytest.mark.cluster

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
NEW_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


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
