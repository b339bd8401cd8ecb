"""`python -m controller` with what a person gets wrong: a sentence and exit code 2, never a stack trace."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from e2e.install import ROOT


def _run(*arguments: str, **environ: str) -> tuple[int, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("BULLPEN_", "KUBE"))}
    done = subprocess.run(
        [sys.executable, "-m", "controller", *arguments],
        cwd=ROOT,
        env={**kept, "HOME": "/nowhere", **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "environ", "sentence"),
    [
        pytest.param(
            ["--lease-duration", "10 minutes"],
            {},
            "--lease-duration (or BULLPEN_LEASE_DURATION): '10 minutes' is no duration",
            id="a duration",
        ),
        pytest.param([], {"BULLPEN_LOG_LEVEL": "loud"}, "BULLPEN_LOG_LEVEL", id="a word, in the environment"),
        pytest.param(["--max-hand-overs", "0"], {}, "--max-hand-overs", id="a number"),
        pytest.param(["--no-such-flag", "1"], {}, "--no-such-flag", id="an unknown flag"),
        pytest.param([], {}, "no usable cluster configuration", id="no cluster"),
        pytest.param(
            ["--kubeconfig", "/nowhere/config"], {}, "/nowhere/config", id="a file that is not there"
        ),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    arguments: list[str], environ: dict[str, str], sentence: str
) -> None:
    code, said = _run(*arguments, **environ)
    assert code == 2
    assert sentence in said
    assert "Traceback" not in said


def test_two_mistakes_are_told_at_once() -> None:
    _, said = _run("--log-level", "loud", "--max-hand-overs", "0")
    assert [line.split(" ")[0] for line in said.splitlines()] == ["--max-hand-overs", "--log-level"]
