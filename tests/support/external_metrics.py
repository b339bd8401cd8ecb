"""An external metrics API on this machine, as KEDA or an adapter would bring one: a number that a test sets.

The API server passes requests on to it by an APIService, so that HorizontalPodAutoscalers ask it as they do
on any cluster.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from e2e.rest import Rest

Json = dict[str, Any]

GROUP = "external.metrics.k8s.io"
VERSION = f"{GROUP}/v1beta1"
SERVICE = "external-metrics"


class ExternalMetrics:
    """`value` is what every metric of every namespace is, as a quantity; `asked` are the paths that came."""

    def __init__(self) -> None:
        self.value = "0"
        self.asked: list[str] = []

    def answer(self, path: str) -> Json:
        """What the API server, or an autoscaler through it, is told."""
        self.asked.append(path)
        if "/namespaces/" not in path:
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": VERSION,
                "resources": [
                    {
                        "name": "*",
                        "singularName": "",
                        "namespaced": True,
                        "kind": "ExternalMetricValueList",
                        "verbs": ["get"],
                    }
                ],
            }
        name = path.partition("?")[0].rpartition("/")[2]
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        item = {"metricName": name, "metricLabels": {}, "timestamp": at, "value": self.value}
        return {"kind": "ExternalMetricValueList", "apiVersion": VERSION, "metadata": {}, "items": [item]}


@contextmanager
def serving(api: Rest, certificate: Path, key: Path) -> Iterator[ExternalMetrics]:
    """Serve it with a certificate for 127.0.0.1, and have the API server pass requests on to it."""
    metrics = ExternalMetrics()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = json.dumps(metrics.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        _register(api, server.server_address[1])
        yield metrics
    finally:
        api.delete(f"/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.{GROUP}")
        api.delete(f"/api/v1/namespaces/default/services/{SERVICE}")
        server.shutdown()
        server.server_close()
        thread.join(10)


def _register(api: Rest, port: int) -> None:
    # The name of a host: what has an address of the cluster would need a proxy on this machine to be reached.
    outside = {"type": "ExternalName", "externalName": "localhost"}
    made = api.post("/api/v1/namespaces/default/services", {"metadata": {"name": SERVICE}, "spec": outside})
    assert made.ok, made.message
    about = {
        "group": GROUP,
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": SERVICE, "port": port},
    }
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    made = api.post(path, {"metadata": {"name": f"v1beta1.{GROUP}"}, "spec": about})
    assert made.ok, made.message
    api.wait(f"{path}/v1beta1.{GROUP}", _available, seconds=60)


def _available(found: Any) -> bool:
    conditions = found.body.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Available", "True") for each in conditions)
