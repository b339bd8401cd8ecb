"""The commands run in this process, and an API server that answers what a test wrote down."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import yaml
from typer.testing import CliRunner

from cli import app

Answer = tuple[int, Mapping[str, Any]]


def run(*arguments: object) -> tuple[int, str, str]:
    """The exit code, standard output, standard error."""
    done = CliRunner().invoke(app.app, [str(each) for each in arguments], prog_name="kubectl bullpen")
    return done.exit_code, done.stdout, done.stderr


def kubeconfig(directory: Path, server: str, **user: str) -> Path:
    path = directory / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "mine"}}],
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": user or {"token": "secret"}}],
    }
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


@contextmanager
def serving(answers: Mapping[str, Answer]) -> Iterator[str]:
    """A server with these answers by path, and 404 for all else; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(self.path.partition("?")[0], (404, {"message": "not found"}))
            written = orjson.dumps(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error: that is what the tests read."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(30)
