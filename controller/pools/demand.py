"""One pool's history, and what belongs into it: each claim once, boots that say something, time that counts.

Pure bookkeeping over what it is told. What came before the kept history was read is told to that, too.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from capacity.history import History
from controller.claims.tally import Served

MOST_NOTED = 100_000  # of what is told before the kept history was read


class Demand:
    """What is known of a pool's claims and boots; `changed`: there is more than was kept.

    `since` is when this process began to watch (epoch seconds), `arrived` when the claims came that there
    were then.
    """

    def __init__(self, since: float, arrived: Sequence[float] = ()) -> None:
        self.history = History(float(int(since)))  # stamps are cut to the second
        self.changed = False
        self._since = since
        self._arrived = arrived
        self._noted: list[Callable[[History], None]] | None = []
        self._blocked: float | None = None
        self._free_since = 0.0

    @property
    def read(self) -> bool:
        """Whether what was kept is in it, or is known not to be there."""
        return self._noted is None

    # ---- what was kept

    def go_on(self, history: History, *, written: float, patience: float) -> None:
        """From the history that was last written at that time (epoch seconds).

        Claims that it does not know were made while nobody led, or after the last write of one that died.
        Nobody watched for longer than `patience` (seconds): what was asked for then can't be told from what
        is left of it, and the time does not count.
        """
        if self._since - written > patience:
            history.gap(written, self._since)
        last = history.arrivals[-1] if history.arrivals else int(history.since) - 1
        known = _tail(history.arrivals, last)
        for at in self._arrived:
            if int(at) == last and known:
                known -= 1
            elif int(at) >= last:
                history.arrive(at)
        self._take_over(history)

    def begin(self, since: float) -> None:
        """Anew: nothing was kept. What came since that time (epoch seconds) is all seen."""
        history = History(float(int(min(since, self._since))))
        for at in self._arrived:
            history.arrive(at)
        self._take_over(history)

    def _take_over(self, history: History) -> None:
        for note in self._noted or ():
            note(history)
        self.changed = self.changed or bool(self._arrived)
        self.history, self._noted, self._arrived = history, None, ()

    # ---- what happens

    def claims(self, arrived: Iterable[float], served: Iterable[Served], patience: float) -> None:
        """When claims came, and how they were served: in time if no later than `patience` seconds.

        Which claims are one claimant's who tries again nobody knows: claims name no tenant.
        """
        for at in arrived:
            self._tell(partial(History.arrive, at=at))
        for each in served:
            self._tell(partial(History.served, at=each.at, warm=each.late <= patience))

    def boot(self, took: float, created: float, revision: str) -> None:
        """A VM was warm so many seconds after its creation. One that an outage delayed says nothing."""
        if self._blocked is None and created >= self._free_since:
            self._tell(partial(History.lead, seconds=took, revision=revision))

    def block(self, now: float, since: float | None) -> None:
        """No VM can be made since then, whatever is asked for; None: they can."""
        if since is not None:
            self._blocked = since if self._blocked is None else self._blocked
        elif self._blocked is not None:
            self.settle(now)
            self._blocked, self._free_since = None, now

    def settle(self, now: float) -> None:
        """Book what is under way, and forget what is too old: before the history is looked at or kept."""
        if self._blocked is not None and now > self._blocked:
            self._tell(partial(History.gap, start=self._blocked, end=now))
            self._blocked = now
        self.history.roll(now)

    def _tell(self, note: Callable[[History], None]) -> None:
        note(self.history)
        self.changed = True
        if self._noted is not None and len(self._noted) < MOST_NOTED:
            self._noted.append(note)


def _tail(arrivals: Sequence[int], last: int) -> int:
    """How many of the newest are of that second."""
    count = 0
    for second in reversed(arrivals):
        if second != last:
            break
        count += 1
    return count
