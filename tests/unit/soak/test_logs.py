"""What is alarming in a log, and what is not."""

from __future__ import annotations

import pytest

from tests.soak.logs import NOT_LEADING, complaints

LOST = f'{{"event": "{NOT_LEADING}: nothing is written; start it again to stand by", "level": "error"}}'


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "ready", "level": "info"}',
        '{"event": "VM failed", "why": "CrashLoop: it Failed", "level": "warning"}',
        "kopf: a pause of 1 s",
        "kopf._cogs.clients.watching: Request attempt #1/9 failed; will retry: ClientConnectorError()",
        "",
    ],
)
def test_what_is_said_every_day_is_fine(line: str) -> None:
    assert list(complaints(line)) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "pass failed", "level": "error"}',
        '{"event": "the end", "level": "critical"}',
        '{"event": "odd", "level": "warning", "exception": "Traceback (most recent call last):"}',
        "Traceback (most recent call last):",
        "asyncio: Task exception was never retrieved",
        "asyncio: Task was destroyed but it is pending!",
        "asyncio: Unclosed client session",
        "sys:1: ResourceWarning: unclosed transport",
        "RuntimeWarning: coroutine 'x' was never awaited",
    ],
)
def test_what_is_alarming_is_found(line: str) -> None:
    assert list(complaints(f'{{"event": "ready", "level": "info"}}\n{line}\n')) == [line]


def test_who_was_made_to_lose_the_lease_may_say_so() -> None:
    assert list(complaints(LOST, lost_its_lease=True)) == []


def test_who_lost_it_for_no_reason_may_not() -> None:
    assert list(complaints(LOST)) == [LOST]


def test_nothing_else_is_forgiven_with_it() -> None:
    other = '{"event": "ended by an error", "level": "error"}'
    assert list(complaints(f"{LOST}\n{other}", lost_its_lease=True)) == [other]
