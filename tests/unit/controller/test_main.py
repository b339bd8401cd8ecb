"""`python -m controller` with what a person gets wrong: a sentence and exit code 2, never a stack trace."""

from __future__ import annotations

import os
import sys

import pytest

from controller import __main__ as program
from controller.settings import Settings


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting and no cluster of this machine's, and the tests' own logging stays."""
    for name in [name for name in os.environ if name.startswith(("BULLPEN_", "KUBE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setattr(program, "configure_logging", lambda _settings: None)


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["controller", *arguments])
    try:
        return program.main()
    except SystemExit as ended:  # an unknown flag is the argument parser's
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ["--lease-duration", "10 minutes"],
            "--lease-duration (or BULLPEN_LEASE_DURATION): '10 minutes' is no duration",
            id="a duration",
        ),
        pytest.param(
            ["--max-hand-overs", "0"], "--max-hand-overs (or BULLPEN_MAX_HAND_OVERS): ", id="a number"
        ),
        pytest.param(["--listen", "nonsense"], "write it as host:port", id="an address"),
        pytest.param(["--listen", "127.0.0.1:99999"], "write it as host:port", id="a port"),
        pytest.param(["--lease-duration", "0s"], "write 15s", id="a lease nobody can keep"),
        pytest.param(["--no-such-flag", "1"], "--no-such-flag", id="an unknown flag"),
        pytest.param([], "no usable cluster configuration", id="no cluster"),
        pytest.param(["--kubeconfig", "/nowhere/config"], "/nowhere/config", id="a file that is not there"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(monkeypatch, *arguments) == 2
    assert sentence in capsys.readouterr().err


def test_a_mistake_in_the_environment_is_told_by_its_name_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BULLPEN_LOG_LEVEL", "loud")
    assert _run(monkeypatch) == 2
    assert "BULLPEN_LOG_LEVEL" in capsys.readouterr().err


def test_two_mistakes_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(monkeypatch, "--log-level", "loud", "--max-hand-overs", "0")
    said = capsys.readouterr().err
    assert [line.split(" ")[0] for line in said.splitlines()] == ["--max-hand-overs", "--log-level"]


def test_every_setting_is_described_in_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')}" in shown
        assert field.description
