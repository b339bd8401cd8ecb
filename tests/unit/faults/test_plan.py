"""Every step, every n until the fault no longer fires, every kind that makes sense."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

import pytest

from tests.faults.addresses import Nature
from tests.faults.kinds import SENSIBLE, Fault, Kind, kinds_for
from tests.faults.plan import BOUNDS, ENOUGH, RETRIES, Exploration, bound, disturbed_in
from tests.faults.runs import Report, Run

Came = Mapping[str, int]
KINDS = (Kind.CONFLICT, Kind.CUT_AFTER)


def _kinds(_nature: Nature, _address: str) -> Iterable[Kind]:
    return KINDS


def _report(run: Run, came: Came, *, fires: Callable[[Fault], bool]) -> Report:
    fired = tuple(each for each in run.faults if fires(each))
    return Report(run, fired, came, came, dict.fromkeys(came, Nature.PATCH), 1.0, 1.0)


def _explored(came: Came, *, scenario: str = "bind", provoked: Iterable[Fault] = ()) -> list[Run]:
    """All runs of a scenario in which these steps come so often."""
    exploration, done = Exploration(scenario, frozenset(provoked), _kinds), []
    while (run := exploration.take()) is not None:
        done.append(run)
        exploration.learn(_report(run, came, fires=lambda each: each.nth <= came.get(each.address, 0)))
    assert exploration.idle
    return done


def test_it_begins_undisturbed() -> None:
    assert _explored({})[0] == Run("bind")


def test_every_kind_is_tried_at_every_n_of_every_step() -> None:
    tried = [each.faults for each in _explored({"hand-over/vm": 2, "hand-over/claim": 1})[1:]]
    wanted = [
        (Fault(address, nth, kind),)
        for address, nth in (("hand-over/vm", 1), ("hand-over/vm", 2), ("hand-over/claim", 1))
        for kind in KINDS
    ]
    assert sorted(tried) == sorted(wanted)


def test_a_fault_that_never_fires_is_given_up_at_its_first_n() -> None:
    exploration = Exploration("bind", kinds=lambda *_: [Kind.CONFLICT])
    tried: list[Fault] = []
    while (run := exploration.take()) is not None:
        tried += run.faults
        exploration.learn(_report(run, {"hand-over/vm": 3}, fires=lambda _: False))
    assert tried == [Fault("hand-over/vm", 1, Kind.CONFLICT)] * ENOUGH


def test_a_step_that_comes_now_and_then_meets_every_kind_in_the_end() -> None:
    exploration, luck = Exploration("bind"), itertools.cycle([False, False, True])
    fired: set[Kind] = set()
    while (run := exploration.take()) is not None:
        report = _report(run, {"repair/confirm": 1}, fires=lambda _: next(luck))
        fired |= {each.kind for each in report.fired}
        exploration.learn(report)
    assert fired == set(SENSIBLE[Nature.PATCH])


def test_an_n_that_did_not_come_is_given_up_for_all_kinds() -> None:
    exploration = Exploration("bind")
    tried: list[Fault] = []
    while (run := exploration.take()) is not None:
        tried += run.faults
        exploration.learn(_report(run, {"hand-over/vm": 2}, fires=lambda each: each.nth == 1))
    assert sum(each.nth == 1 for each in tried) == len(SENSIBLE[Nature.PATCH])
    assert sum(each.nth == 2 for each in tried) == ENOUGH


def test_a_step_seen_only_later_is_tried_from_then_on() -> None:
    exploration = Exploration("bind", kinds=lambda *_: [Kind.CONFLICT])
    for came in ({"hand-over/vm": 1}, {"hand-over/vm": 1, "claim/status": 1}):
        run = exploration.take()
        assert run is not None
        exploration.learn(_report(run, came, fires=lambda _: True))
    assert exploration.take() == Run("bind", (Fault("claim/status", 1, Kind.CONFLICT),))


def test_what_the_scenario_provokes_is_not_disturbed_twice() -> None:
    provoked = Fault("hand-over/vm", 1, Kind.CUT_AFTER)
    tried = [each.faults for each in _explored({"hand-over/vm": 2}, provoked=[provoked])[1:]]
    assert tried == [(Fault("hand-over/vm", 2, kind),) for kind in KINDS]


def test_while_runs_are_under_way_it_is_not_over() -> None:
    exploration = Exploration("bind", kinds=_kinds)
    exploration.take()
    assert exploration.take() is None
    assert not exploration.idle


def test_what_time_repeats_is_tried_a_few_times() -> None:
    tried = _explored({"pool/status": 50})[1:]
    assert max(each.faults[0].nth for each in tried) == BOUNDS["pool/status"][0]


@pytest.mark.parametrize("prefix", BOUNDS)
def test_each_bound_says_why(prefix: str) -> None:
    most, why = BOUNDS[prefix]
    assert bound(prefix) == most
    assert len(why.split()) > 2


def test_a_step_of_the_protocol_has_no_bound() -> None:
    assert bound("hand-over/vm") is None


@pytest.mark.parametrize(
    ("address", "scenario", "so"),
    [
        ("hand-over/vm", "bind", True),
        ("lease/write", "bind", False),
        ("lease/write", "take-over", True),
        ("event/virtualmachines", "bind", True),
        ("event/nodes", "bind", False),
    ],
)
def test_what_every_scenario_has_is_disturbed_where_it_is_told(address: str, scenario: str, so: bool) -> None:  # noqa: FBT001 - a case
    assert disturbed_in(address, scenario) is so


@pytest.mark.parametrize("nature", Nature)
def test_there_is_something_to_try_for_every_kind_of_request(nature: Nature) -> None:
    assert SENSIBLE[nature]
    assert len(set(SENSIBLE[nature])) == len(SENSIBLE[nature])


def test_a_failed_test_is_no_answer_to_what_carries_no_tests() -> None:
    assert Kind.TEST_FAILED in kinds_for(Nature.PATCH, "hand-over/vm")
    for nature in (Nature.CREATE, Nature.DELETE, Nature.PUT, Nature.READ):
        assert Kind.TEST_FAILED not in kinds_for(nature, "pool/create")


def test_the_lease_is_disturbed_alike_whether_it_is_made_or_renewed() -> None:
    assert kinds_for(Nature.CREATE, "lease/write") == kinds_for(Nature.PUT, "lease/write")


def test_a_list_may_expire_and_a_single_read_may_not() -> None:
    assert Kind.EXPIRED in kinds_for(Nature.READ, "list/virtualmachines")
    assert Kind.EXPIRED not in kinds_for(Nature.READ, "hand-over/read-vm")


def test_a_run_that_could_not_begin_is_put_back_and_not_taken_for_one_without_steps() -> None:
    exploration, taken = Exploration("bind"), 0
    while (run := exploration.take()) is not None:
        taken += 1
        exploration.learn(_report(run, {}, fires=lambda _: False))
    assert taken == 1 + RETRIES
    assert exploration.idle
