"""A pool that sizes itself by a service level through a day of load, which passes in two minutes.

The control plane, the stand-in and the controller are the real ones; only what the sizing remembers and
decides lives in the faster time (`tests/support/compressed.py`). Two weeks of history are there beforehand.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from capacity.history import DAY, HOUR, History
from tests.integration.own_cluster.conftest import Start
from tests.support import histories
from tests.support.compressed import BEGAN, SPEED, Tempo
from tests.support.site import CLAIMS, POOLS, Json, Site, vm_template

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("auditor")]

DAY_TAKES = 120.0  # s
WEEKS = 2
OFFICE = range(8, 18)  # hours with load
BUSY, QUIET = 0.8, 0.04  # claims a real second
BOOT = 2.0  # s
LEVEL = "99%"


def rate(at: float) -> float:
    """Claims a real second at a fast time."""
    return BUSY if int(at % DAY // HOUR) in OFFICE else QUIET


@dataclass
class Day:
    """The load, and what is seen of the pool meanwhile."""

    site: Site
    tempo: Tempo
    seen: list[tuple[float, int, int, int]] = field(default_factory=list)
    claims: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def now(self) -> float:
        return self.tempo.fast(time.time())

    def hour(self) -> float:
        return self.now() % DAY / HOUR

    def load(self) -> None:
        """Claims come at random times; each gives its VM back after two seconds."""
        dice = random.Random(1)
        while not self.over.is_set():
            self.over.wait(dice.expovariate(max(rate(self.now()), 0.2)))
            if rate(self.now()) == QUIET and dice.random() > QUIET / 0.2:
                continue
            self.claims += 1
            self.site.claim(f"job-{self.claims}", lifetime="2s", ttlSecondsAfterFinished=0)

    def watch(self) -> None:
        while not self.over.is_set():
            status = self.site.get(POOLS, "pool").get("status", {})
            warm = status.get("warm", {})
            pending = status.get("demand", {}).get("pending", 0)
            self.seen.append((self.now(), warm.get("target", 0), warm.get("ready", 0), pending))
            time.sleep(0.25)

    def between(self, first: float, last: float) -> list[int]:
        """The targets in these hours of the day."""
        return [target for at, target, _, _ in self.seen if first <= at % DAY / HOUR < last]


def past(tempo: Tempo) -> History:
    """Two weeks of the same load, up to now, and boots that took as long as they do."""
    dice, now = random.Random(2), tempo.fast(time.time())
    history = History(now - WEEKS * 7 * DAY)
    at = history.since
    while True:
        at += dice.expovariate(BUSY / tempo.speed)
        if at >= now:
            break
        if dice.random() < rate(at) / BUSY:
            history.arrive(at)
    for _ in range(60):
        history.lead(dice.uniform(1.0, 1.5) * BOOT * tempo.speed)
    return history


def run(*works: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def until_hour(day: Day, hour: float, days: int = 0) -> None:
    """Wait for this hour of the day; `days` after the first one."""
    while day.now() < day.tempo.fast(day.tempo.began) + days * DAY + hour * HOUR:
        time.sleep(0.05)


def test_a_service_level_sizes_a_pool_up_and_down_through_a_day_and_a_restart(
    site: Site, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.time() - 5 / 24 * DAY_TAKES + 25  # it is a little before five when all is ready
    tempo = Tempo(DAY / DAY_TAKES, began)
    monkeypatch.setenv(SPEED, str(tempo.speed))
    monkeypatch.setenv(BEGAN, str(tempo.began))
    settings = {"sizing_interval": "2s", "module": "tests.support.compressed"}
    histories.write(site, past(tempo), tempo.fast(time.time()))
    first = start(**settings)
    level: Json = {"target": LEVEL, "mode": "Apply"}
    site.pool(
        warm={"replicas": 1, "max": 30, "serviceLevel": level, "scaleDown": {"stabilization": "30m"}},
        template=vm_template(boot=f"{BOOT:g}s"),
        readiness={"deadline": "10h"},
        limits={"maxReplicas": 60, "maxConcurrentCreations": 10},
    )
    day = Day(site, tempo)
    threads = run(day.load, day.watch)
    try:
        until_hour(day, 12)
        first.stop()
        stopped = len(day.seen)
        start(**settings)
        until_hour(day, 14)
        restarted = len(day.seen)
        until_hour(day, 23)
        status = site.get(POOLS, "pool")["status"]
    finally:
        day.over.set()
        for thread in threads:
            thread.join(10)
        show(day)
    print("at the end:", status["warm"], status["demand"])
    night, office = day.between(5.5, 6.5), day.between(9, 17.5)
    assert max(night) <= 4
    assert min(office) > max(night), "sized for the load"
    assert max(day.between(7.5, 8)) > max(night), "before it comes"
    assert max(day.between(21, 23)) <= max(night), "and down after it"
    around = {target for _, target, _, _ in day.seen[stopped - 8 : restarted]}
    assert max(around) - min(around) <= 2, f"a restart is no reason to jump: {around}"
    assert status["warm"]["decidedBy"] in {"serviceLevel", "replicas", "scaleDown"}
    assert float(status["demand"]["hitRatio"].removesuffix("%")) >= 75
    assert not [each for each in site.api.get(site.path(CLAIMS)).body["items"] if failed(each)]


def failed(claim: Json) -> bool:
    return bool((claim.get("status") or {}).get("phase") in {"Failed", "Lost"})


def show(day: Day) -> None:
    """The day, two lines an hour: what was aimed at, what was warm at the least, who waited at the most."""
    print("\nhour  claims/h  target   warm  pending")
    for half in range(48):
        within = [each for each in day.seen if int(each[0] % DAY / HOUR * 2) == half]
        if within:
            _, targets, warm, pending = zip(*within, strict=True)
            load = rate(within[0][0]) * DAY_TAKES / 24
            print(
                f"{half / 2:4.1f}  {load:8.1f}  {min(targets):2}-{max(targets):<2}  "
                f"{min(warm):2}-{max(warm):<2}  {max(pending):4}"
            )
