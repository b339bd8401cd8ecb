import math
import tomllib
from pathlib import Path

import pytest

from benchmarks import handover, scale
from benchmarks.rows import FLOOR, PRODUCT, Row
from benchmarks.thresholds import FILE, Threshold, judge, read

RATE = Threshold("rate", "closed-16/product/rate", "closed-16/floor/rate", at_least=0.65, aim=0.8)
MEMORY = Threshold("memory", "vms/product/rss", at_most=400, aim=300)


def rates(product: float, floor: float) -> list[Row]:
    return [Row("closed-16", PRODUCT, {"rate": product}), Row("closed-16", FLOOR, {"rate": floor})]


@pytest.mark.parametrize(("product", "met"), [(65.0, True), (64.0, False), (100.0, True)])
def test_a_figure_is_judged_against_the_other_sides(product: float, *, met: bool) -> None:
    (verdict,) = judge([RATE], rates(product, 100.0))
    assert verdict.value == pytest.approx(product / 100)
    assert verdict.met is met


@pytest.mark.parametrize(("rss", "met"), [(400.0, True), (401.0, False)])
def test_a_figure_without_another_side_is_judged_as_it_is(rss: float, *, met: bool) -> None:
    (verdict,) = judge([MEMORY], [Row("vms", PRODUCT, {"rss": rss})])
    assert verdict.met is met


def test_what_was_not_measured_is_missed() -> None:
    for verdict in judge([RATE, MEMORY], []):
        assert math.isnan(verdict.value)
        assert not verdict.met


def test_a_figure_against_nothing_is_missed() -> None:
    (verdict,) = judge([RATE], rates(50.0, 0.0))
    assert not verdict.met


def test_a_figure_that_is_not_a_number_is_missed() -> None:
    (verdict,) = judge([MEMORY], [Row("vms", PRODUCT, {"rss": math.nan})])
    assert not verdict.met


def test_an_aim_lies_on_the_same_side_as_its_limit() -> None:
    assert RATE.aim_met_by(0.8)
    assert not RATE.aim_met_by(0.7)
    assert MEMORY.aim_met_by(300)
    assert not MEMORY.aim_met_by(301)


def test_a_limit_reads_as_a_person_writes_it() -> None:
    assert RATE.limit == "≥ 0.65"
    assert MEMORY.limit == "≤ 400"


@pytest.mark.parametrize("limits", ["", "at_least = 1\nat_most = 2"])
def test_a_threshold_needs_exactly_one_limit(tmp_path: Path, limits: str) -> None:
    file = tmp_path / "thresholds.toml"
    file.write_text(f'[[scale]]\nname = "x"\nfigure = "a/b/c"\n{limits}\n')
    with pytest.raises(ValueError, match="at_least or at_most"):
        read("scale", file)


def test_two_thresholds_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "thresholds.toml"
    file.write_text('[[scale]]\nname = "x"\nfigure = "a/b/c"\nat_most = 1\n' * 2)
    with pytest.raises(ValueError, match="same name"):
        read("scale", file)


@pytest.mark.parametrize("benchmark", ["handover", "scale"])
def test_our_thresholds_can_be_read_and_each_has_its_aim_beyond_its_limit(benchmark: str) -> None:
    found = read(benchmark)
    assert found
    for each in found:
        assert each.aim is None or each.met_by(each.aim), each.name


def test_every_threshold_names_a_row_that_a_full_run_has() -> None:
    sizes = handover.Sizes()
    known = {f"closed-{workers}" for workers in sizes.workers}
    known |= {f"poisson-{share:g}" for share in sizes.shares}
    known |= {"burst", "refill", "refill-none", "overload", "drift"}
    known |= {f"vms-{count}" for count in scale.Sizes().counts}
    entries = [each for group in tomllib.loads(FILE.read_text()).values() for each in group]
    for entry in entries:
        for named in (entry["figure"], entry.get("against")):
            if named:
                row, side, _ = named.split("/")
                assert row in known
                assert side in {FLOOR, PRODUCT}
