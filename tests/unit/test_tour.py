"""The tour's reader and runner, on a README of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.tour import Command, TourError, commands, rewritten, run

README = """\
## Before
```console
$ not of the tour
```
## A five-minute tour
Look:
```console
$ first 'with words'
old output
$ second
```
```console refused
$ a mistake
```
```sh
not shown as output
```
## After
```console
$ not of the tour either
```
"""


def test_only_the_tours_commands_are_read_and_in_order() -> None:
    assert commands(README) == [
        Command("first 'with words'"),
        Command("second"),
        Command("a mistake", refused=True),
    ]


def test_a_readme_without_a_tour_is_an_error() -> None:
    with pytest.raises(TourError, match="no section"):
        commands("## Before\n")


def test_output_takes_the_place_of_the_old_one_and_nothing_else_changes() -> None:
    written = rewritten(README, iter(["new\noutput\n", "", "no: that is wrong\n"]))
    assert "$ first 'with words'\nnew\noutput\n$ second\n```" in written
    assert "```console refused\n$ a mistake\nno: that is wrong\n```" in written
    assert "old output" not in written
    assert commands(written) == commands(README)
    assert written.split("## After")[1] == README.split("## After")[1]


def test_writing_the_same_output_twice_changes_nothing() -> None:
    outputs = ["one\n", "two\n", "three\n"]
    once = rewritten(README, iter(outputs))
    assert rewritten(once, iter(outputs)) == once


def test_what_a_command_prints_comes_back_without_trailing_blanks(tmp_path: Path) -> None:
    found = run(Command("printf 'a  \\n\\nb\\n\\n\\n'; echo $KUBECONFIG >&2"), tmp_path / "config")
    assert found == f"a\n\nb\n\n\n{tmp_path / 'config'}\n"
    assert run(Command("printf 'a  \\n\\n'"), tmp_path) == "a\n"


def test_kubectl_is_the_one_of_this_environment(tmp_path: Path) -> None:
    assert "Client Version" in run(Command("kubectl version --client"), tmp_path / "none")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(Command("echo oh; false"), id="fails"),
        pytest.param(Command("false | echo oh"), id="fails in the middle"),
        pytest.param(Command("echo oh", refused=True), id="was to be refused and is not"),
    ],
)
def test_a_command_that_does_not_come_out_as_shown_is_an_error(command: Command, tmp_path: Path) -> None:
    with pytest.raises(TourError, match="oh"):
        run(command, tmp_path)


def test_a_mistake_that_is_refused_shows_the_refusal(tmp_path: Path) -> None:
    assert run(Command("echo no >&2; false", refused=True), tmp_path) == "no\n"
