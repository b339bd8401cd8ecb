from hypothesis import given
from hypothesis import strategies as st

from controller.kube.gate import Gate, Priority, Ticket

HAND_OVER, ORDER, RELEASE, REFILL, STATUS = Priority


def full(slots: int = 1, priority: Priority = RELEASE) -> tuple[Gate, list[Ticket]]:
    gate = Gate(slots)
    return gate, [gate.ask(priority, 0.0) for _ in range(slots)]


def test_a_free_slot_is_taken_at_once() -> None:
    assert Gate(1).ask(STATUS, 0.0).admitted


def test_no_more_than_the_slots_are_in_flight() -> None:
    gate, held = full(2)
    third = gate.ask(HAND_OVER, 0.0)
    assert not third.admitted
    gate.leave(held[0], 1.0)
    assert third.admitted
    assert gate.in_flight == 2


def test_the_higher_class_goes_first_whoever_came_first() -> None:
    gate, [held] = full()
    waiters = [gate.ask(priority, 0.0) for priority in (STATUS, REFILL, RELEASE, ORDER, HAND_OVER)]
    order = []
    while gate.in_flight:
        gate.leave(held, 1.0)
        if gate.in_flight:
            held = next(ticket for ticket in waiters if ticket.admitted and ticket not in order)
            order.append(held)
    assert [ticket.priority for ticket in order] == [HAND_OVER, ORDER, RELEASE, REFILL, STATUS]


def test_an_order_is_not_held_beside_hand_overs_as_a_refill_is() -> None:
    gate = Gate(8)
    gate.ask(HAND_OVER, 0.0)
    refills = [gate.ask(REFILL, 0.0) for _ in range(2)]
    orders = [gate.ask(ORDER, 0.0) for _ in range(3)]
    assert [ticket.admitted for ticket in refills] == [True, False]
    assert all(ticket.admitted for ticket in orders)


def test_orders_leave_slots_for_everybody_else() -> None:
    gate = Gate(8, orders=3)
    orders = [gate.ask(ORDER, 0.0) for _ in range(5)]
    assert [ticket.admitted for ticket in orders] == [True] * 3 + [False] * 2
    assert gate.ask(STATUS, 0.0).admitted
    gate.leave(orders[0], 1.0)
    assert orders[3].admitted


def test_a_few_refills_at_once_are_enough_for_a_quiet_server() -> None:
    gate = Gate(8, refills=3)
    assert [gate.ask(REFILL, 0.0).admitted for _ in range(5)] == [True] * 3 + [False] * 2


def test_within_a_class_the_first_come_is_the_first_served() -> None:
    gate, [held] = full()
    first, second = gate.ask(STATUS, 0.0), gate.ask(STATUS, 0.0)
    gate.leave(held, 1.0)
    assert (first.admitted, second.admitted) == (True, False)


def test_refills_are_held_to_one_while_a_hand_over_is_in_flight() -> None:
    gate = Gate(8)
    hand_over = gate.ask(HAND_OVER, 0.0)
    refills = [gate.ask(REFILL, 0.0) for _ in range(3)]
    assert [ticket.admitted for ticket in refills] == [True, False, False]
    gate.leave(hand_over, 0.1)
    assert all(ticket.admitted for ticket in refills)


def test_refills_are_held_to_one_while_a_hand_over_waits_for_a_slot() -> None:
    gate, held = full(2, REFILL)
    waiting = gate.ask(HAND_OVER, 0.0)
    more = gate.ask(REFILL, 0.0)
    gate.leave(held[0], 0.1)
    assert waiting.admitted
    gate.leave(held[1], 0.1)
    assert more.admitted
    assert not gate.ask(REFILL, 0.1).admitted


def test_held_back_refills_do_not_stand_in_the_way_of_status() -> None:
    gate = Gate(8)
    gate.ask(HAND_OVER, 0.0)
    gate.ask(REFILL, 0.0)
    gate.ask(REFILL, 0.0)
    assert gate.ask(STATUS, 0.0).admitted


def test_who_waited_more_than_five_seconds_goes_before_a_hand_over() -> None:
    gate, [held] = full()
    old = gate.ask(STATUS, 0.0)
    young = gate.ask(HAND_OVER, 5.0)
    gate.leave(held, 5.1)
    assert (old.admitted, young.admitted) == (True, False)


def test_under_overload_only_one_slot_serves_those_who_waited_long() -> None:
    gate, held = full(4)
    old = [gate.ask(STATUS, 0.0) for _ in range(10)]
    young = [gate.ask(HAND_OVER, 6.0) for _ in range(10)]
    for ticket in held:
        gate.leave(ticket, 6.0)
    assert sum(ticket.admitted for ticket in old) == 1
    assert sum(ticket.admitted for ticket in young) == 3


def test_a_waiter_that_gives_up_leaves_its_place_and_nothing_else() -> None:
    gate, [held] = full()
    gone, patient = gate.ask(HAND_OVER, 0.0), gate.ask(STATUS, 0.0)
    gate.leave(gone, 0.5)
    gate.leave(held, 1.0)
    assert patient.admitted
    assert (gate.in_flight, gate.waiting) == (1, 0)


def test_a_hand_over_that_gives_up_lets_the_refills_go_on() -> None:
    gate, held = full(3)
    hand_over = gate.ask(HAND_OVER, 0.0)
    refills = [gate.ask(REFILL, 0.0) for _ in range(2)]
    gate.leave(hand_over, 0.1)
    for ticket in held:
        gate.leave(ticket, 0.2)
    assert all(ticket.admitted for ticket in refills)


def test_who_is_admitted_later_is_told() -> None:
    gate, [held] = full()
    told: list[str] = []
    ticket = gate.ask(STATUS, 0.0)
    ticket.on_admit = lambda: told.append("go")
    gate.leave(held, 1.0)
    assert told == ["go"]


@given(st.lists(st.tuples(st.sampled_from(Priority), st.integers(0, 9), st.floats(0, 3)), max_size=60))
def test_no_slot_is_ever_lost_or_given_twice(moves: list[tuple[Priority, int, float]]) -> None:
    gate, now = Gate(3), 0.0
    present: list[Ticket] = []
    for priority, which, passed in moves:
        now += passed
        if which < len(present) and which % 2:
            gate.leave(present.pop(which), now)
        else:
            present.append(gate.ask(priority, now))
        admitted = [ticket for ticket in present if ticket.admitted]
        assert gate.in_flight == len(admitted) <= 3
        assert gate.waiting == len(present) - len(admitted)
        if gate.waiting and len(admitted) < 3:  # only held-back refills wait beside a free slot
            assert {ticket.priority for ticket in present if not ticket.admitted} == {REFILL}
    while present:  # everybody who stays gets a turn
        admitted = [ticket for ticket in present if ticket.admitted]
        assert admitted
        present.remove(admitted[0])
        gate.leave(admitted[0], now)
    assert gate.in_flight == 0
