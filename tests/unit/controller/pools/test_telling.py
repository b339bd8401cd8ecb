"""What a status says of a decision: as it always did by default, and nothing that ticks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.decision import Advice, Decision, Policy
from controller.pools.telling import Told, figures, percent, policies_met, remembered, warm
from crds.conditions import Truth
from crds.warm import WarmCapacity, WarmStatus

Json = dict[str, Any]

FLOOR = Policy("replicas", 3, "spec.warm.replicas is 3")
LEVEL = Policy("serviceLevel", 8, "99% of 12 claims an hour")


def decision(*policies: Policy, target: int = 3, by: str = "replicas", warn: str = "") -> Decision:
    warnings = (Advice("RefillBound", warn),) if warn else ()
    return Decision(target, by, policies or (FLOOR,), warnings)


def test_by_default_it_says_what_it_always_did() -> None:
    assert warm(2, Told(decision())) == {
        "ready": 2,
        "target": 3,
        "decidedBy": "replicas",
        "policies": [{"name": "replicas", "wants": 3, "because": "spec.warm.replicas is 3"}],
    }
    assert figures(Told(decision())) == {}


def test_a_policy_that_only_advises_says_so() -> None:
    advice = Policy("serviceLevel", 8, "why", applied=False)
    said = warm(3, Told(decision(FLOOR, advice)))["policies"]
    assert [each.get("applied", True) for each in said] == [True, False]


def test_what_it_says_fits_the_definition_however_much_there_is_to_say() -> None:
    many = [Policy(f"schedule/{number}", 1, "x" * 5000) for number in range(50)]
    WarmStatus.model_validate(warm(0, Told(decision(FLOOR, *many))))


def test_what_a_status_says_is_gone_on_with_by_the_next_leader() -> None:
    before = decision(FLOOR, LEVEL, Policy("percent", 1, "why", applied=False), target=8, by="serviceLevel")
    assert remembered(WarmStatus.model_validate(warm(3, Told(before)))) == before


@pytest.mark.parametrize(
    ("fresh", "same"),
    [
        (decision(FLOOR, Policy("serviceLevel", 9, "99% of 13 claims an hour"), warn="m is 5"), True),
        (decision(FLOOR, LEVEL, target=4, warn="m is 4"), False),
        (decision(FLOOR, LEVEL, by="max", warn="m is 4"), False),
        (decision(FLOOR, warn="m is 4"), False),
        (decision(FLOOR, LEVEL), False),
    ],
)
def test_a_number_within_a_sentence_is_no_news(fresh: Decision, same: bool) -> None:  # noqa: FBT001 - a case
    assert Told(decision(FLOOR, LEVEL, warn="m is 4")).shows(fresh) is same


def test_rates_have_two_digits_and_are_absent_while_nothing_is_known() -> None:
    assert figures(Told(decision(), 12.34567, 0.98765)) == {"claimsPerHour": 12.35, "hitRatio": "98.76%"}


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (0.5, "50%"), (0.992, "99.2%"), (0.99996, "99.99%"), (1.0, "100%")]
)
def test_a_ratio_is_written_as_people_do_and_says_100_of_all_alone(share: float, text: str) -> None:
    assert percent(share) == text


@given(st.integers(0, 10_000))
def test_a_ratio_of_two_digits_is_written_exactly(number: int) -> None:
    assert float(percent(number / 10_000).removesuffix("%")) == number / 100


# ---- the condition


SIZED = WarmCapacity.model_validate({"percent": "10%"})


def test_who_asks_for_a_number_alone_gets_no_condition() -> None:
    assert policies_met(WarmCapacity(), Told(decision())) is None


def test_without_trouble_all_that_is_asked_for_is_had() -> None:
    verdict = policies_met(SIZED, Told(decision()))
    assert verdict is not None
    assert verdict[:2] == (Truth.TRUE, "AsAsked")


def test_the_first_warning_is_the_reason_and_all_are_told_once() -> None:
    warnings = (Advice("RefillBound", "one"), Advice("BudgetBites", "two"), Advice("BudgetBites", "two"))
    verdict = policies_met(SIZED, Told(Decision(3, "replicas", (FLOOR,), warnings)))
    assert verdict == (Truth.FALSE, "RefillBound", "one; two")


def test_a_budget_alone_has_the_condition_too() -> None:
    spec = WarmCapacity.model_validate({"budget": {"maxIdleHoursPerDay": 1}})
    assert policies_met(spec, Told(decision(warn="too dear"))) == (Truth.FALSE, "RefillBound", "too dear")
