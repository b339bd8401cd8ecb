import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.capacity import storms, traces, weather
from benchmarks.capacity.buffer import Run
from benchmarks.capacity.outcomes import ENGINE, ORACLE
from benchmarks.capacity.storms import MINUTE, Chart, Foreseen, Storm, Tale
from benchmarks.capacity.traces import HOUR, Floats

BOOK = traces.read()
SKY = storms.read()


class Stubborn:
    """Always says the same."""

    def __init__(self, units: int) -> None:
        self.units = units
        self.told: list[tuple[float, int, int]] = []

    def steer(self, now: float, arrivals: Floats, made: Sequence[tuple[float, float]]) -> int:
        self.told.append((now, arrivals.size, len(made)))
        return self.units


def tale(name: str, seed: int = 1, **changes: float) -> Tale:
    (storm,) = [each for each in SKY.storms if each.name == name]
    return storms.draw(replace(storm, days=1, **changes), BOOK.lead, BOOK.start, seed)  # type: ignore[arg-type]


def chart(told: Tale, hits: list[tuple[float, bool]]) -> Chart:
    arrivals = np.array([told.begin + at for at, _ in hits])
    waits = np.array([0.0 if hit else 5.0 for _, hit in hits])
    nothing = np.zeros(1, dtype=np.int64)
    return Chart(Run(waits, 0.0, 0, 0), arrivals, arrivals[:1], nothing, nothing, nothing)


@pytest.mark.parametrize("storm", SKY.storms, ids=lambda storm: storm.name)
def test_a_storm_is_what_it_says(storm: Storm) -> None:
    told = storms.draw(replace(storm, days=1), BOOK.lead, BOOK.start, 1)
    calm = ((told.arrivals >= told.watched_from) & (told.arrivals < told.begin)).sum() / (2 * HOUR)
    until = min(told.over, told.begin + HOUR)
    rough = ((told.arrivals >= told.begin) & (told.arrivals < until)).sum() / (until - told.begin)
    assert calm == pytest.approx(storm.erlangs / BOOK.lead.mean, rel=0.1)
    assert rough / calm == pytest.approx(storm.rate, rel=0.15)


def test_boots_that_double_are_those_that_begin_in_the_storm() -> None:
    told = tale("boots-double")
    boot = told.boots()
    assert boot(told.begin - 1, 10.0) == told.begin + 9
    assert boot(told.begin + 1, 10.0) == told.begin + 21


def test_in_the_outage_nothing_boots_for_an_hour() -> None:
    told = tale("outage")
    boot = told.boots()
    assert boot(told.begin + 1, 10.0) == told.begin + 60 * MINUTE + 10
    assert told.settles_from == told.over == told.begin + HOUR


def test_a_pilot_is_told_of_each_claim_and_each_unit_once() -> None:
    told = tale("demand-doubles", hours=0.5)
    pilot = Stubborn(12)
    found = storms.fly(told, pilot, 10.0)
    assert sum(arrived for _, arrived, _ in pilot.told) == found.arrivals.size
    assert sum(made for _, _, made in pilot.told) == pytest.approx(found.run.created - 12, abs=80)
    assert [now for now, _, _ in pilot.told[1:]] == found.at.tolist()


def test_a_pool_that_does_not_follow_a_doubled_demand_never_meets_its_target_again() -> None:
    told = tale("demand-doubles")
    best = storms.fly(told, storms.foreseen(told, 0.99), 10.0)
    stuck = storms.fly(told, Stubborn(12), 10.0)
    assert math.isinf(storms.met_again(told, stuck, 0.99, best))
    assert storms.met_again(told, best, 0.99, best) <= MINUTE
    assert storms.misses(told, stuck) > 10 * storms.misses(told, best)


def test_the_oracle_without_foresight_misses_more_than_the_one_with_it() -> None:
    told = tale("flash-crowd")
    best, prompt = (
        storms.misses(told, storms.fly(told, pilot, 10.0))
        for pilot in (storms.foreseen(told, 0.99), storms.prompt(told, 0.99))
    )
    assert prompt > best


def test_the_oracle_without_foresight_does_nothing_before_the_storm() -> None:
    told = tale("flash-crowd")
    plan = storms.prompt(told, 0.99).plan
    assert isinstance(storms.prompt(told, 0.99), Foreseen)
    assert not ((plan.at > told.watched_from) & (plan.at < told.begin)).any()


def test_the_target_is_met_again_when_the_next_half_hour_has_it() -> None:
    told = tale("demand-doubles")
    hits = [(at, at > 10 * MINUTE) for at in np.arange(1.0, 3 * HOUR, 5.0).tolist()]
    perfect = [(at, True) for at, _ in hits]
    again = storms.met_again(told, chart(told, hits), 0.99, chart(told, perfect))
    assert 9 * MINUTE < again <= 10 * MINUTE + 10


def test_nobody_has_to_be_better_than_the_oracle() -> None:
    told = tale("demand-doubles")
    hits = [(at, int(at) % 3 != 0) for at in np.arange(1.0, 3 * HOUR, 5.0).tolist()]
    assert storms.met_again(told, chart(told, hits), 0.99, chart(told, hits)) == 0.0


@pytest.mark.parametrize(
    ("levels", "turns"),
    [
        ([], 0),
        ([12] * 5, 0),
        ([12, 13, 12, 13, 12], 0),  # noise
        ([12, 20, 30], 0),
        ([12, 30, 12], 1),  # up and down again
        ([12, 30, 29, 30, 12], 1),
        ([12, 30, 12, 30, 12], 3),
        ([30, 12, 30], 1),
    ],
)
def test_a_swing_is_a_turn_that_is_more_than_noise(levels: list[int], turns: int) -> None:
    assert storms.swings(np.array(levels, dtype=np.int64)) == turns


def test_a_storms_row_holds_the_worst_of_its_seeds() -> None:
    sky = replace(SKY, levels=(0.99,), seeds=2)
    (storm,) = [each for each in SKY.storms if each.name == "demand-doubles"]
    short = replace(storm, days=1, hours=1.5)
    found: list[weather.Report] = []
    for seed in range(2):
        reports, charts = weather.weather_a_storm(
            short, sky, BOOK.lead, BOOK.start, seed, lambda _told, _level, _refresh: Stubborn(12)
        )
        found += reports
        assert len(charts) == 1
    rows = {row.side: row.figures for row in weather.summed(found)}
    assert math.isinf(rows[ENGINE]["again_minutes"])
    assert rows[ORACLE]["again_minutes"] < 5
    assert rows[ENGINE]["missed_beside"] > 3
    assert rows[weather.PROMPT]["missed_beside"] == 1
    assert rows[ENGINE]["before"] == rows[ENGINE]["after"] == 12
    assert weather.table(weather.summed(found)).lines[0][2] == "not in the time watched"


def test_a_key_that_no_storm_has_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "storms.toml"
    file.write_text(storms.FILE.read_text() + "\nwind = 5\n")
    with pytest.raises(TypeError, match="wind"):
        storms.read(file)
