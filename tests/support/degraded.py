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
from tests.support.site import metric

REQUESTS = "bullpen_api_requests_total"
CALM = 3.0  # requests a second that a controller of two or three pools may send while nothing can be done


def pace(controller: Controller, seconds: float = 3.0, **labels: str) -> float:
    """Requests a second that it sends over so many seconds; those for its lease do not count."""

    def sent() -> float:
        return metric(controller, REQUESTS, **labels) - metric(controller, REQUESTS, step="lease", **labels)

    before, began = sent(), time.monotonic()
    time.sleep(seconds)
    return (sent() - before) / (time.monotonic() - began)


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
