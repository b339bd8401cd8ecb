import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.capacity import oracle, traces
from benchmarks.capacity.buffer import Levels, run
from benchmarks.capacity.traces import CELL, DAY, HOUR, Book, Demand, Lead, Trace
from capacity.counts import outstanding, smallest

BOOK = traces.read()
NAMES = [each.name for each in BOOK.traces]


def short(name: str, days: tuple[int, int] = (7, 7), seed: int = 1) -> Demand:
    return BOOK.draw(BOOK.shortened(BOOK.only(name), days), seed)


def test_the_lead_times_are_those_that_were_published() -> None:
    lead = Lead(16.0, 27.0)
    drawn = lead.draw(np.random.default_rng(1), 200_000)
    assert np.quantile(drawn, 0.5) == pytest.approx(16.0, rel=0.01)
    assert np.quantile(drawn, 0.95) == pytest.approx(27.0, rel=0.01)
    assert drawn.mean() == pytest.approx(lead.mean, rel=0.01)
    assert lead.quantile(0.95) == pytest.approx(27.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_has_the_rate_that_it_says(name: str) -> None:
    demand = short(name, (7, 0))
    assert demand.arrivals.size == pytest.approx(
        demand.rate.sum() * CELL, abs=6 * math.sqrt(6 * demand.arrivals.size)
    )
    assert (np.diff(demand.arrivals) >= 0).all()
    assert demand.start <= demand.arrivals[0] < demand.arrivals[-1] < demand.end
    peak = demand.rate.max() * BOOK.lead.mean / demand.trace.erlangs
    assert 0.9 < peak <= 1.8 + 1e-9


@pytest.mark.parametrize("name", [each.name for each in BOOK.traces if each.kind == "weekly"])
def test_a_weekly_trace_is_the_same_each_week(name: str) -> None:
    rate = short(name, (7, 7)).rate.reshape(2, -1)
    assert (rate[0] == rate[1]).all()


def test_a_random_trace_is_not() -> None:
    rate = short("on-off-shuffled", (7, 7)).rate.reshape(2, -1)
    assert (rate[0] != rate[1]).any()


def test_the_same_seed_draws_the_same_claims_and_another_one_others() -> None:
    once, again, other = short("poisson-1"), short("poisson-1"), short("poisson-1", seed=2)
    assert (once.arrivals == again.arrivals).all()
    assert (once.leads == again.leads).all()
    assert once.arrivals.size != other.arrivals.size or (once.arrivals != other.arrivals).any()


def test_batches_come_at_one_time_and_have_the_mean_size() -> None:
    sizes = np.unique(short("batches-5").arrivals, return_counts=True)[1]
    assert sizes.mean() == pytest.approx(5.0, rel=0.05)
    assert sizes.max() > 20


def test_office_hours_are_quiet_at_night_and_at_the_weekend() -> None:
    rate = short("office-hours", (7, 0)).rate.reshape(7, -1)
    noon, night = int(11 * HOUR / CELL), int(3 * HOUR / CELL)
    assert (rate[:5, noon] > 30 * rate[:5, night]).all()
    assert (rate[5:] <= rate[:5, night].min()).all()


@pytest.mark.parametrize("name", NAMES)
def test_each_trace_is_long_enough_to_speak_of_its_level(name: str) -> None:
    trace = BOOK.only(name)
    demand = BOOK.draw(trace, 0)
    assert BOOK.seeds >= 10
    assert trace.every <= 30 or demand.judged.size >= 170_000
    if trace.kind != "flat":
        assert trace.days[0] % 7 == 0
        assert trace.days[0] >= 14


def test_two_traces_of_one_name_are_refused(tmp_path: Path) -> None:
    text = traces.FILE.read_text()
    again = "[[trace]]" + text.split("[[trace]]")[1]
    file = tmp_path / "traces.toml"
    file.write_text(text + "\n" + again)
    with pytest.raises(ValueError, match="same name"):
        traces.read(file)


def test_a_key_that_no_trace_has_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "traces.toml"
    file.write_text(traces.FILE.read_text() + "\nerlang = 5\n")
    with pytest.raises(TypeError, match="erlang"):
        traces.read(file)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="poisson-5, poisson-10"):
        BOOK.only("poisson-7")


# ---- the oracle


def test_on_a_level_rate_the_mean_outstanding_is_rate_times_lead_time() -> None:
    mean = oracle.mean_outstanding(np.full(1_000, 0.3), BOOK.lead)
    assert mean[-1] == pytest.approx(0.3 * BOOK.lead.mean, rel=1e-6)
    assert mean[0] < mean[-1]


@pytest.mark.parametrize(
    ("erlangs", "units"),
    [(0.1, 2), (0.5, 4), (1, 5), (2, 7), (5, 12), (10, 19), (20, 32), (50, 68), (100, 125)],
)
def test_the_oracle_knows_the_table_of_the_design(erlangs: float, units: int) -> None:
    assert oracle.poisson(np.array([erlangs]), 0.99).tolist() == [units]


def test_where_nothing_ever_comes_the_oracle_keeps_nothing() -> None:
    assert oracle.poisson(np.zeros(3), 0.999).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["poisson-5", "office-hours", "sine", "on-off"])
def test_the_oracle_reaches_its_level_and_keeps_no_more_than_a_static_pool(name: str) -> None:
    demand = short(name)
    found = oracle.levels(demand, BOOK.lead, 0.95)
    served = run(demand.judged, demand.judged_leads, found, demand.end, demand.leads)
    assert served.share() >= 0.945
    units = smallest(outstanding(demand.judged, demand.judged_leads), 0.95)
    constant = Levels.constant(demand.judged_from, units)
    static = run(demand.judged, demand.judged_leads, constant, demand.end, demand.leads)
    assert served.idle_hours <= static.idle_hours * 1.001


def test_the_oracle_opens_before_the_rush_begins() -> None:
    demand = short("on-off")
    found = oracle.levels(demand, BOOK.lead, 0.95)
    begun = demand.judged_from + 6 * HOUR
    rise = found.at[(found.at > begun - 600) & (found.units > 0)][0]
    assert begun - 60 <= rise < begun - 20


def test_a_book_holds_what_the_file_says() -> None:
    assert isinstance(BOOK, Book)
    assert BOOK.levels == (0.9, 0.95, 0.99, 0.999)
    assert all(isinstance(each, Trace) for each in BOOK.traces)
    assert BOOK.start % DAY == 0
