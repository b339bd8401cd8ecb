import pytest

from capacity import policies
from capacity.decision import Stock, WebhookAnswer

NOON = 1_796_212_800.0  # 2026-12-02T12:00 UTC


@pytest.mark.parametrize(
    ("share", "in_use", "units"),
    [("20%", 11, 3), ("20%", 10, 2), ("150%", 3, 5), ("0%", 9, 0), ("500%", 0, 0)],
)
def test_a_share_of_what_is_in_use_is_rounded_up(share: str, in_use: int, units: int) -> None:
    ask = policies.percent(share, Stock(ready=7, in_flight=7, in_use=in_use, backorders=7))
    assert ask.policy.wants == units
    assert ask.policy.because == f"{share} of {in_use} in use, rounded up"


def test_a_webhook_that_answers_is_asked_for_nothing_more() -> None:
    ask = policies.webhook(WebhookAnswer(12, NOON - 9_999), NOON)
    assert (ask.policy.wants, ask.policy.because, ask.warnings, ask.changes_at) == (
        12,
        "answered 12",
        (),
        None,
    )


def test_a_webhook_that_fails_has_its_last_good_answer_for_ten_minutes() -> None:
    ask = policies.webhook(WebhookAnswer(12, NOON, error="it took longer than 5s"), NOON + 300)
    assert ask.policy.wants == 12
    assert ask.policy.because == "it fails; its last good answer, 12, counts until 12:10 UTC"
    assert ask.changes_at == NOON + 600
    [warning] = ask.warnings
    assert warning.reason == "WebhookFailing"
    assert warning.message.startswith("the webhook fails: it took longer than 5s; ")


def test_after_ten_minutes_a_failing_webhook_asks_for_nothing() -> None:
    answer = WebhookAnswer(12, NOON, error="connection refused")
    assert policies.webhook(answer, NOON + 600).policy.wants == 12
    ask = policies.webhook(answer, NOON + 601)
    assert (ask.policy.wants, ask.changes_at) == (0, None)
    assert "connection refused" in ask.warnings[0].message
    assert "no good answer of the last ten minutes" in ask.policy.because


def test_a_webhook_that_never_answered_asks_for_nothing() -> None:
    ask = policies.webhook(WebhookAnswer(None, NOON, error="no such host"), NOON)
    assert ask.policy.wants == 0
    assert ask.warnings[0].reason == "WebhookFailing"
    unasked = policies.webhook(None, NOON)
    assert (unasked.policy.wants, unasked.warnings) == (0, ())


def test_what_a_failing_webhook_says_does_not_tick() -> None:
    answer = WebhookAnswer(12, NOON, error="connection refused")
    told = {policies.webhook(answer, NOON + second).policy.because for second in range(600)}
    assert len(told) == 1
