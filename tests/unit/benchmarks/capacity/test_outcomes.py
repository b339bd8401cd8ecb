import math
from pathlib import Path

import pytest

from benchmarks.capacity import outcomes, rules, storms, traces
from benchmarks.capacity.outcomes import Outcome
from benchmarks.capacity.report import MISSED, SHOWN, Report
from benchmarks.rows import Row
from benchmarks.thresholds import judge


def outcome(side: str, seed: int, hit: float, idle: float, level: float = 0.99) -> Outcome:
    return Outcome("office-hours", "weekly", level, side, seed, 1_000, hit, idle, 12.0, 3.0)


def story(engine: list[float], less: list[float], idle: float = 40.0) -> list[Row]:
    """The same hit ratios for each seed; the static pool idles 100 hours a day, the oracle 30."""
    return outcomes.summed(
        [
            *(outcome(outcomes.ENGINE, seed, hit, idle) for seed, hit in enumerate(engine)),
            *(outcome(outcomes.LESS, seed, hit, idle - 20) for seed, hit in enumerate(less)),
            *(outcome(outcomes.STATIC, seed, 0.99, 100.0) for seed in range(len(engine))),
            *(outcome(outcomes.ORACLE, seed, 0.99, 30.0) for seed in range(len(engine))),
        ]
    )


def figures(rows: list[Row], side: str = outcomes.ENGINE) -> dict[str, float]:
    (found,) = [row.figures for row in rows if row.side == side]
    return found


def test_the_interval_is_students_over_the_seeds() -> None:
    assert outcomes.interval([1.0, 2.0, 3.0]) == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert outcomes.interval([0.5, 0.5]) == 0.0


def test_one_seed_alone_has_no_interval() -> None:
    assert math.isinf(outcomes.interval([0.99]))


def test_what_the_engine_saves_stands_beside_the_static_pool_and_the_oracle() -> None:
    found = figures(story([0.985, 0.987], [0.97, 0.97]))
    assert found["hit"] == pytest.approx(0.986)
    assert found["short_points"] == pytest.approx(0.4)
    assert found["saved"] == pytest.approx(0.6)
    assert found["of_static"] == pytest.approx(0.4)
    assert found["of_oracle"] == pytest.approx(60 / 70)


def test_one_unit_less_that_would_have_done_as_well_is_told_beyond_its_interval() -> None:
    sure = figures(story([0.999, 0.999], [0.995, 0.995]))
    unsure = figures(story([0.999, 0.999], [0.999, 0.991]))
    assert sure["spare_points"] == pytest.approx(0.5)
    assert unsure["spare_points"] < 0


def test_where_the_oracle_saves_nothing_no_share_of_it_is_said() -> None:
    rows = outcomes.summed(
        [outcome(side, 0, 0.99, 100.0) for side in (outcomes.ENGINE, outcomes.STATIC, outcomes.ORACLE)]
    )
    assert math.isnan(figures(rows)["of_oracle"])


# ---- rules


def test_a_rule_is_written_out_for_each_trace_and_level_that_it_names() -> None:
    book = traces.read()
    found = rules.for_traces(rules.read("trace"), book.traces)
    names = [each.name for each in found]
    assert len(set(names)) == len(names)
    for trace in book.traces:
        mine = [each for each in found if each.figure.startswith(f"{trace.name} ")]
        assert bool(mine) == (trace.kind != "random")
    short = [each for each in found if each.figure == "sine 99.9 %/engine/short_points"]
    assert [each.at_most for each in short] == [0.1]


def test_every_rule_for_a_trace_matches_one_that_exists() -> None:
    book = traces.read()
    for rule in rules.read("trace"):
        assert any(rule.matches(trace) for trace in book.traces), rule.name
        assert set(rule.levels) <= set(book.levels)


def test_every_rule_for_a_storm_names_storms_that_exist() -> None:
    weather = storms.read()
    known = {storm.name for storm in weather.storms}
    for rule in rules.read("storm"):
        assert rule.storms
        assert set(rule.storms) <= known
        assert set(rule.levels) <= set(weather.levels)


@pytest.mark.parametrize("limits", ["", "at_least = 1\nat_most = 2"])
def test_a_rule_needs_exactly_one_limit(tmp_path: Path, limits: str) -> None:
    file = tmp_path / "thresholds.toml"
    file.write_text(f'[[trace]]\nname = "x"\nfigure = "saved"\n{limits}\n')
    with pytest.raises(ValueError, match="at_least or at_most"):
        rules.read("trace", file)


def test_the_issues_limits_are_ours() -> None:
    by_figure = {(each.figure, each.levels): each for each in rules.read("trace")}
    usual = (0.9, 0.95, 0.99, 0.999)
    assert by_figure["short_points", (0.9, 0.95, 0.99)].at_most == 1.0
    assert by_figure["short_points", (0.999,)].at_most == 0.1
    assert by_figure["spare_points", usual].at_most == 0.0
    assert by_figure["saved", usual].at_least == 0.43
    assert by_figure["of_oracle", usual].at_least == 0.9
    assert by_figure["of_static", usual].at_most == 1.1


# ---- the report


def judged(rows: list[Row]) -> Report:
    book = traces.read()
    limits = rules.for_traces(rules.read("trace"), [book.only("office-hours")])
    mine = [each for each in limits if each.figure.startswith("office-hours 99 %/")]
    return Report({}, rows, judge(mine, rows))


def test_a_run_in_which_everything_is_met_passes_and_says_so() -> None:
    found = judged(story([0.992, 0.992], [0.97, 0.97], idle=31.0))
    assert found.passed
    assert found.tables()["levels"].lines[0][-1] == "met"


def test_a_row_that_misses_a_limit_is_shown_as_missed_and_fails_the_run() -> None:
    found = judged(story([0.97, 0.97], [0.96, 0.96], idle=31.0))
    assert not found.passed
    assert found.tables()["levels"].lines[0][-1] == MISSED
    assert "**missed**" in found.tables()["levels"].markdown()
    assert found.as_json()["passed"] is False


def test_a_row_that_nothing_judges_says_that() -> None:
    found = Report({}, story([0.5, 0.5], [0.4, 0.4]), [])
    assert found.tables()["levels"].lines[0][-1] == SHOWN


def test_every_baseline_stands_beside_with_what_it_reached() -> None:
    rows = story([0.99, 0.99], [0.97, 0.97])
    rows += outcomes.summed([outcome(outcomes.AUTOSCALER, 0, 0.912, 77.0)])
    (line,) = Report({}, rows, []).tables()["idle"].lines
    assert "77 (91.2 %)" in line
    assert "none does" in line  # the percentage that nobody found


def test_json_holds_no_infinity() -> None:
    rows = outcomes.summed([outcome(outcomes.ENGINE, 0, 0.99, 10.0)])
    assert math.isinf(rows[0].figures["interval"])
    assert Report({}, rows, []).as_json()["rows"][0]["figures"]["interval"] is None
