"""The commands without a cluster: help, recordings, and every way in which looking fails."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import orjson
import pytest

from auditor import Auditor
from auditor.events import Change, Kind, Recording, Rule, Violation
from auditor.judge import SWEEP_EVERY
from cli import app, audit, trouble
from e2e.install import ROOT
from tests.unit.auditor.story import Story
from tests.unit.cli.running import kubeconfig, run

DOUBLE = ROOT / "tests/data/double-hand-over.jsonl"


# ---- help


def test_without_a_command_it_says_which_there_are() -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert "Usage: kubectl bullpen" in out
    assert "audit" in out


def test_help_speaks_of_what_kubectl_users_know_and_of_exit_codes() -> None:
    code, out, _ = run("audit", "--help")
    assert code == 0
    for words in ("--context", "--kubeconfig", "--namespace", "-A", "--all-namespaces", "Exit codes", "10s"):
        assert words in out


@pytest.mark.parametrize("program", [["-m", "cli"], ["-c", "from cli.app import main; main()"]])
def test_it_runs_as_a_module_and_as_a_program_of_its_own(program: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *program, "audit", "--replay", str(DOUBLE), "-o", "json"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert orjson.loads(done.stdout)["summary"]["violation"] == 3


# ---- recordings


def test_a_recording_is_judged_and_what_is_broken_ends_with_one() -> None:
    code, out, _ = run("audit", "--replay", DOUBLE)
    assert code == 1
    assert "[I5]" in out
    assert "1 pool, 2 claims, 1 VM: 3 violations" in out


def test_what_is_left_at_the_end_of_a_recording_is_told(tmp_path: Path) -> None:
    story = Story()
    story.bound()
    story.remove(Kind.CLAIM, "claim")
    Recording(tmp_path / "events.jsonl").add(story.events)
    code, out, _ = run("audit", "--replay", tmp_path / "events.jsonl")
    assert code == 1
    assert "which is gone" in out


def test_a_clean_recording_ends_with_zero(tmp_path: Path) -> None:
    story = Story()
    story.bound()
    Recording(tmp_path / "events.jsonl").add(story.events)
    code, out, _ = run("audit", "--replay", tmp_path / "events.jsonl")
    assert code == 0
    assert "nothing is lost, nothing is doubled" in out


def test_what_a_recording_saw_is_counted_also_where_it_is_long_gone(tmp_path: Path) -> None:
    story = Story()
    while len(story.events) < 3 * SWEEP_EVERY:
        story.bound()
        story.remove(Kind.CLAIM, "claim")
        story.destroy()
    Recording(tmp_path / "events.jsonl").add(story.events)
    _, out, _ = run("audit", "--replay", tmp_path / "events.jsonl", "-o", "json")
    made = Counter(event.kind for event in story.events if event.change is Change.ADDED)
    seen = {"pools": made[Kind.POOL], "claims": made[Kind.CLAIM], "vms": made[Kind.VM]}
    assert orjson.loads(out)["seen"] == seen


@pytest.mark.parametrize(
    "options",
    [
        ["--watch"],
        ["--for", "1m"],
        ["--record", "events.jsonl"],
        ["-n", "ci"],
        ["-A"],
        ["--context", "prod"],
        ["--kubeconfig", "config"],
    ],
)
def test_what_a_recording_has_no_use_for_is_not_ignored(options: list[str]) -> None:
    code, out, error = run("audit", "--replay", DOUBLE, *options)
    assert (code, out) == (2, "")
    assert "a file is judged, no cluster" in error


# ---- it could not look


@contextmanager
def answering(status: int, message: str, *, to: str = "bullpen.dev") -> Iterator[str]:
    """A server that refuses so what has `to` in its path, and has nothing of anything else; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            refused = to in self.path
            body = {"message": message} if refused else {"metadata": {"resourceVersion": "1"}, "items": []}
            written = orjson.dumps(body)
            self.send_response(status if refused else 200)
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error: that is what the tests read."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join(30)


FORBIDDEN = 'virtualmachinepools.bullpen.dev is forbidden: User "dev" cannot list resource'


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (401, "Unauthorized", "does not know who you are"),
        (403, FORBIDDEN, 'User "dev" cannot list resource; docs/audit.md lists the rights'),
        (404, "could not find the requested resource", "virtualmachinepools: are Bullpen's definitions"),
        (500, "etcd is away", "etcd is away"),
    ],
)  # fmt: skip
def test_a_refusal_is_a_sentence_and_an_exit_code_of_its_own(
    tmp_path: Path, status: int, message: str, words: str
) -> None:
    with answering(status, message) as server:
        code, out, error = run("audit", "-A", "--kubeconfig", kubeconfig(tmp_path, server))
    assert (code, out) == (trouble.COULD_NOT_LOOK, "")
    assert words in error
    assert error.count("\n") == 1


def test_who_may_not_see_namespaces_is_audited_all_the_same(tmp_path: Path) -> None:
    with answering(403, "no", to="namespaces?") as server:
        code, out, _ = run("audit", "-A", "--kubeconfig", kubeconfig(tmp_path, server))
    assert code == 0
    assert out.startswith("all namespaces, 0 pools, 0 claims, 0 VMs: ")


def test_a_namespace_that_is_not_there_is_no_clean_one(tmp_path: Path) -> None:
    with answering(404, 'namespaces "mine" not found', to="namespaces/mine") as server:
        code, _, error = run("audit", "--kubeconfig", kubeconfig(tmp_path, server))
    assert (code, error) == (trouble.COULD_NOT_LOOK, "could not look: there is no namespace mine\n")


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{closed.getsockname()[1]}"  # bound, and nobody listens
        code, _, error = run("audit", "--kubeconfig", kubeconfig(tmp_path, server))
    assert code == trouble.COULD_NOT_LOOK
    assert f"{server} can't be reached: Connection refused" in error


@pytest.mark.parametrize("content", ["", "{", "apiVersion: v1\nkind: Config\n"])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content, encoding="utf-8")
    code, _, error = run("audit", "--kubeconfig", path)
    assert code == trouble.COULD_NOT_LOOK
    assert error.startswith(f"could not look: no usable cluster in {path}: ")
    assert "Traceback" not in error


def test_a_context_that_there_is_not_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    code, _, error = run("audit", "--kubeconfig", path, "--context", "prod")
    assert code == trouble.COULD_NOT_LOOK
    assert "prod" in error


def test_without_any_configuration_it_says_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    code, _, error = run("audit")
    assert code == trouble.COULD_NOT_LOOK
    assert f"there is no {tmp_path / 'absent'}, and this is not a pod" in error


@pytest.mark.parametrize(
    ("content", "words"), [(None, "no such file"), ("", " holds no event"), ("{}\n", ":1 is no event")]
)
def test_a_file_that_is_no_recording_is_named(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    code, _, error = run("audit", "--replay", path)
    assert code == trouble.COULD_NOT_LOOK
    assert words in error


@pytest.mark.parametrize(("option", "value"), [("--settle", "3 days"), ("--for", "x"), ("-o", "xml")])
def test_a_wrong_option_is_a_wrong_option(option: str, value: str) -> None:
    code, _, error = run("audit", option, value)
    assert code == 2
    assert value in error
    assert "Value error" not in error


def test_a_mistake_of_our_own_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(app, "app", broken)
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == trouble.COULD_NOT_LOOK
    assert "ZeroDivisionError" in capsys.readouterr().err


# ---- watching


def watch(directory: Path, *arguments: object) -> tuple[int, str, str]:
    """Of a cluster with nothing in it, whose watches end at once and are begun anew."""
    with answering(404, 'namespaces "typo" not found', to="namespaces/typo") as server:
        return run("audit", *arguments, "--kubeconfig", kubeconfig(directory, server))


@pytest.mark.parametrize(("where", "words"), [((), "namespace mine"), (("-A",), "all namespaces")])
def test_a_watch_says_at_once_what_it_watches(tmp_path: Path, where: tuple[str, ...], words: str) -> None:
    code, out, error = watch(tmp_path, "--for", "10ms", *where, "-o", "json")
    assert code == 0
    assert orjson.loads(out)["of"] == words
    assert error == f"watching {words}: 0 pools, 0 claims, 0 VMs; Ctrl-C ends it\n"


def test_a_namespace_that_is_not_there_is_not_watched(tmp_path: Path) -> None:
    code, out, error = watch(tmp_path, "--for", "1m", "-n", "typo")
    assert (code, out, error) == (trouble.COULD_NOT_LOOK, "", "could not look: there is no namespace typo\n")


def test_a_watch_that_can_keep_no_record_ends_at_once_and_says_why(tmp_path: Path) -> None:
    begun = time.monotonic()
    code, out, error = watch(tmp_path, "--for", "1m", "--record", tmp_path / "absent" / "events.jsonl")
    assert (code, out) == (trouble.COULD_NOT_LOOK, "")
    assert error.endswith(f"could not look: {tmp_path}/absent/events.jsonl: no such file or directory\n")
    assert time.monotonic() - begun < 30


class Over(Exception):  # noqa: N818 - it is the end of a story
    """Nothing comes any more."""


class Judging:
    """Stands for the auditor: at each look it has found other things."""

    def __init__(self, *looks: list[Violation]) -> None:
        self.looks, self.violations = list(looks), list[Violation]()

    def check(self) -> None:
        if not self.looks:
            raise Over
        self.violations = self.looks.pop(0)


async def test_each_finding_is_told_once_also_after_one_that_was_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, wrong, two = (Violation(Rule.I1, rv, "vm", str(rv)) for rv in (1, 2, 3))
    auditor = cast("Auditor", Judging([one, wrong], [one], [one, two], [one, two]))
    told: list[str] = []
    monkeypatch.setattr(audit, "_LOOK", 0.01)
    with pytest.raises(Over):
        await audit._watched(auditor, None, lambda found: told.append(found.message))
    assert told == ["1 [I1]", "2 [I1]", "3 [I1]"]
