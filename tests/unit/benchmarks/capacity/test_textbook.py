import pytest

from benchmarks.capacity import rules, textbook, traces
from benchmarks.thresholds import judge
from capacity import counts

LEAD = traces.read().lead


@pytest.mark.parametrize("load", [0.5, 3.0, 20.0])
def test_counts_and_replays_agree_with_poisson_and_erlang(load: float) -> None:
    sizes, checks = textbook.check(load, LEAD, claims=60_000)
    assert abs(sizes.waits - sizes.waits_exact) <= 1
    assert abs(sizes.lost - sizes.lost_exact) <= 1
    assert [each.law for each in checks] == ["waits", "waits", "lost", "lost"]
    assert all(each.off < 4 for each in checks), checks


def test_a_load_that_is_a_tenth_more_is_found_out() -> None:
    _, right = textbook.check(10.0, LEAD, claims=100_000)
    arrivals, leads = textbook.stream(11.0, LEAD, 100_000, 1)
    missed = (counts.outstanding(arrivals, leads) >= right[0].units).astype(float)
    assert textbook._checked("waits", 10.0, right[0].units, missed, right[0].exact).off > 4


def test_every_load_is_judged_by_every_rule() -> None:
    found = [textbook.check(load, LEAD, claims=20_000) for load in (1.0, 2.0)]
    limits = rules.for_rows(rules.read("theory"), ["a = 1", "a = 2"])
    verdicts = judge(limits, textbook.rows(found))
    assert len(verdicts) == 8
    assert all(each.met for each in verdicts)
    assert len(textbook.table(found).lines) == 2
