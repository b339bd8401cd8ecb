"""The nouns of a decision: what there is, and what was decided. They must never decide anything."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stock:
    """Units at one instant. `backorders`: waiting claims that ordered a unit of their own."""

    ready: int
    in_flight: int
    in_use: int
    backorders: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """What one policy asks for (units), and why. `applied`: whether it counts, or only advises."""

    name: str
    wants: int
    because: str
    applied: bool = True


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that a person should know: a word for programs, and a sentence that says what to write."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The order-up-to level, which policy set it, what each asked for, and when it changes by itself.

    `next_change_at`: epoch seconds at which to decide again although nothing happens; None: never.
    """

    target: int
    decided_by: str
    policies: tuple[Policy, ...] = ()
    warnings: tuple[Advice, ...] = ()
    next_change_at: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the making of units.

    `servers`: how many may be in flight at once. `most`: how many may exist at all, those in use included;
    None: any number.
    """

    servers: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What a webhook said. `units`: its last good answer (None: there was none yet), got `at` epoch seconds.

    `error`: why the last try gave none, as a sentence; empty if it did.
    """

    units: int | None
    at: float
    error: str = ""
