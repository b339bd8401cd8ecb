"""Processes are ended by their own id, in time, and never somebody else's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from e2e.controlplane import processes
from e2e.controlplane.processes import Process, Processes

SLEEPER = [sys.executable, "-S", "-c", "print('up', flush=True)\nimport time\ntime.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-S",
    "-c",
    (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True)\ntime.sleep(600)"
    ),
]


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.01)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path / "state")
    found.folder.mkdir()
    yield found
    found.stop()


def test_what_a_process_writes_is_in_its_log(started: Processes) -> None:
    process = started.start("sleeper", SLEEPER)
    until(lambda: process.lines() == ["up"])
    assert process.tail() == "  sleeper: up"


def test_the_tail_holds_the_last_lines_alone(started: Processes) -> None:
    process = started.start("talker", [sys.executable, "-S", "-c", "for i in range(40): print(i)"])
    until(lambda: not process.alive())
    assert process.tail(2) == "  talker: 38\n  talker: 39"


def test_a_process_that_says_nothing_is_said_to(started: Processes) -> None:
    process = started.start("mute", [sys.executable, "-S", "-c", ""])
    until(lambda: not process.alive())
    assert process.tail() == "  mute wrote nothing"


def test_a_stopped_process_is_gone_and_reaped(started: Processes) -> None:
    process = started.start("sleeper", SLEEPER)
    assert process.alive()
    started.stop()
    assert not psutil.pid_exists(process.pid)
    assert started.started == []


def test_the_newest_is_told_to_end_before_the_one_it_may_need(
    started: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    tell = Process.signal

    def noting(process: Process, number: int) -> None:
        told.append(process.name)
        tell(process, number)

    monkeypatch.setattr(Process, "signal", noting)
    for name in ("first", "second", "third"):
        started.start(name, SLEEPER)
    started.stop()
    assert told == ["third", "second", "first"]


def test_one_can_be_stopped_alone(started: Processes) -> None:
    stays, goes = started.start("stays", SLEEPER), started.start("goes", SLEEPER)
    started.stop("goes")
    assert stays.alive()
    assert not goes.alive()
    assert started.started == [stays]


def test_one_that_ignores_the_request_is_killed(started: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TERM_BOUND", 0.2)
    process = started.start("stubborn", STUBBORN)
    until(lambda: process.lines() == ["up"])
    started.stop()
    assert not psutil.pid_exists(process.pid)


def test_one_that_ended_by_itself_is_told_apart(started: Processes) -> None:
    stays, ends = started.start("stays", SLEEPER), started.start("ends", [sys.executable, "-S", "-c", ""])
    until(lambda: not ends.alive())
    assert started.dead() == [ends]
    assert stays.alive()


def test_an_id_that_belongs_to_somebody_else_by_now_is_left_alone(started: Processes) -> None:
    stranger = started.start("stranger", SLEEPER)
    remembered = Processes(started.folder)
    remembered.started = [Process("ours", stranger.pid, stranger.started - 60, stranger.log)]
    assert remembered.dead() == remembered.started
    remembered.stop()
    assert stranger.alive()


def test_an_id_that_nobody_has_is_no_error(started: Processes) -> None:
    ended = started.start("ended", SLEEPER)
    started.stop()
    remembered = Processes(started.folder)
    remembered.started = [ended]
    remembered.stop()
    assert remembered.started == []


def test_survivors_are_found_again_in_their_folder(tmp_path: Path) -> None:
    first = Processes(tmp_path, survive=True)
    process = first.start("sleeper", SLEEPER)
    found = Processes.load(tmp_path)
    assert found.started == [process]
    found.stop()
    assert not process.alive()
    assert Processes.load(tmp_path).started == []


def test_the_processes_of_another_command_outlive_it_and_end_by_their_folder(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom e2e.controlplane.processes import Processes\n"
        "Processes(Path(sys.argv[1]), survive=True).start('sleeper', sys.argv[2:])\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path), *SLEEPER], check=True)
    found = Processes.load(tmp_path)
    (process,) = found.started
    assert process.alive()
    found.stop()
    assert not process.alive()


def test_a_folder_without_processes_has_none(tmp_path: Path) -> None:
    assert Processes.load(tmp_path / "never").started == []


def test_stopping_nothing_writes_nothing(tmp_path: Path) -> None:
    Processes(tmp_path).stop()
    assert list(tmp_path.iterdir()) == []


def test_every_start_is_on_disk_before_the_next(started: Processes) -> None:
    process = started.start("sleeper", SLEEPER)
    (entry,) = json.loads((started.folder / "processes.json").read_text())
    assert (entry["name"], entry["pid"]) == ("sleeper", process.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's request for it exists on Linux alone")
def test_the_children_of_a_killed_command_end_with_it(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom e2e.controlplane.processes import Processes\n"
        "print(Processes(Path(sys.argv[1])).start('sleeper', sys.argv[2:]).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path), *SLEEPER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.send_signal(signal.SIGKILL)
    (process,) = Processes.load(tmp_path).started
    assert process.pid == pid
    until(lambda: not process.alive())
