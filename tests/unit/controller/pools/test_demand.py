"""What goes into a pool's history: each claim once, boots that say something, time that counts."""

from __future__ import annotations

import pytest

from capacity.history import HOUR, History
from controller.claims.tally import Served
from controller.pools.demand import Demand
from tests.support.builders import NOW

PATIENCE = 600.0


def kept(*arrivals: float, since: float = NOW - 10 * HOUR) -> History:
    """A history that an earlier leader wrote."""
    history = History(since)
    for at in arrivals:
        history.arrive(at)
    return history


def seconds(demand: Demand) -> list[int]:
    return list(demand.history.arrivals)


def stamps(*times: float) -> list[int]:
    return [int(each) for each in times]


def test_a_claim_that_comes_is_in_the_history() -> None:
    demand = Demand(NOW)
    demand.claims([NOW + 1, NOW + 2], [], 0.0)
    assert seconds(demand) == stamps(NOW + 1, NOW + 2)
    assert demand.changed


def test_what_came_before_the_kept_history_was_read_is_told_to_that_too() -> None:
    demand = Demand(NOW)
    demand.claims([NOW + 1], [Served(NOW + 2, 0.0)], 0.0)
    demand.boot(12.0, NOW - 5, "one")
    demand.go_on(kept(NOW - 100), written=NOW - 1, patience=PATIENCE)
    assert seconds(demand) == stamps(NOW - 100, NOW + 1)
    assert demand.history.hit_ratio(NOW + 10) == 1.0
    assert demand.history.leads.of("", "one").count == 1


def test_what_comes_after_that_is_told_once() -> None:
    demand = Demand(NOW)
    demand.go_on(kept(NOW - 100), written=NOW - 1, patience=PATIENCE)
    demand.claims([NOW + 1], [], 0.0)
    assert seconds(demand) == stamps(NOW - 100, NOW + 1)


def test_a_claim_that_the_history_knows_is_not_counted_again_after_a_restart() -> None:
    demand = Demand(NOW, [NOW - 300, NOW - 200])
    demand.go_on(kept(NOW - 300, NOW - 250, NOW - 200), written=NOW - 190, patience=PATIENCE)
    assert seconds(demand) == stamps(NOW - 300, NOW - 250, NOW - 200)
    assert not demand.changed or len(seconds(demand)) == 3


def test_claims_that_came_while_nobody_led_are_counted_by_the_next_leader() -> None:
    demand = Demand(NOW, [NOW - 200, NOW - 10, NOW - 5])
    demand.go_on(kept(NOW - 200), written=NOW - 190, patience=PATIENCE)
    assert seconds(demand) == stamps(NOW - 200, NOW - 10, NOW - 5)
    assert demand.changed


def test_of_claims_of_one_second_those_are_counted_that_the_history_does_not_know() -> None:
    """Five were made in that second: two had been seen when the last leader wrote, and one is gone since."""
    demand = Demand(NOW, [NOW - 100] * 4)
    demand.go_on(kept(NOW - 100, NOW - 100), written=NOW - 99, patience=PATIENCE)
    assert seconds(demand) == stamps(*[NOW - 100] * 4)


def test_a_history_without_any_claim_learns_of_those_that_are_there() -> None:
    demand = Demand(NOW, [NOW - 50])
    demand.go_on(kept(since=NOW - 60), written=NOW - 55, patience=PATIENCE)
    assert seconds(demand) == stamps(NOW - 50)


def test_a_time_in_which_nobody_watched_does_not_count() -> None:
    demand = Demand(NOW, [NOW - 30 * 60])
    demand.go_on(kept(NOW - 2 * HOUR, NOW - 2 * HOUR), written=NOW - HOUR, patience=PATIENCE)
    assert demand.history.gaps == [(NOW - HOUR, NOW)]
    assert demand.history.snapshot(NOW).arrived.sum() == 2, (
        "what is left of the claims of that hour says too little"
    )


def test_a_change_of_leaders_is_no_such_time() -> None:
    demand = Demand(NOW)
    demand.go_on(kept(NOW - 100), written=NOW - 300, patience=PATIENCE)
    assert demand.history.gaps == []


def test_where_nothing_was_kept_a_young_pools_claims_are_all_counted() -> None:
    demand = Demand(NOW, [NOW - 100, NOW - 50])
    demand.begin(NOW - 110)
    assert seconds(demand) == stamps(NOW - 100, NOW - 50)
    assert demand.read


def test_where_nothing_was_kept_old_claims_say_nothing_of_those_that_are_gone() -> None:
    demand = Demand(NOW, [NOW - 5 * HOUR, NOW - 50])
    demand.begin(NOW - 60)
    assert seconds(demand) == stamps(NOW - 50)


# ---- how claims were served


@pytest.mark.parametrize(("late", "patience", "ratio"), [(0.0, 0.0, 1.0), (3.0, 0.0, 0.0), (3.0, 5.0, 1.0)])
def test_a_claim_was_served_in_time_if_it_waited_no_longer_than_max_wait(
    late: float, patience: float, ratio: float
) -> None:
    demand = Demand(NOW)
    demand.claims([], [Served(NOW + 1, late)], patience)
    assert demand.history.hit_ratio(NOW + 2) == ratio


def test_a_claim_that_got_no_vm_was_not() -> None:
    demand = Demand(NOW)
    demand.claims([], [Served(NOW + 1)], 1e9)
    assert demand.history.hit_ratio(NOW + 2) == 0.0


# ---- boots


def boots(demand: Demand) -> int:
    return demand.history.leads.of("", None).count


def test_a_boot_is_a_lead_time_of_its_revision() -> None:
    demand = Demand(NOW)
    demand.boot(12.0, NOW - 12, "one")
    demand.boot(30.0, NOW - 30, "two")
    assert sorted(revision for _, revision in demand.history.leads.by) == ["one", "two"]


def test_a_boot_while_no_vm_can_be_made_says_nothing() -> None:
    demand = Demand(NOW)
    demand.block(NOW, NOW)
    demand.boot(300.0, NOW - 300, "one")
    assert boots(demand) == 0


def test_nor_does_one_that_began_before_that_was_over() -> None:
    demand = Demand(NOW)
    demand.block(NOW, NOW)
    demand.block(NOW + 600, None)
    demand.boot(610.0, NOW - 5, "one")
    assert boots(demand) == 0
    demand.boot(12.0, NOW + 601, "one")
    assert boots(demand) == 1


# ---- time that does not count


def test_while_no_vm_can_be_made_time_does_not_count() -> None:
    demand = Demand(NOW)
    for later in (0.0, 10.0, 60.0):
        demand.block(NOW + later, NOW - 5)
    demand.block(NOW + 100, None)
    demand.block(NOW + 200, None)
    assert demand.history.gaps == [(NOW - 5, NOW + 100)]


def test_such_a_time_is_booked_before_it_ends_if_somebody_looks() -> None:
    demand = Demand(NOW)
    demand.block(NOW, NOW)
    demand.settle(NOW + 50)
    demand.settle(NOW + 80)
    assert demand.history.gaps == [(NOW, NOW + 80)]
    demand.block(NOW + 100, None)
    assert demand.history.gaps == [(NOW, NOW + 100)]


def test_without_trouble_nothing_is_booked_and_nothing_is_to_be_kept() -> None:
    demand = Demand(NOW)
    demand.block(NOW + 1, None)
    demand.settle(NOW + 2)
    assert demand.history.gaps == []
    assert not demand.changed
