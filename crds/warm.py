"""WarmCapacity: how much is kept ready, and what the status says about it.

Shared by every kind that keeps a buffer. It must never hold the rule that sizes the buffer.
"""

import base64
import binascii
import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field

from crds.calendar import Cron, TimeZone
from crds.durations import PATTERN, Duration, PositiveDuration, seconds
from crds.ratios import Level, WidePercent
from crds.schema import Count, Message, Model, Rule, list_map, rules

LONGEST_WINDOW: Final = "672h"
"""How long arrivals and lead times are kept: four weeks."""
MAX_SCHEDULES: Final = 16
_NAME_PATTERN: Final = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
_HOW_TO_WRITE_A_NAME: Final = 'write a name in small letters, digits and dashes, like "office-hours"'
_URL_PATTERN: Final = "^https://[^/?#@ ]+(/[^?#@ ]*)?$"
_HOW_TO_WRITE_A_URL: Final = (
    "write an https:// address without user, query or fragment, "
    "like https://forecast.example.com/v1/warm; a certificate of your own CA needs caBundle"
)
_HOW_TO_WRITE_A_BUNDLE: Final = "write the PEM certificates of the CA, encoded in base64"


def _at_most(field: str, longest: str, why: str) -> Rule:
    """A rule of a model: this duration of its own is not longer than so much."""
    return Rule(
        f"!has(self.{field}) || !self.{field}.matches('{PATTERN}') || "
        f"duration(self.{field}) <= duration('{longest}')",
        f"{field} must not be longer than {longest}: {why}",
        f".{field}",
    )


def _bounded(longest: str, why: str) -> AfterValidator:
    def check(duration: str) -> str:
        if seconds(duration) > seconds(longest):
            raise ValueError(f"{duration!r} must not be longer than {longest}: {why}")
        return duration

    return AfterValidator(check)


_WINDOW = (LONGEST_WINDOW, "history is kept for four weeks")
_STABILIZATION = ("24h", "a pool that may not shrink for a day is better given more warm.replicas")
_TIMEOUT = ("30s", "a webhook that takes longer is better asked less, and answers from what it knows")


def _named(name: str) -> str:
    if not re.fullmatch(_NAME_PATTERN, name):
        raise ValueError(f"{name[:40]!r} is no name: {_HOW_TO_WRITE_A_NAME}")
    return name


def _address(url: str) -> str:
    if not re.fullmatch(_URL_PATTERN, url):
        raise ValueError(f"{url[:80]!r} can't be called: {_HOW_TO_WRITE_A_URL}")
    return url


def _bundle(text: str) -> str:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"is no base64: {_HOW_TO_WRITE_A_BUNDLE}") from None
    if b"-----BEGIN CERTIFICATE-----" not in decoded:
        raise ValueError(f"holds no certificate: {_HOW_TO_WRITE_A_BUNDLE}")
    return text


class LevelMode(StrEnum):
    """Whether a service level sizes the buffer, or only says what it would do."""

    RECOMMEND = "Recommend"
    APPLY = "Apply"


class ServiceLevel(Model):
    """Which share of the claims finds a VM in time."""

    model_config = ConfigDict(json_schema_extra=rules(_at_most("window", *_WINDOW)))

    target: Level = Field(
        description="Which share of the claims gets a VM within maxWait, from 50% to 99.99%, like 99%. "
        "The buffer is sized for it from the measured arrivals and boot times."
    )
    max_wait: Duration = Field(
        default="0s",
        description="How long a claim may wait and still count as served in time (default 0s). "
        "More than a few seconds makes the buffer a good deal smaller.",
    )
    window: Annotated[PositiveDuration, _bounded(*_WINDOW)] = Field(
        default=LONGEST_WINDOW,
        description="How far back arrivals and boot times are looked at (default 672h), which is four "
        "weeks and the most. Shorter forgets sooner, and has fewer claims to go by.",
    )
    mode: LevelMode = Field(
        default=LevelMode.RECOMMEND,
        description="Recommend (default): status.warm.policies says what the level needs, and nothing else "
        "changes. Apply: the target is at least that.",
    )


class Schedule(Model):
    """A floor while a slot of the week is open."""

    name: Annotated[
        str,
        Field(
            max_length=50,
            json_schema_extra=rules(Rule(f"self.matches('{_NAME_PATTERN}')", _HOW_TO_WRITE_A_NAME)),
        ),
        AfterValidator(_named),
    ] = Field(description="What the status calls it: schedule/NAME.")
    start: Cron = Field(
        description="When the slot opens: a cron expression of five fields (minute, hour, day of the month, "
        'month, day of the week), like "30 7 * * mon-fri". VMs are made early enough to be warm by then, at '
        "most an hour before. A time that a clock change skips counts as the moment after it."
    )
    time_zone: TimeZone = Field(
        description='The IANA time zone of start, like "Europe/Berlin"; summer time is its affair.'
    )
    duration: PositiveDuration = Field(description="How long the slot stays open, like 10h.")
    replicas: int = Field(
        ge=1,
        le=10_000,
        description="How many unclaimed VMs to keep while the slot is open, at the least. "
        "Of several open slots the largest counts.",
    )


class Webhook(Model):
    """A service of yours that says how many VMs to keep."""

    model_config = ConfigDict(json_schema_extra=rules(_at_most("timeout", *_TIMEOUT)))

    url: Annotated[
        str,
        Field(
            max_length=2_048,
            json_schema_extra=rules(
                Rule(f"self.matches('{_URL_PATTERN}') && isURL(self)", _HOW_TO_WRITE_A_URL)
            ),
        ),
        AfterValidator(_address),
    ] = Field(
        description="Where to ask, by https. While it fails its last good answer counts, for ten minutes."
    )
    ca_bundle: (
        Annotated[
            str, Field(max_length=65_536, json_schema_extra={"format": "byte"}), AfterValidator(_bundle)
        ]
        | None
    ) = Field(
        default=None,
        description="The PEM certificates, in base64, of the CA that signed the webhook's certificate. "
        "Absent: the CAs of the controller's image.",
    )
    timeout: Annotated[PositiveDuration, _bounded(*_TIMEOUT)] = Field(
        default="5s", description="How long to wait for an answer (default 5s); at most 30s."
    )


class ScaleDown(Model):
    """How slowly the target falls."""

    model_config = ConfigDict(json_schema_extra=rules(_at_most("stabilization", *_STABILIZATION)))

    stabilization: Annotated[Duration, _bounded(*_STABILIZATION)] = Field(
        default="5m",
        description="What percent, schedules, serviceLevel and webhook ask for falls only after it has been "
        "lower for so long, or for the time in which 19 of 20 VMs boot where that is longer (default 5m). "
        "It rises at once. replicas, max and budget are followed at once either way.",
    )


class Budget(Model):
    """How much warmth a day may cost."""

    max_idle_hours_per_day: int = Field(
        ge=0,
        le=240_000,
        description="How many VM-hours a day unclaimed VMs may stand ready, together: 240 is ten VMs around "
        "the clock. What is left is spread over the rest of the day, where it serves most claims. It cuts "
        "what percent, schedules, serviceLevel and webhook ask for, never replicas.",
    )
    time_zone: TimeZone = Field(
        default="UTC", description="The IANA time zone in which the day begins (default UTC)."
    )


class WarmCapacity(Model):
    """How many unclaimed VMs the pool keeps ready."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.max) || self.replicas <= self.max",
                "warm.replicas must not be more than warm.max: raise warm.max or lower warm.replicas",
                ".replicas",
            )
        )
    )

    replicas: int = Field(
        default=1,
        ge=0,
        le=10_000,
        description="How many unclaimed VMs to keep, ready or booting (default 1), at the least; kubectl "
        "scale sets it. It is a stock position: while claims keep coming some of them are always booting.",
    )
    percent: WidePercent | None = Field(
        default=None,
        description="Keep this share of the claimed VMs, rounded up: with 20% ten more claims in use mean "
        'two more VMs. From "0%" to "500%".',
    )
    max: int | None = Field(
        default=None,
        ge=0,
        le=10_000,
        description="Upper bound of the target. VMs that waiting claims ordered come on top.",
    )
    service_level: ServiceLevel | None = Field(
        default=None,
        description="Size the buffer so that this share of the claims finds a VM in time, from measured "
        "arrivals and boot times.",
    )
    schedules: tuple[Schedule, ...] = Field(
        default=(),
        max_length=MAX_SCHEDULES,
        json_schema_extra=list_map("name"),
        description="Floors for times of the week that are known beforehand.",
    )
    webhook: Webhook | None = Field(
        default=None, description="A service of yours that is asked how many VMs to keep."
    )
    scale_down: ScaleDown = Field(default=ScaleDown(), description="How slowly the target falls.")
    budget: Budget | None = Field(default=None, description="A bound on the VM-hours that stand idle a day.")

    @property
    def sizes_itself(self) -> bool:
        """Whether anything but `replicas` may have a say in the target."""
        return bool(
            self.schedules
            or self.percent is not None
            or self.service_level is not None
            or self.webhook is not None
        )


class WarmPolicy(Model):
    """What one policy wants and why."""

    name: Annotated[str, Field(max_length=63)] = Field(description="Which policy this is.")
    wants: Count = Field(description="How many warm VMs it asks for.")
    because: Message = Field(default="", description="Why, in a sentence.")
    applied: bool | None = Field(
        default=None,
        description="False where the policy only advises, as serviceLevel with mode Recommend does.",
    )


class WarmStatus(Model):
    """How warm the pool is, and who decided how warm it should be."""

    ready: Count = Field(default=0, description="VMs that can be handed over this instant.")
    target: Count = Field(default=0, description="How many unclaimed VMs are aimed at.")
    decided_by: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="The policy that set the target."
    )
    policies: tuple[WarmPolicy, ...] = Field(
        default=(),
        max_length=MAX_SCHEDULES + 16,
        json_schema_extra=list_map("name"),
        description="What each policy asked for.",
    )
