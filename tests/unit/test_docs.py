"""What the pages say exists: links, make targets, modules, paths, and a word on every reason."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from crds.conditions import ClaimReason, PoolReason
from e2e.install import ROOT
from e2e.tour import commands

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HAND_WRITTEN = [page for page in PAGES if page.name != "state-machines.md"]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_TOP = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
_LIMIT = 130  # characters a line of prose may have; tables and captured output may be wider


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    prose = _FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _links(page: Path) -> Iterator[str]:
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        if not re.match(r"[a-z]+:", target):
            yield target


def _resolves(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    found = (page.parent / path).resolve() if path else page
    return found.exists() and (not anchor or anchor in _anchors(found))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_resolves_to_a_file_and_its_heading(page: Path) -> None:
    assert [target for target in _links(page) if not _resolves(page, target)] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    text = page.read_text()
    spoken = "\n".join([*_CODE.findall(_FENCE.sub("", text)), *_FENCE.findall(text)])
    assert set(re.findall(r"^(?:\$ )?make ([a-z0-9-]+)", spoken, re.MULTILINE)) <= targets


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_module_that_a_page_runs_can_be_run(page: Path) -> None:
    for module in set(re.findall(r"python -m ([a-z_0-9.]+[a-z_0-9])", page.read_text())):
        found = importlib.util.find_spec(module)
        assert found is not None, module
        if found.submodule_search_locations is not None:
            assert importlib.util.find_spec(f"{module}.__main__") is not None, module


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=_name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    for code in _CODE.findall(_FENCE.sub("", page.read_text())):
        path = code.split("#")[0]
        if path.split("/")[0] in _TOP and "/" in path and " " not in path:
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=_name)
def test_prose_fits_a_screen(page: Path) -> None:
    prose = _FENCE.sub("", page.read_text()).splitlines()
    assert [line for line in prose if len(line) > _LIMIT and not line.startswith("|")] == []


def _mentioned(text: str) -> set[str]:
    return set(_CODE.findall(text))


@pytest.mark.parametrize("reason", [*PoolReason, *ClaimReason], ids=lambda reason: str(reason.value))
def test_troubleshooting_says_what_to_do_about_every_reason(reason: PoolReason | ClaimReason) -> None:
    _, pools, claims, _ = re.split(
        r"^## ", (ROOT / "docs/troubleshooting.md").read_text(), flags=re.MULTILINE
    )
    assert reason.value in _mentioned(pools if isinstance(reason, PoolReason) else claims)


def test_troubleshooting_knows_no_reason_that_does_not_exist() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text()
    first_cells = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    named = {reason for cell in first_cells for reason in _CODE.findall(cell)}
    assert named <= {reason.value for reason in (*PoolReason, *ClaimReason)}


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    led_to = {(index.parent / target.partition("#")[0]).resolve() for target in _links(index)}
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {index} <= led_to


def test_every_example_is_used_by_a_page() -> None:
    text = "".join(page.read_text() for page in PAGES) + (ROOT / "e2e" / "demo.py").read_text()
    assert [path.name for path in (ROOT / "examples").iterdir() if f"examples/{path.name}" not in text] == []


def test_the_tour_applies_files_that_are_there() -> None:
    tour = commands((ROOT / "README.md").read_text())
    applied = {found for each in tour for found in re.findall(r"-f (\S+)", each.line)}
    assert applied
    assert [path for path in applied if not (ROOT / path).is_file()] == []
