from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.decide import decide
from capacity.decision import Decision, Limits, Policy, Stock, WebhookAnswer
from capacity.idle import IdleSpent
from capacity.stabilize import Stabilizer
from crds.warm import WarmCapacity
from tests.unit.crds import strategies

BERLIN = "Europe/Berlin"
HOUR = 3600.0
EMPTY = Stock(ready=0, in_flight=0, in_use=0)
LIMITS = Limits(servers=10, most=100)
HOOK = {"url": "https://forecast.example.com"}
OFFICE = {
    "name": "office",
    "start": "30 7 * * mon-fri",
    "timeZone": BERLIN,
    "duration": "10h",
    "replicas": 20,
}


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(BERLIN)).timestamp()


NOON = at("2026-12-02T12:00")  # a Wednesday
NIGHT = at("2026-12-02T22:00")


def warm(**written: Any) -> WarmCapacity:
    return WarmCapacity.model_validate(written)


def decided(
    spec: WarmCapacity,
    now: float = NOON,
    *,
    in_use: int = 0,
    stabilizer: Stabilizer | None = None,
    limits: Limits = LIMITS,
    **known: Any,
) -> Decision:
    stock = Stock(ready=0, in_flight=0, in_use=in_use)
    return decide(spec, stock, now=now, stabilizer=stabilizer or Stabilizer(), limits=limits, **known)


def brief(decision: Decision) -> tuple[int, str]:
    return decision.target, decision.decided_by


class TestTheFloorAlone:
    def test_it_is_the_target_as_it_always_was(self) -> None:
        decision = decided(warm(replicas=5))
        assert decision == Decision(5, "replicas", (Policy("replicas", 5, "spec.warm.replicas is 5"),))

    def test_a_pool_that_says_nothing_keeps_one(self) -> None:
        assert brief(decided(WarmCapacity())) == (1, "replicas")

    def test_it_is_followed_down_at_once(self) -> None:
        lately = Stabilizer()
        assert decided(warm(replicas=9), stabilizer=lately).target == 9
        assert decided(warm(replicas=2), NOON + 1, stabilizer=lately).target == 2

    def test_a_bound_above_it_changes_nothing(self) -> None:
        assert brief(decided(warm(replicas=5, max=9))) == (5, "replicas")

    def test_it_costs_nothing_to_speak_of(self) -> None:
        assert decided(warm(replicas=5)) is decided(warm(replicas=5))


class TestEachPolicy:
    def test_a_share_of_what_is_in_use(self) -> None:
        assert brief(decided(warm(percent="20%"), in_use=42)) == (9, "percent")

    def test_a_schedule_that_is_open(self) -> None:
        decision = decided(warm(replicas=2, schedules=[OFFICE]))
        assert brief(decision) == (20, "schedule/office")
        assert decision.policies[1].because == (
            "schedule office is open until Wed 2026-12-02 17:30 Europe/Berlin"
        )
        assert decision.next_change_at == at("2026-12-02T17:30")

    def test_a_schedule_that_is_closed(self) -> None:
        decision = decided(warm(replicas=2, schedules=[OFFICE]), NIGHT)
        assert brief(decision) == (2, "replicas")
        assert decision.policies[1].wants == 0

    def test_a_schedule_is_full_in_time_though_no_boot_was_measured_yet(self) -> None:
        # 20 at 10 at a time, of a minute each to be careful.
        opening = at("2026-12-02T07:30")
        assert decided(warm(schedules=[OFFICE]), opening - 121).target == 1
        assert decided(warm(schedules=[OFFICE]), opening - 120).target == 20

    def test_a_webhook(self) -> None:
        assert brief(decided(warm(webhook=HOOK), webhook=WebhookAnswer(7, NOON))) == (7, "webhook")

    def test_a_webhook_that_fails_leaves_the_others_be(self) -> None:
        decision = decided(
            warm(webhook=HOOK, schedules=[OFFICE]), webhook=WebhookAnswer(None, NOON, error="refused")
        )
        assert brief(decision) == (20, "schedule/office")
        assert [advice.reason for advice in decision.warnings] == ["WebhookFailing"]

    def test_a_failing_webhooks_answer_ends_at_a_time_that_is_told(self) -> None:
        answer = WebhookAnswer(7, NOON - 60, error="refused")
        assert decided(warm(webhook=HOOK), webhook=answer).next_change_at == NOON + 540

    def test_a_schedule_that_never_opens_is_told(self) -> None:
        decision = decided(warm(schedules=[{**OFFICE, "start": "0 8 30 2 *"}]))
        [advice] = decision.warnings
        assert advice.reason == "ScheduleNeverOpens"
        assert advice.message == "schedule office never opens: no such day comes: change its start"


ALL: dict[str, Any] = {"replicas": 3, "percent": "50%", "schedules": [OFFICE], "webhook": HOOK}


class TestTheComposition:
    @pytest.mark.parametrize(
        ("in_use", "answer", "expected"),
        [
            (10, 7, (20, "schedule/office")),
            (100, 7, (50, "percent")),
            (10, 60, (60, "webhook")),
        ],
    )
    def test_the_largest_of_those_that_react_wins(
        self, in_use: int, answer: int, expected: tuple[int, str]
    ) -> None:
        decision = decided(warm(**ALL), in_use=in_use, webhook=WebhookAnswer(answer, NOON))
        assert brief(decision) == expected

    def test_every_policy_says_what_it_wants_though_another_one_wins(self) -> None:
        decision = decided(warm(**ALL), in_use=10, webhook=WebhookAnswer(60, NOON))
        assert [(policy.name, policy.wants) for policy in decision.policies] == [
            ("replicas", 3),
            ("percent", 5),
            ("schedule/office", 20),
            ("webhook", 60),
        ]
        assert all(policy.because for policy in decision.policies)

    def test_max_bounds_them_and_says_so(self) -> None:
        decision = decided(warm(**ALL, max=12), in_use=10)
        assert brief(decision) == (12, "max")
        assert decision.policies[-1] == Policy("max", 12, "spec.warm.max is 12")

    def test_the_floor_wins_over_what_is_less(self) -> None:
        assert brief(decided(warm(replicas=30, percent="50%"), in_use=10)) == (30, "replicas")

    def test_the_floor_wins_where_another_one_asks_for_the_same(self) -> None:
        assert brief(decided(warm(replicas=5, percent="50%"), in_use=10)) == (5, "replicas")

    def test_a_floor_of_nothing_lets_the_pool_be_empty(self) -> None:
        assert brief(decided(warm(replicas=0, percent="50%"), in_use=0)) == (0, "replicas")


class TestUpAtOnceAndDownSlowly:
    SPEC = warm(replicas=1, percent="100%")

    def test_a_peak_is_held_for_the_stabilization(self) -> None:
        lately = Stabilizer()
        assert brief(decided(self.SPEC, NOON, in_use=40, stabilizer=lately)) == (40, "percent")
        held = decided(self.SPEC, NOON + 10, in_use=4, stabilizer=lately)
        assert brief(held) == (40, "scaleDown")
        assert held.policies[-1].because == "40 was asked for less than 5m ago (scaleDown.stabilization)"
        assert held.next_change_at == NOON + 310
        assert brief(decided(self.SPEC, NOON + 311, in_use=4, stabilizer=lately)) == (4, "percent")

    def test_a_written_stabilization_is_followed(self) -> None:
        lately, spec = Stabilizer(), warm(percent="100%", scaleDown={"stabilization": "0s"})
        decided(spec, NOON, in_use=40, stabilizer=lately)
        assert brief(decided(spec, NOON + 10, in_use=4, stabilizer=lately)) == (4, "percent")

    def test_the_floor_goes_up_and_down_at_once_beneath_it(self) -> None:
        lately = Stabilizer()
        assert decided(warm(replicas=50, percent="100%"), NOON, in_use=4, stabilizer=lately).target == 50
        assert decided(warm(replicas=9, percent="100%"), NOON + 1, in_use=4, stabilizer=lately).target == 9

    def test_max_cuts_at_once_what_is_held(self) -> None:
        lately = Stabilizer()
        decided(self.SPEC, NOON, in_use=40, stabilizer=lately)
        bounded = warm(replicas=1, percent="100%", max=10)
        assert brief(decided(bounded, NOON + 10, in_use=4, stabilizer=lately)) == (10, "max")

    def test_a_restart_does_not_drop_what_was_held(self) -> None:
        lately = Stabilizer()
        lately.seed(40, NOON)
        assert brief(decided(self.SPEC, NOON + 1, in_use=4, stabilizer=lately)) == (40, "scaleDown")

    def test_who_takes_all_policies_away_is_followed_at_once(self) -> None:
        lately = Stabilizer()
        decided(self.SPEC, NOON, in_use=40, stabilizer=lately)
        assert brief(decided(warm(replicas=1), NOON + 1, stabilizer=lately)) == (1, "replicas")
        assert brief(decided(self.SPEC, NOON + 2, in_use=4, stabilizer=lately)) == (4, "percent")


class TestTheBudget:
    def spent(self, hours: float) -> IdleSpent:
        """So many unit-hours of this morning."""
        spent = IdleSpent()
        spent.observe(round(hours), NOON - 2 * HOUR)
        spent.observe(0, NOON - HOUR)
        return spent

    def test_one_that_suffices_changes_nothing_and_says_so(self) -> None:
        decision = decided(warm(replicas=2, schedules=[OFFICE], budget={"maxIdleHoursPerDay": 480}))
        assert brief(decision) == (20, "schedule/office")
        assert (
            decision.policies[-1].because == "480 idle hours a day are enough for all that is asked for now"
        )
        assert decision.warnings == ()

    def test_one_that_does_not_cuts_and_says_so(self) -> None:
        # Six hours are left of the slot and six more of the day, in which the floor of 2 is kept.
        spec = warm(replicas=2, schedules=[OFFICE], budget={"maxIdleHoursPerDay": 120, "timeZone": BERLIN})
        decision = decided(spec, spent=self.spent(36))
        assert brief(decision) == (12, "budget")
        [advice] = decision.warnings
        assert advice.reason == "BudgetBites"
        assert advice.message == (
            "the budget cuts what is asked for: what is left of 120 idle hours a day leaves 12 for now, "
            "of 20; raise budget.maxIdleHoursPerDay"
        )

    def test_it_never_cuts_the_floor_and_says_what_the_floor_costs(self) -> None:
        spec = warm(replicas=4, percent="100%", budget={"maxIdleHoursPerDay": 10})
        decision = decided(spec, in_use=30, spent=self.spent(10))
        assert brief(decision) == (4, "replicas")
        assert [advice.reason for advice in decision.warnings] == ["BudgetBites", "BudgetBites"]
        assert "warm.replicas alone may cost 96 idle hours a day and is kept all the same" in (
            decision.warnings[0].message
        )

    def test_one_that_does_not_pay_for_the_floor_is_not_called_enough(self) -> None:
        decision = decided(warm(replicas=3, percent="100%", budget={"maxIdleHoursPerDay": 0}), in_use=3)
        assert decision.policies[-1].because == (
            "warm.replicas is kept whatever it costs, and 0 idle hours a day do not pay for it all day"
        )

    def test_a_floor_that_overdraws_it_is_told_though_nothing_else_is_written(self) -> None:
        decision = decided(warm(replicas=4, budget={"maxIdleHoursPerDay": 10}))
        assert brief(decision) == (4, "replicas")
        assert [advice.reason for advice in decision.warnings] == ["BudgetBites"]

    def test_it_is_reckoned_once_an_hour_so_that_the_target_does_not_jitter(self) -> None:
        spec = warm(percent="100%", budget={"maxIdleHoursPerDay": 100, "timeZone": BERLIN})
        spent, lately, targets = IdleSpent(), Stabilizer(), []
        target = 0
        for second in range(0, 3600, 30):
            spent.observe(target, NOON + second)
            target = decided(spec, NOON + second, in_use=30, stabilizer=lately, spent=spent).target
            targets.append(target)
        assert set(targets) == {100 // 12}

    def test_a_day_of_it_is_spent_and_not_overdrawn(self) -> None:
        spec = warm(replicas=1, percent="100%", budget={"maxIdleHoursPerDay": 150, "timeZone": BERLIN})
        spent, lately, midnight = IdleSpent(), Stabilizer(), at("2026-12-02T00:00")
        for minute in range(24 * 60):
            now = midnight + minute * 60
            target = decided(spec, now, in_use=30, stabilizer=lately, spent=spent).target
            spent.observe(target, now)
        total = spent.today(midnight + 24 * HOUR - 1, BERLIN)
        assert 130 <= total <= 150 + 1

    def test_a_new_day_brings_a_new_budget(self) -> None:
        spec = warm(percent="100%", budget={"maxIdleHoursPerDay": 240, "timeZone": BERLIN})
        spent = IdleSpent()
        spent.observe(60, at("2026-12-02T18:00"))
        assert decided(spec, at("2026-12-02T23:30"), in_use=30, spent=spent).target == 1
        spent.observe(0, at("2026-12-03T00:00"))
        assert decided(spec, at("2026-12-03T00:00"), in_use=30, spent=spent).target == 10

    def test_it_looks_again_at_the_next_hour_of_its_day(self) -> None:
        spec = warm(percent="100%", budget={"maxIdleHoursPerDay": 240, "timeZone": BERLIN})
        assert decided(spec, NOON + 600, in_use=30).next_change_at == NOON + HOUR


def let_in(spec: WarmCapacity) -> bool:
    """Whether the API server lets it in."""
    names = [schedule.name for schedule in spec.schedules]
    return (spec.max is None or spec.replicas <= spec.max) and len({*names}) == len(names)


specs = strategies.warm_capacities.filter(let_in)
answers = st.none() | st.builds(
    WebhookAnswer,
    units=st.none() | st.integers(0, 500),
    at=st.floats(NOON - 2_000, NOON),
    error=st.sampled_from(["", "refused"]),
)


@given(specs, st.integers(0, 200), answers, st.floats(0, 5_000))
def test_whatever_is_written_the_target_keeps_the_formula(
    spec: WarmCapacity, in_use: int, answer: WebhookAnswer | None, hours: float
) -> None:
    spent = IdleSpent()
    spent.observe(int(hours), NOON - HOUR)
    decision = decided(spec, in_use=in_use, webhook=answer, spent=spent)
    wants = {policy.name: policy.wants for policy in decision.policies if policy.applied}
    bounds = [wants.pop(name) for name in ("max", "budget") if name in wants]
    asked = max((units for name, units in wants.items() if name != "replicas"), default=0)
    assert decision.target == max(spec.replicas, min([*bounds, asked]))
    assert decision.decided_by in {policy.name for policy in decision.policies}
    assert decision.next_change_at is None or decision.next_change_at > NOON
    assert len({policy.name for policy in decision.policies}) == len(decision.policies)
    assert all(advice.message and advice.reason for advice in decision.warnings)


@given(specs, st.integers(0, 200), answers)
def test_deciding_twice_at_one_instant_decides_the_same(
    spec: WarmCapacity, in_use: int, answer: WebhookAnswer | None
) -> None:
    lately = Stabilizer()
    first = decided(spec, in_use=in_use, webhook=answer, stabilizer=lately)
    assert decided(spec, in_use=in_use, webhook=answer, stabilizer=lately) == first


class TestMoreThanMayExist:
    SPEC = warm(replicas=1, schedules=[OFFICE])

    def test_a_schedule_that_asks_for_more_is_told(self) -> None:
        [advice] = decided(self.SPEC, limits=Limits(servers=10, most=19)).warnings
        assert advice.reason == "MaxReplicasReached"
        assert advice.message == (
            "schedule/office asks for 20; limits.maxReplicas is 19: raise it, or ask for less"
        )

    def test_as_many_as_may_exist_are_no_trouble(self) -> None:
        assert decided(self.SPEC, limits=Limits(servers=10, most=20)).warnings == ()

    def test_nor_is_a_schedule_that_is_closed(self) -> None:
        assert decided(self.SPEC, NIGHT, limits=Limits(servers=10, most=19)).warnings == ()

    def test_a_level_that_asks_for_nothing_yet_hides_it_from_nobody(self) -> None:
        both = warm(replicas=1, schedules=[OFFICE], serviceLevel={"target": "99%"})
        reasons = {each.reason for each in decided(both, limits=Limits(servers=10, most=19)).warnings}
        assert reasons == {"TooFewClaims", "MaxReplicasReached"}

    def test_nor_what_warm_max_holds_down(self) -> None:
        held = warm(replicas=1, max=9, schedules=[OFFICE])
        assert decided(held, limits=Limits(servers=10, most=19)).warnings == ()
