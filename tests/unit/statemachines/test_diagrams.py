"""The reference page and the command that writes it."""

from pathlib import Path
from typing import Any

import pytest

from statemachines import claim, diagrams, instance
from statemachines.base import Transition


def test_the_page_in_the_repository_is_current() -> None:
    assert diagrams.PAGE.read_text(encoding="utf-8") == diagrams.page()


def test_the_page_draws_and_explains_every_move() -> None:
    page = diagrams.page()

    assert page.count("stateDiagram-v2") == 2
    rows: list[Transition[Any, Any]] = [*instance.TRANSITIONS, *claim.TRANSITIONS]
    for row in rows:
        assert f"| {row.trigger} | {row.source} | {row.dest} |" in page
        assert row.reason in page
        assert f"{row.source} --> {row.dest}: " in page
    for state in (*instance.State, *claim.State):
        assert f"| {state} | {state.meaning} | {state.observed} |" in page


def test_no_cell_breaks_its_table() -> None:
    rows = [line for line in diagrams.page().splitlines() if line.startswith("| ")]

    assert {line.count("|") for line in rows} == {3, 4, 6}


def test_check_tells_an_old_page_from_a_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diagrams, "PAGE", tmp_path / "reference" / "page.md")

    assert diagrams.main(["--check"]) == 1
    assert "run: python -m statemachines.diagrams" in capsys.readouterr().err
    assert diagrams.main([]) == 0
    assert diagrams.main(["--check"]) == 0
    diagrams.PAGE.write_text("edited by hand", encoding="utf-8")
    assert diagrams.main(["--check"]) == 1
