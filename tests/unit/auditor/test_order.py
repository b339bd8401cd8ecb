"""Several watches, one order."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.events import Change, Event, Kind, Violation
from auditor.order import Order
from tests.unit.auditor.story import Story, judged


def event(kind: Kind, rv: int) -> Event:
    return Event(kind, Change.MODIFIED, rv)


def rvs(events: list[Event]) -> list[int]:
    return [one.rv for one in events]


def test_an_event_waits_until_every_stream_has_come_as_far() -> None:
    order = Order([Kind.VM, Kind.CLAIM])
    order.push(event(Kind.VM, 11))

    assert order.take() == []
    assert order.lagging == [Kind.CLAIM]
    order.push(event(Kind.CLAIM, 10))
    assert rvs(order.take()) == [10]
    order.reached(Kind.CLAIM, 11)
    assert rvs(order.take()) == [11]
    assert order.lagging == []


def test_a_bookmark_lets_what_came_before_it_go() -> None:
    order = Order([Kind.VM, Kind.CLAIM])
    order.push(event(Kind.VM, 11))
    order.push(event(Kind.VM, 13))
    order.reached(Kind.CLAIM, 12)

    assert rvs(order.take()) == [11]
    assert order.lagging == [Kind.CLAIM]


def test_a_stream_never_goes_back() -> None:
    order = Order([Kind.VM, Kind.CLAIM])
    order.reached(Kind.CLAIM, 20)
    order.reached(Kind.CLAIM, 5)
    order.push(event(Kind.VM, 15))

    assert rvs(order.take()) == [15]


def test_nothing_lags_when_nothing_waits() -> None:
    assert Order([Kind.VM, Kind.CLAIM]).lagging == []


def test_what_one_stream_says_at_one_version_keeps_its_order() -> None:
    order = Order([Kind.VM])
    order.push(Event(Kind.VM, Change.DARK, 7, until=9))
    order.push(event(Kind.VM, 7))

    assert [one.change for one in order.take()] == [Change.DARK, Change.MODIFIED]


def _clean(story: Story) -> None:
    story.bound("one", "a")
    story.claim("b")
    story.remove(Kind.CLAIM, "a")
    story.destroy("one")
    story.bound("two", "b")
    story.status("b", phase="Releasing")
    story.destroy("two")
    story.status("b", phase="Released")


def _double(story: Story) -> None:
    story.bound("one", "a")
    story.claim("b")
    story.hand_over("one", "b")
    story.publish("b", "one")
    story.vm("two")
    story.destroy("two")


def _early(story: Story) -> None:
    story.bound("one", "a")
    story.destroy("one")
    story.remove(Kind.CLAIM, "a")


@pytest.mark.parametrize(("tell", "broken"), [(_clean, 0), (_double, 3), (_early, 1)])
@given(data=st.data())
def test_whatever_the_watches_race_the_verdict_is_the_same(
    tell: Callable[[Story], None], broken: int, data: st.DataObject
) -> None:
    story = Story()
    tell(story)
    expected = judged(story.events).violations
    streams = {kind: [one for one in story.events if one.kind is kind] for kind in Kind}
    order, taken = Order(Kind), list[Event]()

    while any(streams.values()):
        kind = data.draw(st.sampled_from([kind for kind, left in streams.items() if left]))
        if data.draw(st.booleans()):
            taken += order.take()
        order.push(streams[kind].pop(0))
    for kind in Kind:
        order.reached(kind, story.rv)
    taken += order.take()

    assert len(expected) == broken
    assert _verdict(taken) == expected


def _verdict(events: list[Event]) -> list[Violation]:
    return judged(events).violations


@given(st.lists(st.tuples(st.sampled_from(Kind), st.integers(1, 5)), max_size=60))
def test_what_is_let_go_is_sorted_and_nothing_is_lost(steps: list[tuple[Kind, int]]) -> None:
    order, at, pushed, taken = Order(Kind), dict.fromkeys(Kind, 0), list[int](), list[int]()
    for kind, step in steps:
        at[kind] += step
        pushed.append(at[kind])
        order.push(event(kind, at[kind]))
        taken += rvs(order.take())

    assert taken == sorted(taken)
    for kind in Kind:
        order.reached(kind, 1000)
    taken += rvs(order.take())
    assert taken == sorted(pushed)
