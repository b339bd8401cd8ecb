"""What is done when, decided beforehand by the seed. Pure: the same seed gives the same agenda.

The time is cut into chapters with rest between them. In the storms controllers die and the API server is
restarted; the last third is calm in that respect, so that a leader grows old enough for its memory to be
judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from random import Random

CHAPTER = 120.0  # seconds, about
RATE = 6.0  # acts a second
CALM = 1 / 3  # of the chapters, at the end
_KILL_EVERY = 25.0  # seconds of a storm
_OUTAGE_EVERY = 90.0


class Act(StrEnum):
    """What somebody does, or what happens to somebody."""

    CLAIM = "claim"
    GIVE_BACK = "give back"
    GIVE_BACK_IN_THE_FOREGROUND = "give back in the foreground"
    KEEP_THE_VM = "keep the VM (orphan)"
    CLAIM_ANEW = "claim anew under the same name"
    EXTEND = "change a lifetime"
    SCALE = "scale"
    SUSPEND = "suspend"
    ROLL_OUT = "roll out"
    AGE = "bound the age of warm VMs"
    SPOIL = "roll out what never boots"
    REPLACE_A_POOL = "replace a pool"
    CRASH = "crash a guest"
    LOSE_A_NODE = "lose a node"
    PAUSE = "pause a guest"
    DELETE_A_WARM_VM = "delete a warm VM"
    DELETE_A_VM_IN_USE = "delete a VM in use"
    RELABEL = "say that a VM in use is pooled"
    STRIP = "strip a label"
    KILL = "SIGKILL"
    STOP = "SIGTERM"
    FREEZE = "SIGSTOP"
    OUTAGE = "restart the API server"


WEIGHTS: dict[Act, int] = {
    Act.CLAIM: 90,
    Act.GIVE_BACK: 50,
    Act.GIVE_BACK_IN_THE_FOREGROUND: 8,
    Act.KEEP_THE_VM: 3,
    Act.CLAIM_ANEW: 8,
    Act.EXTEND: 6,
    Act.SCALE: 8,
    Act.SUSPEND: 4,
    Act.ROLL_OUT: 3,
    Act.AGE: 2,
    Act.SPOIL: 1,
    Act.REPLACE_A_POOL: 2,
    Act.CRASH: 6,
    Act.LOSE_A_NODE: 3,
    Act.PAUSE: 2,
    Act.DELETE_A_WARM_VM: 5,
    Act.DELETE_A_VM_IN_USE: 3,
    Act.RELABEL: 4,
    Act.STRIP: 4,
}
_ENDS = (Act.KILL, Act.KILL, Act.STOP, Act.STOP, Act.FREEZE)


@dataclass(frozen=True, slots=True)
class Entry:
    """An act, so many seconds after its chapter began, in one of the namespaces; its choices are `seed`ed."""

    at: float
    act: Act
    place: int
    seed: int


@dataclass(frozen=True, slots=True)
class Chapter:
    """A stretch of time that ends with rest."""

    number: int
    seconds: float
    calm: bool
    entries: tuple[Entry, ...]

    @property
    def outages(self) -> int:
        return sum(entry.act is Act.OUTAGE for entry in self.entries)


def agenda(minutes: float, seed: int, places: int, *, rate: float = RATE) -> list[Chapter]:
    """The whole soak, chapter by chapter; at least one storm and one calm."""
    random = Random(seed)
    seconds = 60.0 * minutes
    number = max(2, round(seconds / CHAPTER))
    calm = ceil(number * CALM)
    return [
        _chapter(each, seconds / number, random, places, rate, calm=each >= number - calm)
        for each in range(number)
    ]


def _chapter(number: int, seconds: float, random: Random, places: int, rate: float, *, calm: bool) -> Chapter:
    acts = random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=round(rate * seconds))
    entries = [_entry(random.uniform(0, seconds), act, random, places) for act in acts]
    if not calm:
        kills = max(1, round(seconds / _KILL_EVERY))
        entries += [
            _entry(at, random.choice(_ENDS), random, places) for at in _spread(kills, seconds, random)
        ]
        outages = int(seconds / _OUTAGE_EVERY)
        entries += [_entry(at, Act.OUTAGE, random, places) for at in _spread(outages, seconds, random)]
    return Chapter(number, seconds, calm, tuple(sorted(entries, key=lambda entry: entry.at)))


def _spread(times: int, seconds: float, random: Random) -> list[float]:
    """One time in each of so many equal stretches."""
    return [random.uniform(each, each + 1) * seconds / times for each in range(times)]


def _entry(at: float, act: Act, random: Random, places: int) -> Entry:
    return Entry(at, act, random.randrange(places), random.randrange(2**32))
