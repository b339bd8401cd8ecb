"""The real engine at the controls of short traces: what the whole proof shows at length."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.capacity import baselines, oracle, outcomes, pilot, storms, study, tiers, traces, weather
from benchmarks.capacity.buffer import Levels, run
from benchmarks.capacity.outcomes import Outcome
from benchmarks.capacity.pilot import UNBOUNDED, Controls, Memory
from benchmarks.capacity.tiers import Case
from benchmarks.capacity.traces import DAY, HOUR, Demand, Lead
from capacity.counts import outstanding, smallest
from capacity.split import Split

BOOK = traces.read()
SKY = storms.read()


def short(name: str, days: tuple[int, int], every: float = 900.0) -> Demand:
    return BOOK.draw(replace(BOOK.only(name), days=days, every=every), 3)


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_a_flat_trace_gets_what_the_best_static_pool_has(level: float) -> None:
    demand = short("poisson-5", (3, 1))
    (found,) = pilot.levels(demand, [level])
    static = smallest(outstanding(demand.judged, demand.judged_leads), level)
    assert set(found.units.tolist()) <= {static - 1, static, static + 1}


@pytest.mark.thorough
def test_office_hours_save_most_of_the_idle_time_and_reach_their_level() -> None:
    demand = short("office-hours", (14, 5))
    (found,) = pilot.levels(demand, [0.95])
    served = run(demand.judged, demand.judged_leads, found, demand.end, demand.leads)
    best = oracle.levels(demand, BOOK.lead, 0.95)
    known = run(demand.judged, demand.judged_leads, best, demand.end, demand.leads)
    assert served.share() >= 0.94
    assert served.idle_hours <= 1.15 * known.idle_hours


def test_each_decision_knows_only_what_came_before_it() -> None:
    demand = short("poisson-5", (2, 1))
    half = demand.judged_from + DAY / 2
    later = demand.arrivals >= half
    arrivals = np.concatenate((demand.arrivals[~later], np.repeat(half, 5)))
    other = replace(demand, arrivals=arrivals, leads=demand.leads[: arrivals.size])
    (once,), (again,) = pilot.levels(demand, [0.99]), pilot.levels(other, [0.99])
    kept = once.at < half
    assert once.units[kept].tolist() == again.units[: kept.sum()].tolist()


def test_a_memory_holds_what_came_and_one_level_is_decided_by_it() -> None:
    memory = Memory(BOOK.start)
    memory.arrive(BOOK.start + np.arange(0.0, 2 * HOUR, 5.0))
    memory.booted(np.full(200, 20.0))
    curve = memory.refresh(BOOK.start + 2 * HOUR)
    assert curve.claims == pytest.approx(1_440, abs=2)
    decision = Controls.of(0.99, UNBOUNDED).decide(BOOK.start + 2 * HOUR, memory)
    assert decision.decided_by == "serviceLevel"
    assert 4 <= decision.target <= 12


@pytest.mark.parametrize(("level", "written"), [(0.9, "90%"), (0.999, "99.9%"), (0.95, "95%")])
def test_a_level_is_written_as_a_spec_has_it(level: float, written: str) -> None:
    assert pilot.percent(level) == written


def test_a_study_has_every_side_and_the_baselines_their_numbers() -> None:
    book = replace(BOOK, levels=(0.9,))
    trace = replace(BOOK.only("poisson-5"), days=(2, 1), every=3600.0)
    tuned = study.numbers(book, trace)
    found = study.judge(book, trace, 0, tuned, pilot.levels)
    assert [each.side for each in found] == [
        outcomes.ENGINE,
        outcomes.LESS,
        outcomes.STATIC,
        outcomes.ORACLE,
        outcomes.RATE,
        outcomes.PERCENT,
        outcomes.AUTOSCALER,
    ]
    by_side = {each.side: each for each in found}
    assert by_side[outcomes.LESS].idle < by_side[outcomes.ENGINE].idle
    assert by_side[outcomes.STATIC].hit >= min(0.9, by_side[outcomes.ENGINE].hit)
    assert by_side[outcomes.RATE].hit < 0.7
    assert all(isinstance(each, Outcome) and each.claims > 20_000 for each in found)


def test_a_baseline_that_nobody_can_tune_has_no_row() -> None:
    book = replace(BOOK, levels=(0.9,))
    trace = replace(BOOK.only("poisson-5"), days=(1, 1), every=7200.0)
    sides = dict.fromkeys([(side, 0.9) for side in study.RULES])

    def steer(demand: Demand, wanted: object) -> list[Levels]:
        del wanted
        return [Levels.constant(demand.judged_from, 9)]

    found = study.judge(book, trace, 0, sides, steer)
    assert len(found) == 5
    assert baselines.tune(baselines.horizontal_autoscaler, book.draw(trace, 0), 0.9, 1e-9).number is None


# ---- storms


@pytest.mark.thorough
@pytest.mark.parametrize("storm", SKY.storms, ids=lambda storm: storm.name)
def test_the_engine_weathers_each_storm(storm: storms.Storm) -> None:
    sky = replace(SKY, levels=(0.99,), every=20.0)
    found, _ = weather.weather_a_storm(
        replace(storm, days=3, hours=2.0), sky, BOOK.lead, BOOK.start, 5, pilot.board
    )
    rows = {row.side: row.figures for row in weather.summed(found)}
    mine = rows[outcomes.ENGINE]
    assert mine["again_minutes"] <= 15
    assert mine["missed_beside"] <= 5
    assert mine["swings"] <= 1


# ---- tiers


def test_a_claim_takes_what_runs_then_wakes_what_is_stopped_then_waits() -> None:
    arrivals, leads, wakes = np.array([0.0, 1.0, 2.0]), np.full(3, 20.0), np.full(3, 4.0)
    found = tiers.serve(arrivals, leads, wakes, Split(1, 1))
    assert found.waits.tolist() == [0.0, 4.0, 18.0]
    assert found.woke == 1
    assert found.share(5.0) == pytest.approx(2 / 3)


def test_units_that_boot_run_before_any_is_stopped_again() -> None:
    arrivals = np.array([0.0, 1.0, 100.0])
    found = tiers.serve(arrivals, np.full(3, 10.0), np.full(3, 4.0), Split(1, 1))
    assert found.waits.tolist() == [0.0, 4.0, 0.0]
    assert found.running_hours * HOUR == pytest.approx(90)  # from the first that boots
    assert found.stopped_hours * HOUR == pytest.approx(1 + 89)


def test_all_running_is_the_buffer_that_all_else_is_proved_with() -> None:
    demand = short("poisson-5", (1, 1))
    split = tiers.serve(demand.judged, demand.judged_leads, np.zeros(demand.judged.size), Split(9, 0))
    plain = run(
        demand.judged,
        demand.judged_leads,
        Levels.constant(demand.judged_from, 9),
        demand.end,
        demand.leads,
    )
    assert split.share(0.0) == plain.share()


@pytest.mark.parametrize("wake", [Lead(2.0, 3.0), Lead(4.0, 8.0), Lead(30.0, 60.0)])
def test_the_level_holds_with_units_of_high_rank_stopped(wake: Lead) -> None:
    case = Case(5.0, 0.95, 5.0, wake)
    figures = tiers.judge(case, BOOK).figures
    assert figures["short_points"] <= 1.0
    assert figures["running"] + figures["stopped"] == figures["units"]
    assert (figures["stopped"] == 0) == (wake.p50 > 20)
