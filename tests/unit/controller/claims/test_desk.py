"""The desk that all namespaces share: nobody waits for room when there is some."""

from __future__ import annotations

from controller.claims.desk import Desk


class Space:
    """A namespace with so many hand-overs to start, as many at once as there is room for."""

    def __init__(self, desk: Desk, name: str, todo: int, log: list[str]) -> None:
        self.desk, self.name, self.todo, self.log = desk, name, todo, log

    def serve(self) -> None:
        while self.todo and self.desk.room > 0:
            self.desk.room -= 1
            self.todo -= 1
            self.log.append(self.name)
        if self.todo:
            self.desk.wait_for_room(self.name, self.serve)


def test_the_end_of_one_namespaces_hand_over_serves_another_that_waits() -> None:
    log: list[str] = []
    desk = Desk(2)
    Space(desk, "busy", 2, log).serve()
    Space(desk, "waiting", 1, log).serve()
    assert log == ["busy", "busy"]
    desk.give_back()
    assert log == ["busy", "busy", "waiting"]


def test_those_who_wait_take_turns() -> None:
    log: list[str] = []
    desk = Desk(1)
    for name in ("a", "b", "c"):
        Space(desk, name, 3, log).serve()
    while len(log) < 9:
        desk.give_back()
    assert "".join(log) == "a" + "abc" + "abc" + "bc"


def test_room_that_the_first_does_not_use_is_offered_to_the_next() -> None:
    log: list[str] = []
    desk = Desk(1)
    Space(desk, "busy", 1, log).serve()
    changed = Space(desk, "changed its mind", 1, log)
    changed.serve()
    Space(desk, "waiting", 1, log).serve()
    changed.todo = 0
    desk.give_back()
    assert log == ["busy", "waiting"]


def test_with_nobody_waiting_there_is_room_again() -> None:
    desk = Desk(1)
    desk.room -= 1
    desk.give_back()
    assert desk.room == 1
