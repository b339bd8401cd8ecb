"""Which write goes next: a bounded number in flight, by class, first come first served within one.

Pure bookkeeping without a loop or a clock of its own. It must never lose a slot: whoever asked leaves exactly
once, whether it was admitted, finished or gave up.
"""

from collections import deque
from collections.abc import Callable
from enum import IntEnum


class Priority(IntEnum):
    """The classes of writes; a lower one goes first. ORDER is a creation that somebody waits for."""

    HAND_OVER = 0
    ORDER = 1
    RELEASE = 2
    REFILL = 3
    STATUS = 4


class Ticket:
    """A place in the queue or, once `admitted`, a slot."""

    __slots__ = ("admitted", "aged", "on_admit", "priority", "since")

    def __init__(self, priority: Priority, since: float) -> None:
        self.priority = priority
        self.since = since
        self.admitted = False
        self.aged = False
        self.on_admit: Callable[[], None] | None = None


class Gate:
    """Admits at most `slots` writes at once.

    At most `refills` refills are in flight, and `refills_beside` while a hand-over is queued or in flight:
    each costs the API server and KubeVirt many times its own write, and takes their time from people who
    wait. An order is a refill that a waiting claim needs: held back, it would be the line's own bottleneck;
    `orders` bounds them. A waiter older than `patience` seconds goes before all others,
    but one such at a time, so that under overload the order of classes still holds.
    """

    def __init__(
        self,
        slots: int,
        *,
        orders: int = 8,
        refills: int = 3,
        refills_beside: int = 1,
        patience: float = 5.0,
    ) -> None:
        self._slots = slots
        self._orders = orders
        self._refills = refills
        self._refills_beside = refills_beside
        self._patience = patience
        self._waiting: dict[Priority, deque[Ticket]] = {priority: deque() for priority in Priority}
        self._in_flight: dict[Priority, int] = dict.fromkeys(Priority, 0)
        self._aged_in_flight = 0

    @property
    def in_flight(self) -> int:
        return sum(self._in_flight.values())

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def ask(self, priority: Priority, now: float) -> Ticket:
        """A ticket, admitted at once when nothing stands before it; else `on_admit` is called later."""
        ticket = Ticket(priority, now)
        self._waiting[priority].append(ticket)
        self._admit(now)
        return ticket

    def leave(self, ticket: Ticket, now: float) -> None:
        """Give the slot or the place in the queue back."""
        if ticket.admitted:
            self._in_flight[ticket.priority] -= 1
            self._aged_in_flight -= ticket.aged
        else:
            self._waiting[ticket.priority].remove(ticket)
        self._admit(now)

    def _admit(self, now: float) -> None:
        while self.in_flight < self._slots:
            ticket = self._next(now)
            if ticket is None:
                return
            self._waiting[ticket.priority].popleft()
            self._in_flight[ticket.priority] += 1
            self._aged_in_flight += ticket.aged
            ticket.admitted = True
            if ticket.on_admit is not None:
                ticket.on_admit()

    def _next(self, now: float) -> Ticket | None:
        heads = [queue[0] for priority, queue in self._waiting.items() if queue and not self._held(priority)]
        if not heads:
            return None
        oldest = min(heads, key=lambda ticket: ticket.since)
        if oldest is not heads[0] and now - oldest.since > self._patience and not self._aged_in_flight:
            oldest.aged = True
            return oldest
        return heads[0]

    def _held(self, priority: Priority) -> bool:
        if priority is Priority.ORDER:
            return self._in_flight[Priority.ORDER] >= self._orders
        if priority is not Priority.REFILL:
            return False
        handing_over = self._waiting[Priority.HAND_OVER] or self._in_flight[Priority.HAND_OVER]
        bound = self._refills_beside if handing_over else self._refills
        return self._in_flight[Priority.REFILL] >= bound
