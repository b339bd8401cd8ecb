"""The controller with days that pass in minutes: its sizing alone lives in a faster time.

`python -m tests.support.compressed` is `python -m controller`, but what it remembers of demand, and what the
engine is asked, is in a time that passes `BULLPEN_TEST_SPEED` times as fast since 2026-01-05 (a Monday). What
VMs, claims and the API server go through is untouched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

from controller.__main__ import main
from controller.claims.loop import Namespace
from controller.claims.records import PoolRecord
from controller.claims.tally import Served
from controller.machines.inventory import Instance, revision_of
from controller.pools import loop
from controller.pools.brake import BrakeState
from controller.pools.sizing import Sizing
from crds.pool import VirtualMachinePool

SPEED = "BULLPEN_TEST_SPEED"
BEGAN = "BULLPEN_TEST_BEGAN"
MONDAY = 1_767_571_200.0  # 2026-01-05T00:00:00Z


@dataclass(frozen=True, slots=True)
class Tempo:
    """Real epoch seconds as fast ones; at `began` it is Monday, midnight."""

    speed: float
    began: float

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> Tempo:
        return cls(float(environ[SPEED]), float(environ[BEGAN]))

    def fast(self, at: float) -> float:
        return MONDAY + (at - self.began) * self.speed

    def real(self, at: float) -> float:
        return self.began + (at - MONDAY) / self.speed


class Compressed(Sizing):
    """A pool's sizing in the fast time; its loop goes on in the real one."""

    def __init__(
        self, space: Namespace, record: PoolRecord, interval: float, wake: Callable[[], None]
    ) -> None:
        self.tempo = tempo = Tempo.of_environment(os.environ)

        def now() -> float:
            return tempo.fast(space.now())

        def take() -> tuple[list[float], list[Served]]:
            arrived, served = record.tally.take()
            # A stamp is cut to the second, which is many minutes here: when it was seen is nearer.
            ended = [Served(tempo.fast(each.at), each.late * tempo.speed) for each in served]
            return [now()] * len(arrived), ended

        # A claim's stamp is many minutes wide: those of before are left to the history.
        desk = _Desk(space.desk, tempo)
        fast = SimpleNamespace(
            client=space.client, name=space.name, now=now, desk=desk, router=SimpleNamespace(claims={})
        )
        seen = _Fast(record, tally=SimpleNamespace(take=take))
        super().__init__(cast("Namespace", fast), cast("PoolRecord", seen), interval * tempo.speed, wake)

    def look(self, pool: VirtualMachinePool, revision: str, brake: BrakeState) -> None:
        since = None if brake.open_since is None else self.tempo.fast(brake.open_since)
        super().look(pool, revision, replace(brake, open_since=since))

    def booted(self, instance: Instance, took: float) -> None:
        created = self.tempo.fast(instance.created)
        self.memory.demand.boot(took * self.tempo.speed, created, revision_of(instance))

    @property
    def due(self) -> Iterator[float]:
        return map(self.tempo.real, super().due)


class _Fast:
    """Somebody's object with a few things replaced."""

    def __init__(self, of: Any, **replaced: Any) -> None:
        self.__dict__.update(replaced)
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class _Desk(_Fast):
    """The desk, where the last leader left it in the fast time."""

    def __init__(self, of: Any, tempo: Tempo) -> None:
        super().__init__(of)
        self.__dict__["_tempo"] = tempo

    @property
    def led_until(self) -> float:
        return float(self._tempo.fast(self._of.led_until)) if self._of.led_until else 0.0


if __name__ == "__main__":
    loop.__dict__["Sizing"] = Compressed
    sys.exit(main())
