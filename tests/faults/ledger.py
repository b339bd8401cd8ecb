"""Counts how often each step came and says which fault is due. Pure bookkeeping of one run.

It must never let a fault fire twice: what the controller tries again has to succeed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.faults.addresses import Nature
from tests.faults.kinds import Fault


class Ledger:
    """The faults of one run, what came, and what fired."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._due = {(each.address, each.nth): each for each in faults}
        self.came: Counter[str] = Counter()
        self.natures: dict[str, Nature] = {}
        self.fired: list[Fault] = []
        self.undisturbed: Counter[str] = Counter()
        """What had come when the last fault of the run fired, that one included; all of it if none did."""

    def arrive(self, address: str, nature: Nature) -> Fault | None:
        """One more request, or event, of this address; the fault that it meets."""
        self.natures[address] = nature
        self.came[address] += 1
        if not self.fired or self._due:
            self.undisturbed[address] = self.came[address]
        fault = self._due.pop((address, self.came[address]), None)
        if fault is not None:
            self.fired.append(fault)
        return fault

    @property
    def waits(self) -> bool:
        """Whether a fault is still to come."""
        return bool(self._due)
