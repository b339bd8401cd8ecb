"""How progress is told where there is no terminal."""

from __future__ import annotations

import pytest

from e2e.controlplane.progress import Progress, elapsed


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.9, "0 s"), (59.9, "59 s"), (60, "1 min 00 s"), (125, "2 min 05 s")]
)
def test_a_length_of_time_reads_well(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text


def test_a_plain_line_appears_every_quarter_of_a_minute_and_no_oftener() -> None:
    clock, said = Clock(), list[str]()
    with Progress("building it", said.append, terminal=False, clock=clock) as progress:
        for clock.now in range(32):
            progress.tick()
    assert said == [
        "building it …",
        "building it, 15 s so far",
        "building it, 30 s so far",
        "building it: done in 31 s",
    ]


def test_work_that_fails_is_not_called_done() -> None:
    clock, said = Clock(), list[str]()

    def work() -> None:
        with Progress("building it", said.append, terminal=False, clock=clock):
            clock.now = 5
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        work()
    assert said[-1] == "building it: stopped after 5 s"


def test_a_terminal_gets_a_spinner_and_one_line_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    clock, said = Clock(), list[str]()
    with Progress("building it", said.append, terminal=True, clock=clock) as progress:
        clock.now = 3
        progress.tick()
    assert said == ["building it: done in 3 s"]
    assert "building it" in capsys.readouterr().err
