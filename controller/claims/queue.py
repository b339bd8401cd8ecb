"""The claims that wait for one pool, in the order of their arrival. Pure bookkeeping, no clock, no I/O.

A claim stays in its place while a VM is being handed to it, so that a refusal puts it back at the head by
doing nothing. FIFO is promised for assignments: nothing here reorders.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from controller.claims.objects import Claim

TELL_AT_MOST = 8  # times a claim's place is written, however long the line is


@dataclass(slots=True)
class Waiting:
    """A claim in line. `arrived` is in seconds of the server's clock; `ordered`: it wants a VM made."""

    claim: Claim
    arrived: float
    assigned: bool = False
    ordered: bool = False
    parked_until: float = 0.0
    setbacks: int = 0
    told_first: int = 0
    told_position: int = 0
    told_at: float = 0.0

    @property
    def uid(self) -> str:
        return self.claim.uid

    def tell(self, position: int, now: float) -> None:
        """Its place is being written."""
        self.told_first = self.told_first or position
        self.told_position, self.told_at = position, now

    def still_knows(self, position: int) -> None:
        """It could not be told: it knows the place of before, if any, and is told when it is time again."""
        self.told_position = position or self.told_position


@dataclass(slots=True)
class Queue:
    """One pool's line. `orders` are the claims for which one more VM is to be made: the backorders."""

    line: dict[str, Waiting] = field(default_factory=dict)
    orders: set[str] = field(default_factory=set)
    impatient: set[str] = field(default_factory=set)
    parked: dict[str, Waiting] = field(default_factory=dict)
    assigned: int = 0

    def __len__(self) -> int:
        """Claims that wait and have no VM on its way to them."""
        return self.entries - self.assigned

    @property
    def entries(self) -> int:
        """All claims in line, those that are being served included."""
        return len(self.line) + len(self.parked)

    def push(self, claim: Claim, arrived: float) -> Waiting:
        """A claim arrives at the end of the line; one that is in it already is only brought up to date."""
        known = self.line.get(claim.uid) or self.parked.get(claim.uid)
        if known is not None:
            known.claim = claim
            return known
        entry = Waiting(claim, arrived)
        self.line[claim.uid] = entry
        match claim.spec.when_empty.policy:
            case "Order":
                entry.ordered = True
                self.orders.add(claim.uid)
            case "Fail":
                self.impatient.add(claim.uid)
        return entry

    def sort(self, age: Callable[[Claim], float]) -> None:
        """At the start of a leadership: by creation, then UID, since the order of arrival is not known."""
        for entry in self.line.values():
            entry.arrived = age(entry.claim)
        self.line = {e.uid: e for e in sorted(self.line.values(), key=lambda e: (e.arrived, e.uid))}

    def find(self, uid: str) -> Waiting | None:
        return self.line.get(uid) or self.parked.get(uid)

    def remove(self, uid: str) -> Waiting | None:
        """The claim waits no more: bound, gone, or finished."""
        entry = self.line.pop(uid, None) or self.parked.pop(uid, None)
        if entry is not None and entry.assigned:
            self.assigned -= 1
        self.orders.discard(uid)
        self.impatient.discard(uid)
        return entry

    def head(self, held: dict[str, set[str]]) -> Waiting | None:
        """The next claim to serve. One that carries a VM already (`held`) is for repair to publish."""
        return next((e for e in self.line.values() if not e.assigned and e.uid not in held), None)

    def assign(self, entry: Waiting) -> None:
        """A VM is on its way to this claim: it needs no order any more."""
        entry.assigned = True
        self.assigned += 1
        self.orders.discard(entry.uid)

    def unassign(self, entry: Waiting) -> None:
        """The hand-over was refused: the claim stands where it stood, and its order stands again."""
        if not entry.assigned or self.find(entry.uid) is not entry:
            return
        entry.assigned = False
        self.assigned -= 1
        if entry.ordered:
            self.orders.add(entry.uid)

    def order(self, uid: str) -> bool:
        """The patience of a claim with OrderAfter is over; True if that places an order."""
        entry = self.find(uid)
        if entry is None or entry.assigned or entry.ordered:
            return False
        entry.ordered = True
        if uid in self.line:
            self.orders.add(uid)
        return True

    def park(self, entry: Waiting, until: float) -> None:
        """The claim itself is at fault: it steps aside until then, and the line goes on."""
        self.unassign(entry)
        self.orders.discard(entry.uid)
        if self.line.pop(entry.uid, None) is not None:
            entry.parked_until = until
            entry.setbacks += 1
            self.parked[entry.uid] = entry

    def unpark(self, now: float) -> bool:
        """Let those back in, at the end, whose time has come."""
        due = [entry for entry in self.parked.values() if entry.parked_until <= now]
        for entry in due:
            del self.parked[entry.uid]
            self.line[entry.uid] = entry
            if entry.ordered:
                self.orders.add(entry.uid)
        return bool(due)

    def waiting(self) -> Iterator[Waiting]:
        """Those in line without a VM on its way, head first."""
        return (entry for entry in self.line.values() if not entry.assigned)


def estimated_ready(
    position: int, orders: list[float], median_boot: float | None, now: float
) -> float | None:
    """When the claim at this place may be served (epoch seconds), None while nothing is known.

    The order at that place in line is due one median boot after it was placed; places beyond the orders in
    flight wait for the following waves of as many. `orders` are creation times, oldest first.
    """
    if median_boot is None or not orders:
        return None
    wave, place = divmod(position - 1, len(orders))
    return max(now, orders[place] + median_boot) + wave * median_boot


def worth_telling(entry: Waiting, position: int, now: float, interval: float = 10.0) -> bool:
    """Whether the claim's place is to be written: at first, at position 1 and at halvings, 10 s apart.

    In a line so long that halvings would be too many, the steps are longer: it is told TELL_AT_MOST times.
    """
    if entry.told_position == 0:
        return True
    if now - entry.told_at < interval or position == entry.told_position:
        return False
    step = max(2.0, entry.told_first ** (1 / (TELL_AT_MOST - 1)))
    return position == 1 or position * step <= entry.told_position
