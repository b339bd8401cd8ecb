"""Deciding by what was measured: service levels, warnings, budgets that know demand, and what it costs."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from capacity.curve import Curve, build
from capacity.decide import decide
from capacity.decision import Decision, Limits, Stock, WebhookAnswer
from capacity.history import DAY, History
from capacity.idle import IdleSpent
from capacity.stabilize import Stabilizer
from crds.durations import text
from crds.warm import WarmCapacity
from tests.unit.capacity.test_decide import BERLIN, HOUR, LIMITS, NOON, OFFICE, at, brief, warm

SEVEN_DAYS = 7 * DAY
APPLY = {"target": "99%", "mode": "Apply"}


@lru_cache
def history(claims: int, *, boot: float = 36.0, day: bool = False, seed: int = 1) -> History:
    """A week of so many claims at random times, by day only (6 to 18 UTC) or all the time."""
    draw = np.random.default_rng(seed)
    past = History(since=NOON - SEVEN_DAYS)
    times = draw.uniform(NOON - SEVEN_DAYS, NOON, claims)
    if day:
        times = times[(times % DAY >= 6 * HOUR) & (times % DAY < 18 * HOUR)]
    for time_ in np.sort(times).tolist():
        past.arrive(time_)
    for lead in draw.lognormal(np.log(boot), 0.2, 300).tolist():
        past.lead(lead)
    return past


@lru_cache
def measured(claims: int, *, servers: int = 10, **how: Any) -> Curve:
    return build(history(claims, **how).snapshot(NOON), servers=servers)


def decided(spec: WarmCapacity, curve: Curve | None, now: float = NOON, **known: Any) -> Decision:
    given: dict[str, Any] = {"stabilizer": Stabilizer(), "limits": LIMITS, **known}
    return decide(spec, Stock(ready=0, in_flight=0, in_use=0), now=now, curve=curve, **given)


def reasons(decision: Decision) -> list[str]:
    return [advice.reason for advice in decision.warnings]


A_HUNDRED_AN_HOUR = 100 * 24 * 7


class TestAServiceLevel:
    def test_in_mode_apply_it_decides(self) -> None:
        # One order is outstanding on average: 99 % of Poisson claims need 5.
        decision = decided(warm(serviceLevel=APPLY), measured(A_HUNDRED_AN_HOUR))
        assert brief(decision) == (5, "serviceLevel")
        assert decision.warnings == ()

    def test_its_sentence_says_what_was_measured(self) -> None:
        decision = decided(warm(serviceLevel=APPLY), measured(A_HUNDRED_AN_HOUR))
        because = decision.policies[-1].because
        assert because.startswith("99% of claims within 0s need 5 (counted: ")
        assert "16800 claims" in because
        assert re.search(r"; lead time 3\d(\.\d)?s\)$", because)

    def test_in_mode_recommend_it_only_says_what_it_would_do(self) -> None:
        decision = decided(warm(replicas=2, serviceLevel={"target": "99%"}), measured(A_HUNDRED_AN_HOUR))
        assert brief(decision) == (2, "replicas")
        [_, level] = decision.policies
        assert (level.name, level.wants, level.applied) == ("serviceLevel", 5, False)

    def test_a_recommendation_is_not_held_when_it_is_taken_back(self) -> None:
        lately = Stabilizer()
        decided(warm(serviceLevel={"target": "99%"}), measured(A_HUNDRED_AN_HOUR), stabilizer=lately)
        decision = decided(
            warm(serviceLevel={"target": "99%"}, percent="0%"), None, NOON + 1, stabilizer=lately
        )
        assert brief(decision) == (1, "replicas")

    @pytest.mark.parametrize(("level", "units"), [("90%", 3), ("95%", 4), ("99%", 5)])
    def test_a_higher_level_needs_more(self, level: str, units: int) -> None:
        spec = warm(replicas=0, serviceLevel={"target": level, "mode": "Apply"})
        assert decided(spec, measured(A_HUNDRED_AN_HOUR)).target == units

    def test_it_is_looked_at_again_though_nothing_happens(self) -> None:
        decision = decided(warm(serviceLevel=APPLY), measured(A_HUNDRED_AN_HOUR))
        assert decision.next_change_at == NOON + 30

    def test_the_floor_and_a_schedule_may_ask_for_more(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR)
        assert brief(decided(warm(replicas=9, serviceLevel=APPLY), curve)) == (9, "replicas")
        assert brief(decided(warm(serviceLevel=APPLY, schedules=[OFFICE]), curve)) == (20, "schedule/office")

    def test_more_claims_than_usual_lately_ask_for_more(self) -> None:
        past = History(since=NOON - SEVEN_DAYS)
        usual = history(A_HUNDRED_AN_HOUR)
        for time_ in usual.arrivals:
            past.arrive(float(time_))
        for _ in range(60):
            past.arrive(NOON + 30)
        recent = past.recent(NOON + 60)
        curve = measured(A_HUNDRED_AN_HOUR)
        before = decided(warm(serviceLevel=APPLY), curve, recent=usual.recent(NOON))
        after = decided(warm(serviceLevel=APPLY), curve, NOON + 60, recent=recent)
        assert after.target > 2 * before.target


class TestTooLittleIsKnown:
    def test_nothing_was_measured_yet(self) -> None:
        decision = decided(warm(replicas=3, serviceLevel=APPLY), None)
        assert brief(decision) == (3, "replicas")
        assert decision.policies[-1].because == (
            "nothing was measured yet: the other policies decide until then"
        )
        assert reasons(decision) == ["TooFewClaims"]

    def test_a_few_claims_are_too_few(self) -> None:
        decision = decided(warm(replicas=3, serviceLevel=APPLY), measured(20))
        assert brief(decision) == (3, "replicas")
        assert reasons(decision) == ["TooFewClaims"]
        assert "20 claims" in decision.warnings[0].message

    def test_the_other_policies_decide_until_then(self) -> None:
        decision = decided(warm(serviceLevel=APPLY, schedules=[OFFICE]), measured(20))
        assert brief(decision) == (20, "schedule/office")


class TestWarnings:
    def test_a_level_over_max_is_told_with_both_numbers(self) -> None:
        decision = decided(warm(max=3, serviceLevel=APPLY), measured(A_HUNDRED_AN_HOUR))
        assert brief(decision) == (3, "max")
        [advice] = decision.warnings
        assert advice.reason == "LevelUnreachable"
        assert advice.message == (
            "99% of claims within 0s need 5, and warm.max is 3: raise it, or ask for a lower level"
        )

    def test_a_level_over_max_replicas_is_told(self) -> None:
        decision = decided(
            warm(serviceLevel=APPLY), measured(A_HUNDRED_AN_HOUR), limits=Limits(servers=10, most=4)
        )
        assert "limits.maxReplicas is 4" in decision.warnings[0].message

    def test_a_level_that_only_advises_is_told_as_well(self) -> None:
        spec = warm(max=3, serviceLevel={"target": "99%"})
        assert reasons(decided(spec, measured(A_HUNDRED_AN_HOUR))) == ["LevelUnreachable"]

    def test_too_few_creations_at_a_time_are_told_with_the_number_that_would_do(self) -> None:
        # One in flight on average: 1.5 times as many are two.
        curve = measured(A_HUNDRED_AN_HOUR, servers=1)
        decision = decided(warm(serviceLevel=APPLY), curve, limits=Limits(servers=1))
        assert "RefillBound" in reasons(decision)
        message = next(advice.message for advice in decision.warnings if advice.reason == "RefillBound")
        assert re.search(r"need limits\.maxConcurrentCreations: 2 or more; it is 1$", message)
        assert "claims an hour (" in message

    def test_the_number_that_is_told_does(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR, servers=2)
        assert decided(warm(serviceLevel=APPLY), curve, limits=Limits(servers=2)).warnings == ()

    def test_it_is_told_without_a_service_level_too(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR, servers=1)
        assert reasons(decided(warm(percent="10%"), curve, limits=Limits(servers=1))) == ["RefillBound"]

    def test_it_is_the_first_thing_told_even_of_a_level_that_only_advises(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR, servers=1)
        spec = warm(max=1, serviceLevel={"target": "99%"})
        assert reasons(decided(spec, curve, limits=Limits(servers=1))) == ["RefillBound", "LevelUnreachable"]

    def test_a_rate_is_told_in_whole_claims_an_hour(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR, servers=1)
        [advice] = decided(warm(percent="10%"), curve, limits=Limits(servers=1)).warnings
        assert re.search(r"^\d{2,} claims an hour \((at any time|around )", advice.message)

    def test_a_pool_of_a_number_alone_is_told_nothing(self) -> None:
        assert decided(warm(replicas=3), measured(20), limits=Limits(servers=1)).warnings == ()

    def test_all_that_is_wrong_is_told(self) -> None:
        spec = warm(
            max=3,
            serviceLevel=APPLY,
            webhook={"url": "https://a.example.com"},
            budget={"maxIdleHoursPerDay": 1},
        )
        decision = decided(
            spec,
            measured(A_HUNDRED_AN_HOUR, servers=1),
            limits=Limits(servers=1),
            webhook=WebhookAnswer(None, NOON, error="no such host"),
        )
        assert {*reasons(decision)} >= {"LevelUnreachable", "RefillBound", "WebhookFailing", "BudgetBites"}


class TestSlowBoots:
    def test_the_target_falls_no_sooner_than_nineteen_of_twenty_boots_take(self) -> None:
        slow, lately, spec = measured(500, boot=600.0), Stabilizer(), warm(percent="0%")
        lately.seed(9, NOON)
        patience = slow.lead.p95 or 0.0
        assert patience > 600
        assert decided(spec, slow, NOON + 1, stabilizer=lately).target == 9
        held = decided(spec, slow, NOON + patience, stabilizer=lately)
        assert held.target == 9
        assert held.policies[-1].because == (
            f"9 was asked for less than {text(patience)} ago (19 of 20 are ready within that time)"
        )
        assert decided(spec, slow, NOON + 1 + patience, stabilizer=lately).target == 1

    def test_a_schedule_opens_earlier_for_slow_boots(self) -> None:
        opening, spec = at("2026-12-02T07:30"), warm(replicas=0, schedules=[OFFICE])
        slow, fast = measured(500, boot=600.0), measured(500, boot=20.0)
        ten_minutes_before = opening - 600
        assert decided(spec, slow, ten_minutes_before).target == 20
        assert decided(spec, fast, ten_minutes_before).target == 0
        assert decided(spec, fast, opening - 60).target == 20


class TestABudgetThatKnowsDemand:
    SPEC = warm(
        replicas=0, schedules=[{**OFFICE, "start": "0 0 * * *", "duration": "24h"}],
        budget={"maxIdleHoursPerDay": 60, "timeZone": BERLIN},
    )  # fmt: skip

    def test_busy_hours_get_more_than_quiet_ones(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR * 2, day=True)
        busy = decided(self.SPEC, curve, at("2026-12-02T10:00"))
        quiet = decided(self.SPEC, curve, at("2026-12-02T03:00"))
        assert busy.decided_by == "budget"
        assert busy.target > quiet.target

    def test_a_day_serves_more_claims_than_the_same_spread_evenly(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR * 2, day=True)
        spent, targets = IdleSpent(), []
        for hour in range(24):
            now = at("2026-12-02T00:00") + hour * HOUR
            units = decided(self.SPEC, curve, now, spent=spent).target
            tail = curve.demand(now).tail(np.arange(1, units + 1))
            spent.observe(round(float((1 - tail).sum())), now)
            targets.append(units)
        hours = [curve.demand(at("2026-12-02T00:30") + hour * HOUR) for hour in range(24)]
        served = [
            demand.rate_per_hour * (1 - demand.tail(np.array([units]))[0])
            for demand, units in zip(hours, targets, strict=True)
        ]
        evenly = [demand.rate_per_hour * (1 - demand.tail(np.array([60 // 24]))[0]) for demand in hours]
        assert sum(served) > sum(evenly)
        assert spent.today(at("2026-12-03T00:00") - 1, BERLIN) <= 60 * 1.05

    def test_a_level_that_will_ask_for_little_at_night_leaves_more_for_the_day(self) -> None:
        curve = measured(A_HUNDRED_AN_HOUR * 2, day=True)
        ample = {"maxIdleHoursPerDay": 150, "timeZone": BERLIN}
        spec = warm(replicas=0, serviceLevel={"target": "99.9%", "mode": "Apply"}, budget=ample)
        assert decided(spec, curve, at("2026-12-02T10:00")).decided_by == "serviceLevel"

    def test_within_an_hour_it_is_not_reckoned_again(self) -> None:
        curve, spent = measured(A_HUNDRED_AN_HOUR), IdleSpent()
        decided(self.SPEC, curve, NOON, spent=spent)
        first = spent.remembered
        decided(self.SPEC, curve, NOON + 1_800, spent=spent)
        assert spent.remembered is first
        decided(self.SPEC, curve, NOON + 3_600, spent=spent)
        assert spent.remembered is not first


@pytest.mark.thorough
def test_a_decision_from_a_week_of_a_hundred_thousand_claims_takes_milliseconds() -> None:
    past = history(100_000)
    curve = build(past.snapshot(NOON), servers=10)
    spec = warm(
        replicas=2,
        percent="10%",
        serviceLevel={"target": "99.9%", "mode": "Apply"},
        schedules=[{**OFFICE, "name": f"s{number}"} for number in range(16)],
        budget={"maxIdleHoursPerDay": 200, "timeZone": BERLIN},
    )
    spent, lately, took = IdleSpent(), Stabilizer(), []
    for second in range(300):
        recent = past.recent(NOON + second)
        begun = time.process_time()
        decided(spec, curve, NOON + second, stabilizer=lately, spent=spent, recent=recent)
        took.append(time.process_time() - begun)
    assert np.median(took) <= 0.005  # of CPU: what else the machine does is not the decision's
