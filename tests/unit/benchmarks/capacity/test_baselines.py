import numpy as np
import pytest

from benchmarks.capacity import baselines, buffer, traces
from benchmarks.capacity.traces import DAY, HOUR, Demand

BOOK = traces.read()


def short(name: str, days: tuple[int, int] = (7, 1)) -> Demand:
    return BOOK.draw(BOOK.shortened(BOOK.only(name), days), 1)


def test_rate_times_boot_time_makes_about_half_of_all_claims_wait() -> None:
    demand = short("poisson-10")
    levels = baselines.rate_times_boot(demand, BOOK.lead)
    assert set(levels.units) <= {10, 11}
    share = buffer.run(demand.judged, demand.judged_leads, levels, demand.end, demand.leads).share()
    assert 0.4 < share < 0.65


def test_rate_times_boot_time_follows_the_hours_of_the_week() -> None:
    demand = short("office-hours")
    levels = baselines.rate_times_boot(demand, BOOK.lead)
    assert levels.units.min() == 1
    assert levels.units.max() >= 9


@pytest.mark.parametrize(
    ("rule", "base"), [(baselines.percent_of_in_use, 0.001), (baselines.horizontal_autoscaler, 5.0)]
)
def test_a_baseline_gets_the_smallest_number_that_reaches_the_level(
    rule: baselines.Rule, base: float
) -> None:
    demand = short("poisson-5")
    found = baselines.tune(rule, demand, 0.9, base).number
    assert found is not None
    start, end = demand.start + DAY, demand.judged_from

    def reached(number: float) -> float:
        levels = rule(demand, start, end, number)
        part = slice(*np.searchsorted(demand.arrivals, [start, end]))
        return buffer.run(demand.arrivals[part], demand.leads[part], levels, end, demand.leads).share()

    assert reached(found) >= 0.89
    assert reached(found / 1.3) < 0.89


def test_a_level_that_no_number_reaches_is_told() -> None:
    demand = short("on-off")
    assert baselines.tune(baselines.horizontal_autoscaler, demand, 0.99999, 1.0).number is None


def test_the_autoscaler_ignores_a_tenth_goes_up_by_at_most_twice_and_down_after_five_minutes() -> None:
    usage = np.array([1.0, 1.05, 20.0, 20.0, 20.0] + [1.0] * 40)
    units = baselines._autoscaled(usage).tolist()
    assert units[:2] == [1, 1]
    assert units[2:5] == [5, 10, 20]
    fall = next(index for index, count in enumerate(units) if index > 5 and count == 1)
    assert 18 <= fall - 4 <= 21


def test_the_autoscaler_keeps_one_where_nothing_comes() -> None:
    assert set(baselines._autoscaled(np.zeros(50)).tolist()) == {1}


def test_percent_keeps_one_and_rounds_up() -> None:
    demand = short("office-hours", (7, 1))
    levels = baselines.percent_of_in_use(demand, demand.start, demand.end, 0.02)
    assert levels.units.min() == 1
    at = demand.start + 11 * HOUR
    used = ((demand.arrivals < at) & (demand.arrivals + demand.holds > at)).sum()
    now = levels.units[np.searchsorted(levels.at, at, side="right") - 1]
    assert now == pytest.approx(np.ceil(used * 0.02), abs=1)
