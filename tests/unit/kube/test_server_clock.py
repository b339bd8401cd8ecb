from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from controller.kube.server_clock import ServerClock

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC).timestamp()


class Server:
    """A server whose clock reads NOON + offset when our monotonic clock reads 0."""

    def __init__(self, offset: float = 0.0, wall_offset: float = 0.0) -> None:
        self.now = 0.0
        self.offset = offset
        self.wall_offset = wall_offset
        self.clock = ServerClock(lambda: self.now, lambda: NOON + self.wall_offset + self.now)

    def answer(self, at: float, trip: float = 0.01) -> None:
        date = format_datetime(
            datetime.fromtimestamp(int(NOON + self.offset + at + trip / 2), UTC), usegmt=True
        )
        self.now = at + trip
        self.clock.observe(date, at, self.now)

    def error(self) -> float:
        return self.clock.now().timestamp() - (NOON + self.offset + self.now)


def test_one_answer_gives_the_time_to_a_second() -> None:
    server = Server(offset=1234.9)
    server.answer(0.0)
    assert abs(server.error()) <= 1.0


def test_many_answers_give_it_far_better_than_the_header_does() -> None:
    server = Server(offset=0.37)
    for step in range(60):
        server.answer(step * 0.37)
    assert abs(server.error()) < 0.05


def test_a_server_whose_clock_was_set_is_followed() -> None:
    server = Server()
    for step in range(10):
        server.answer(step * 0.3)
    server.offset = -3600.0
    server.answer(10.0)
    assert abs(server.error()) <= 1.0


def test_answers_close_together_are_not_all_looked_at() -> None:
    server = Server()
    server.answer(0.0)
    server.clock.observe("not a date at all", 0.1, 0.2)
    server.offset = 50.0
    server.answer(0.2, trip=0.001)
    assert server.error() < -49


def test_a_header_nobody_can_read_changes_nothing() -> None:
    server = Server()
    server.clock.observe("yesterday", 0.0, 0.1)
    server.clock.observe(None, 0.0, 0.1)
    assert server.clock.host_ahead() == 0.0
    assert server.clock.timeline().stretches == ()
    assert server.clock.now().timestamp() == NOON


@pytest.mark.parametrize("ahead", [0.0, 0.9, -0.9, 3.0, -3.0, -86400.0])
def test_how_far_the_hosts_clock_is_ahead_is_known_and_said_when_it_matters(ahead: float) -> None:
    server = Server(offset=0.5, wall_offset=0.5 + ahead)
    with capture_logs() as said:
        for step in range(40):
            server.answer(step * 0.37)
    assert abs(server.clock.host_ahead() - ahead) < 0.1 or abs(ahead) < 1
    told = [each["host_ahead"] for each in said]
    assert len(told) == (1 if abs(ahead) > 2 else 0)


def test_a_clock_that_is_set_again_and_again_is_told_once_a_minute() -> None:
    server = Server()
    with capture_logs() as said:
        for step in range(100):
            server.offset = 3600.0 * (step % 2)
            server.answer(step * 0.5)
    assert [each["seconds"] for each in said if "seconds" in each] == [pytest.approx(3600.0, abs=1.5)]


@pytest.mark.parametrize("jump", [-86400.0, -3600.0, -10.0, 10.0, 3600.0, 86400.0])
def test_what_was_stamped_before_the_servers_clock_was_set_is_no_older_than_it_is(jump: float) -> None:
    server = Server()
    for step in range(20):
        server.answer(step * 0.5)
    stamped = server.clock.now().timestamp()
    server.offset = jump
    for step in range(20):
        server.answer(20.0 + step * 0.5)
    age = server.clock.now().timestamp() - server.clock.timeline().restated(stamped)
    assert age <= server.now - 9.0
    assert jump < 0 or age > server.now - 12.0


def test_a_hosts_clock_that_is_set_changes_nothing_of_what_was_stamped_since_we_came() -> None:
    server = Server()
    for step in range(20):
        server.answer(step * 0.5)
    stamped = server.clock.now().timestamp()
    for wall in (-1e6, 1e6):
        server.wall_offset = wall
        assert server.clock.timeline().restated(stamped) == stamped


@given(
    st.floats(-1e5, 1e5),
    st.lists(st.tuples(st.floats(0.3, 100.0), st.floats(0.0, 3.0)), min_size=1, max_size=40),
)
def test_the_estimate_is_never_off_by_more_than_the_first_answer_allows(
    offset: float, answers: list[tuple[float, float]]
) -> None:
    server, at, shortest = Server(offset=offset), 0.0, 10.0
    for gap, trip in answers:
        at += gap
        server.answer(at, trip)
        at += trip
        shortest = min(shortest, trip)
        assert abs(server.error()) <= 1.0 + answers[0][1] + at * 200e-6 + 1e-3


def test_the_estimate_does_not_move_while_the_answers_let_it_be() -> None:
    server = Server(offset=0.5, wall_offset=0.5)
    for step in range(40):
        server.answer(step * 0.37)
        assert abs(server.error()) < 1e-6
