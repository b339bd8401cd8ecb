"""Says what is going on and for how long: a spinner on a terminal, a plain line now and then elsewhere.

It must never be the reason that the work it reports on fails.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status

PLAIN_EVERY = 15.0  # seconds between two plain lines: a log stays readable, a person stays calm


def elapsed(seconds: float) -> str:
    """A length of time for people: "9 s", "2 min 05 s"."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Progress:
    """Used as a context manager around the work; `tick()` is called often while it lasts."""

    def __init__(
        self,
        what: str,
        log: Callable[[str], None],
        *,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._log = log
        self._clock = clock
        self._status: Status | None = None
        if sys.stderr.isatty() if terminal is None else terminal:
            self._status = Status(what, console=Console(stderr=True, force_terminal=True))
        self._started = self._said = clock()

    def __enter__(self) -> Self:
        self._started = self._said = self._clock()
        if self._status:
            self._status.start()
        else:
            self._log(f"{self._what} …")
        return self

    def tick(self) -> None:
        now = self._clock()
        text = f"{self._what}, {elapsed(now - self._started)} so far"
        if self._status:
            self._status.update(text)
        elif now - self._said >= PLAIN_EVERY:
            self._said = now
            self._log(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status:
            self._status.stop()
        took = elapsed(self._clock() - self._started)
        self._log(f"{self._what}: {'done in' if kind is None else 'stopped after'} {took}")
