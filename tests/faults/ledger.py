"""Counts how often each step came and says which fault is due. Pure bookkeeping of one run.

It must never let a fault fire twice: what the controller tries again has to succeed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.faults.addresses import Nature
from tests.faults.kinds import Fault


class Ledger:
    """The faults of one run, those that its scenario provokes in every run, what came, and what fired."""

    def __init__(self, faults: Iterable[Fault] = (), provoked: Iterable[Fault] = ()) -> None:
        self._tried = {(each.address, each.nth) for each in faults}
        self._whole = not self._tried
        self._due = {(each.address, each.nth): each for each in (*provoked, *faults)}
        self.came: Counter[str] = Counter()
        self.natures: dict[str, Nature] = {}
        self.fired: list[Fault] = []
        self.undisturbed: Counter[str] = Counter()
        """What had come when the last of `faults` fired, that one included; all of it if one did not."""

    def arrive(self, address: str, nature: Nature) -> Fault | None:
        """One more request, or event, of this address; the fault that it meets."""
        self.natures[address] = nature
        self.came[address] += 1
        where = (address, self.came[address])
        if self._tried or self._whole:
            self.undisturbed[address] = self.came[address]
        self._tried.discard(where)
        fault = self._due.pop(where, None)
        if fault is not None:
            self.fired.append(fault)
        return fault
