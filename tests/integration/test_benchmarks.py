"""One small run of each benchmark, from the command to the JSON: what it measures is judged elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks.__main__ import main

pytestmark = pytest.mark.cluster


def run(benchmark: str, folder: Path) -> dict[str, Any]:
    file = folder / "figures.json"
    assert main([benchmark, "--quick", "--json", str(file)]) == 0
    found: dict[str, Any] = orjson.loads(file.read_bytes())
    return found


def test_a_quick_hand_over_benchmark_measures_both_sides_and_loses_no_claim(tmp_path: Path) -> None:
    rows = run("handover", tmp_path)["rows"]
    sides = {(row["name"], row["side"]) for row in rows}
    for name in ("closed-16", "poisson-0.25", "poisson-0.6", "burst"):
        assert {(name, "floor"), (name, "product")} <= sides
    for row in rows:
        assert row["figures"]["claims"] > 0, row["name"]
        assert row["figures"]["failed"] == 0, row["notes"]
    (busy,) = [row for row in rows if (row["name"], row["side"]) == ("closed-16", "product")]
    assert busy["figures"]["hot_writes"] >= 2
    assert busy["figures"]["server_writes"] == pytest.approx(busy["figures"]["counted_writes"], rel=0.02)


def test_a_quick_scale_benchmark_measures_memory_start_and_cpu(tmp_path: Path) -> None:
    small, large = run("scale", tmp_path)["rows"]
    assert small["figures"]["vms"] < large["figures"]["vms"]
    for row in (small, large):
        assert row["figures"]["first_s"] > 0
        assert row["figures"]["rss_mib"] > 20
        assert row["figures"]["cpu_controller_ms"] > 0
        assert row["figures"]["failed"] == 0
