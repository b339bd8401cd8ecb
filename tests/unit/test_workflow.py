"""The workflow for public runners runs make targets that exist, by pinned actions, with few rights."""

from __future__ import annotations

import re
from typing import Any

import yaml

from e2e.install import ROOT

TEXT = (ROOT / ".github" / "workflows" / "ci.yaml").read_text()
WORKFLOW: dict[str, Any] = yaml.safe_load(TEXT)
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_every_action_is_pinned_to_a_release() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", each)] == []


def test_a_run_may_read_the_repository_and_nothing_more() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in WORKFLOW["jobs"].values())


def test_it_runs_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    runs = [step["run"].split() for step in STEPS if "run" in step]
    assert {words[0] for words in runs} == {"make"}
    assert {words[1] for words in runs} == {"lint", "test", "e2e-kind"}
    assert {words[1] for words in runs} <= targets


def test_every_job_ends_by_itself() -> None:
    assert all(job["timeout-minutes"] <= 90 for job in WORKFLOW["jobs"].values())
