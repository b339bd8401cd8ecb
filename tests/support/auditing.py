"""The auditor beside a test that is not asynchronous itself: it watches from a thread of its own.

`auditor` is the fixture for every test on a control plane: it fails the test in which an invariant was
broken, and then says which.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from auditor import Auditor, Violation


@dataclass(frozen=True)
class AuditorThread:
    """The calls of an Auditor, from another thread."""

    _auditor: Auditor
    _loop: asyncio.AbstractEventLoop

    @property
    def violations(self) -> list[Violation]:
        return self._auditor.violations

    @property
    def seen(self) -> dict[str, int]:
        return self._auditor.seen

    def excuse(self, vm_uid: str, why: str) -> None:
        self._auditor.excuse(vm_uid, why)

    def settled(self, seconds: float = 30.0) -> list[Violation]:
        asked = asyncio.run_coroutine_threadsafe(self._auditor.settled(seconds), self._loop)
        return asked.result(seconds + 60)


@contextmanager
def auditing(
    kubeconfig: Path, namespace: str | None = None, *, record: Path | None = None
) -> Iterator[AuditorThread]:
    """An auditor for as long as the block runs."""
    begun: Future[AuditorThread] = Future()
    ended = asyncio.Event()

    async def watch() -> None:
        try:
            async with Auditor.watching(kubeconfig, namespace, record=record) as auditor:
                begun.set_result(AuditorThread(auditor, asyncio.get_running_loop()))
                await ended.wait()
        except BaseException as error:
            if begun.done():
                raise
            begun.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(watch()), name="auditor")
    thread.start()
    try:
        auditor = begun.result(60)
        try:
            yield auditor
        finally:
            auditor._loop.call_soon_threadsafe(ended.set)
    finally:
        thread.join(60)


@pytest.fixture
def auditor(kubeconfig: Path, namespace: str) -> Iterator[AuditorThread]:
    """Watches the test's namespace; at its end all must come to rest with nothing broken."""
    with auditing(kubeconfig, namespace) as watching:
        yield watching
        assert watching.settled() == []
