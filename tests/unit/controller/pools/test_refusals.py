"""What is refused is asked for again: soon, ever more rarely, and at once when there may be room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.pools.refusals import LONGEST, NEVER, Refusal, Refusals, growing_pause
from controller.pools.snapshot import Trouble
from tests.support.builders import NOW

QUOTA = Refusal("QuotaRefused", "exceeded quota")
WEBHOOK = Refusal("ApiRefused", "failed calling webhook")
TEMPLATE = Refusal("TemplateInvalid", "no domain")


def pauses(refusal: Refusal, count: int) -> list[float]:
    """Seconds until each next try, when every try is refused."""
    seen, now, found = Refusals(), NOW, []
    for _ in range(count):
        seen = seen.refused(refusal, now, 3)
        found.append(seen.retry_at - now)
        assert not seen.over(seen.retry_at - 0.1, 3)
        now = seen.retry_at
        assert seen.over(now, 3)
        seen = seen.again()
    return found


def test_what_may_pass_by_itself_is_tried_again_within_a_minute() -> None:
    assert pauses(QUOTA, 5) == pauses(WEBHOOK, 5) == [10.0, 20.0, 40.0, 60.0, 60.0]


def test_a_template_is_tried_ever_more_rarely() -> None:
    assert pauses(TEMPLATE, 7) == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


def test_refusals_that_come_together_lengthen_the_pause_once() -> None:
    seen = Refusals()
    for _ in range(8):
        seen = seen.refused(QUOTA, NOW, 3)
    assert (seen.retry_at, seen.pause) == (NOW + 10.0, 20.0)


def test_a_quota_is_tried_at_once_when_a_vm_went() -> None:
    seen = Refusals().refused(QUOTA, NOW, total=5)
    assert not seen.over(NOW + 1, total=5)
    assert not seen.over(NOW + 1, total=6)
    assert seen.over(NOW + 1, total=4)
    assert not Refusals().refused(WEBHOOK, NOW, total=5).over(NOW + 1, total=4)


def test_nothing_is_over_when_nothing_was_refused() -> None:
    assert not Refusals().over(NOW, 0)
    assert not Refusals().any


def test_only_a_template_at_fault_makes_the_pool_invalid_to_its_claims() -> None:
    assert Refusals().refused(TEMPLATE, NOW, 0).template == "no domain"
    assert Refusals().refused(WEBHOOK, NOW, 0).template == ""
    assert Refusals().refused(QUOTA, NOW, 0).template == ""


def test_a_template_that_can_not_be_used_waits_for_a_change() -> None:
    seen = Refusals().failed(Trouble("TemplateInvalid", "no domain"))
    assert seen.retry_at == NEVER
    assert not seen.over(NOW + 1e9, 0)


@given(st.integers(0, 10_000))
def test_a_refused_removal_is_tried_again_in_five_seconds_to_a_minute(setbacks: int) -> None:
    assert 5.0 <= growing_pause(5.0, setbacks) <= LONGEST
