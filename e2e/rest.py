"""A small synchronous client for what stands around the product: set-up, tests, the demo.

It returns statuses instead of raising, since a refusal is what a test often asks for.
It must never be used by the product itself, whose client has priorities, time-outs and typed errors.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

# Half of the official package has types; the other half makes calls of it look unsound.
_client: Any = kubernetes_client
_config: Any = kubernetes_config
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Answer(NamedTuple):
    """The HTTP status and the decoded body (text where it isn't JSON)."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """The server's sentence where it refused."""
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


class Rest:
    """Requests to the cluster of one kubeconfig, with its credentials. Safe to use from several threads."""

    def __init__(self, kubeconfig: Path) -> None:
        settings = _client.Configuration()
        _config.load_kube_config(
            config_file=str(kubeconfig), client_configuration=settings, persist_config=False
        )
        if urlsplit(settings.host).hostname in _LOOPBACK:
            settings.proxy = None  # a proxy of the environment can't reach our own machine
        self._client = _client.ApiClient(settings)

    @property
    def server(self) -> str:
        """Where the API server is, as a URL without a path."""
        return str(self._client.configuration.host)

    def get(self, path: str, **params: str | int) -> Answer:
        return self.request("GET", path, params=params)

    def post(self, path: str, body: Any, **params: str | int) -> Answer:
        return self.request("POST", path, body, params=params)

    def put(self, path: str, body: Any, **params: str | int) -> Answer:
        return self.request("PUT", path, body, params=params)

    def patch(self, path: str, body: Any, **params: str | int) -> Answer:
        """A JSON patch when the body is a list of operations, a merge patch when it is an object."""
        kind = "application/json-patch+json" if isinstance(body, list) else "application/merge-patch+json"
        return self.request("PATCH", path, body, params=params, content_type=kind)

    def apply(self, path: str, body: Any, *, manager: str) -> Answer:
        """Server-side apply that takes the fields over from whoever holds them."""
        params: dict[str, str | int] = {"fieldManager": manager, "force": "true"}
        return self.request("PATCH", path, body, params=params, content_type="application/apply-patch+yaml")

    def delete(self, path: str, body: Any = None, **params: str | int) -> Answer:
        """The body may hold DeleteOptions: preconditions, propagationPolicy."""
        return self.request("DELETE", path, body, params=params)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: dict[str, str | int] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        url = self.server + path + (f"?{urlencode(params)}" if params else "")
        headers = {"Accept": "application/json, */*", "Content-Type": content_type}
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        sent = None if body is None else json.dumps(body)
        answer = self._client.rest_client.pool_manager.request(
            method, url, body=sent, headers=headers, timeout=30.0, retries=False
        )
        text = answer.data.decode()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return Answer(answer.status, json.loads(text) if is_json and text else text)

    def wait(self, path: str, until: Callable[[Answer], bool], *, seconds: float = 30.0) -> Answer:
        """Ask until the answer is as wanted and return it; TimeoutError shows the last one."""
        deadline = time.monotonic() + seconds
        while not until(answer := self.get(path)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} after {seconds:.0f} s: {answer.status} {json.dumps(answer.body)}")
            time.sleep(0.05)
        return answer

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
