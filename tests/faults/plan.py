"""Which runs come next: every step, every n until the fault no longer fires, every sensible kind. Pure.

A scenario is explored from what is seen: an undisturbed run tells which steps come and how often, and each
run adds what it saw up to its fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from tests.faults.addresses import Nature
from tests.faults.kinds import Fault, Kind, kinds_for
from tests.faults.runs import Report, Run

# Runs of a scenario that are put back when their lane could not be made ready; each is told as a failure.
RETRIES = 5
# Times that an n does not come before it is given up: no kind of fault makes it come. Each time that it came
# allows for two more, for some steps are won or lost in a race with the garbage collector.
ENOUGH = 3
FOR_EACH_HIT = 2
# Steps that time repeats, or whose number is chance: no n of them is the last one. Each with why so many do.
BOUNDS: dict[str, tuple[int, str]] = {
    "lease/": (2, "renewed every two seconds: the first one takes it, the second one keeps it"),
    "list/": (2, "the first one begins, a second one is a retry or follows a 410"),
    "watch/": (2, "the first one begins, a second one goes on"),
    "pools/": (2, "kopf asks for what the server has, once or twice"),
    "definitions": (2, "asked for at the beginning, and again while a kind is not served"),
    "resync/list": (2, "every two seconds"),
    "pool/history-": (2, "every two seconds, for as long as anything is asked"),
    "pool/status": (3, "at most one a second, for as long as something changes"),
    "claim/status": (4, "a guest's address may come in one step or in two"),
    "event/": (4, "how many changes a VM goes through is the stand-in's chance"),
}
# What every scenario has and where it is disturbed: in the one that is about it.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "lease/": ("take-over",),
    "list/": ("take-over",),
    "watch/": ("take-over",),
    "pools/": ("take-over",),
    "definitions": ("take-over",),
    "resync/list": ("resync",),
    "pool/history-": ("history",),
    "event/nodes": (),
    "event/": ("bind", "burst", "pool-life", "scale-down", "roll-out"),
}

KindsFor = Callable[[Nature, str], Iterable[Kind]]


def bound(address: str) -> int | None:
    """The highest n to try, None where the steps themselves are an end."""
    return next((most for prefix, (most, _) in BOUNDS.items() if address.startswith(prefix)), None)


def disturbed_in(address: str, scenario: str) -> bool:
    """Whether this scenario is where faults of this address are tried."""
    where = next((names for prefix, names in ONLY_IN.items() if address.startswith(prefix)), None)
    return where is None or scenario in where


@dataclass
class Exploration:
    """All runs of one scenario. `take` the next, `learn` from each report; `idle` when nothing is left.

    The order is `random`'s: what one run leaves in the controller meets another run each time.
    """

    scenario: str
    provoked: frozenset[Fault] = frozenset()
    kinds: KindsFor = kinds_for
    highest: Counter[str] = field(default_factory=Counter)
    natures: dict[str, Nature] = field(default_factory=dict)
    under_way: int = 0
    random: Random = field(default_factory=lambda: Random(1))
    _retries: int = RETRIES
    _todo: list[Run] = field(default_factory=list)
    _waiting: dict[tuple[str, Kind], int] = field(default_factory=dict)
    _hits: Counter[tuple[str, int]] = field(default_factory=Counter)
    _missed: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._todo.append(Run(self.scenario))

    @property
    def pending(self) -> int:
        """Runs that wait; some of them may turn out not to be worth their while."""
        return len(self._todo)

    @property
    def idle(self) -> bool:
        return not self._todo and not self.under_way

    def take(self) -> Run | None:
        """The next run, if there is one now."""
        while self._todo:
            run = self._todo.pop(self.random.randrange(len(self._todo)))
            if all(map(self._worth, run.faults)):
                self.under_way += 1
                return run
        return None

    def learn(self, report: Report) -> None:
        """What a run that was taken has shown."""
        self.under_way -= 1
        if not report.came and self._retries:  # it could not even begin: a failure, and nothing was learned
            self._retries -= 1
            self._todo.append(report.run)
            return
        self.natures.update(report.natures)
        for address, count in report.undisturbed.items():
            self.highest[address] = max(self.highest[address], count)
        for fault in report.run.faults:
            if fault in report.fired:
                self._waiting[fault.address, fault.kind] = fault.nth + 1
                self._hits[fault.address, fault.nth] += 1
            else:
                self._missed[fault.address, fault.nth] += 1
                self._todo.append(report.run)
        self._plan()

    def _worth(self, fault: Fault) -> bool:
        """Whether its n may come yet."""
        where = fault.address, fault.nth
        return self._missed[where] < ENOUGH + FOR_EACH_HIT * self._hits[where]

    def _plan(self) -> None:
        """Each address and kind goes up one by one, up to what was ever seen."""
        for address in list(self.highest):
            if not disturbed_in(address, self.scenario):
                continue
            for kind in self.kinds(self.natures[address], address):
                self._next(address, kind)

    def _next(self, address: str, kind: Kind) -> None:
        nth = self._waiting.setdefault((address, kind), 1)
        most = bound(address)
        if nth == 0 or nth > self.highest[address]:
            return
        if most is not None and nth > most:
            return
        if any((each.address, each.nth) == (address, nth) for each in self.provoked):
            self._waiting[address, kind] = nth + 1
            self._next(address, kind)
            return
        self._waiting[address, kind] = 0  # under way
        self._todo.append(Run(self.scenario, (Fault(address, nth, kind),)))
