"""Why a controller may end, and why it may not."""

from __future__ import annotations

import signal

import pytest

from tests.soak.court import LOST_LEASE, Ending, judged


@pytest.mark.parametrize(
    ("code", "expected", "excused", "ending"),
    [
        pytest.param(-signal.SIGKILL, {-signal.SIGKILL}, False, Ending.MADE_TO, id="it was killed"),
        pytest.param(0, {0}, False, Ending.MADE_TO, id="it was told to stop"),
        pytest.param(LOST_LEASE, {LOST_LEASE}, False, Ending.MADE_TO, id="it was frozen past its lease"),
        pytest.param(LOST_LEASE, set(), True, Ending.IN_AN_OUTAGE, id="it could not renew in an outage"),
        pytest.param(LOST_LEASE, {0}, True, Ending.IN_AN_OUTAGE, id="and was told to stop in it"),
        pytest.param(LOST_LEASE, set(), False, Ending.FOR_NO_REASON, id="it lost its lease in peace"),
        pytest.param(0, set(), True, Ending.FOR_NO_REASON, id="it stopped though nobody told it"),
        pytest.param(1, {0}, False, Ending.FOR_NO_REASON, id="it crashed when it was told to stop"),
        pytest.param(1, set(), True, Ending.FOR_NO_REASON, id="it crashed in an outage"),
        pytest.param(-signal.SIGSEGV, {-signal.SIGKILL}, True, Ending.FOR_NO_REASON, id="another signal"),
    ],
)
def test_an_end(code: int, expected: set[int], excused: bool, ending: Ending) -> None:  # noqa: FBT001 - a case
    assert judged(code, expected, excused=excused) is ending


def test_who_is_told_to_stop_before_it_has_begun_need_not_know_how() -> None:
    ended = -signal.SIGTERM
    assert judged(ended, {0}, excused=False, begun=False) is Ending.MADE_TO
    assert judged(ended, {0}, excused=False, begun=True) is Ending.FOR_NO_REASON
    assert judged(ended, set(), excused=False, begun=False) is Ending.FOR_NO_REASON
