"""A webhook as a user would run it: it answers how many VMs a pool is to keep, by https."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Forecast:
    """`answer` is what it says, None: it fails; `asked` is what it was asked, `spec` how a pool names it."""

    def __init__(self) -> None:
        self.answer: Json | None = None
        self.hangs = False
        self.asked: list[Json] = []
        self.spec: Json = {}
        self.over = threading.Event()


@contextmanager
def serving(certificate: Path, key: Path) -> Iterator[Forecast]:
    """On 127.0.0.1, with a certificate for it whose chain is in the same file."""
    forecast = Forecast()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            forecast.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if forecast.hangs:
                forecast.over.wait(60)
            body = json.dumps(forecast.answer or {"error": "none"}).encode()
            self.send_response(500 if forecast.answer is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    forecast.spec = {
        "url": f"https://127.0.0.1:{server.server_address[1]}/warm",
        "caBundle": base64.b64encode(certificate.read_bytes()).decode(),
    }
    try:
        yield forecast
    finally:
        forecast.over.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
