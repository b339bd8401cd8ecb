"""What tests of degraded worlds share: how much a controller asks, and an auditor that may miss something."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor import Rule
from tests.support.auditing import AuditorThread, auditing
from tests.support.controller import Controller

REQUESTS = "bullpen_api_requests_total"
CALM = 3.0  # requests a second that a controller of two or three pools may send while nothing can be done


def stays_calm(controller: Controller, seconds: float = 3.0, calm: float = CALM) -> None:
    """It sends few requests over so many seconds; those for its lease do not count."""
    before, began = _sent(controller), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    sent = {step: number - before.get(step, 0.0) for step, number in _sent(controller).items()}
    busy = {step: number for step, number in sent.items() if number}
    assert sum(busy.values()) <= calm * took, f"a storm: {busy} in {took:.1f} s"


def _sent(controller: Controller) -> dict[str, float]:
    """Requests so far, by step and answer."""
    with urllib.request.urlopen(f"http://{controller.listen}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    counted = (line.rpartition(" ") for line in lines if line.startswith(REQUESTS + "{"))
    return {name: float(number) for name, _, number in counted if 'step="lease"' not in name}


def readiness(controller: Controller) -> tuple[int, str]:
    """What /readyz answers, and its sentence."""
    try:
        with urllib.request.urlopen(f"http://{controller.listen}/readyz", timeout=5) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


@contextmanager
def auditing_with_gaps(kubeconfig: Path, namespace: str) -> Iterator[AuditorThread]:
    """An auditor whose watches may break: what it could not see is not judged, all else is."""
    with auditing(kubeconfig, namespace) as watching:
        yield watching
        assert [each for each in watching.settled(60) if each.rule is not Rule.GAP] == []
