"""The chart's copies of the definitions are current. (A chart can't read outside its own folder.)"""

from __future__ import annotations

from pathlib import Path

from e2e.install import BULLPEN, ROOT

COPIES = ROOT / "charts" / "bullpen" / "files" / "crds"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*")}


def test_the_chart_holds_the_generated_definitions() -> None:
    assert contents(COPIES) == contents(BULLPEN), "run `make generate`"
