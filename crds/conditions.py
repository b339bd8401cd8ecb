"""Every condition type and reason of the API as a documented constant, and the condition itself.

A reason is API: scripts wait for it. This module must never decide which reason holds.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from crds.schema import Message, Model, Time, list_map


class Truth(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class PoolCondition(StrEnum):
    """The condition types of a pool."""

    READY = "Ready"
    """Surfaces always: True while the pool works; the summary that kstatus, Flux and Helm read."""
    WARM = "Warm"
    """Surfaces always: False when VMs are short for over twice their usual boot time, or the pool goes."""
    PROGRESSING = "Progressing"
    """Surfaces always: True while VMs are being made or removed to reach the target."""
    ROLLED_OUT = "RolledOut"
    """Surfaces always: True when every unclaimed VM is of the present template and enough have been warm."""
    DEGRADED = "Degraded"
    """Surfaces always: True when something needs a person's eye though claims may still be served."""
    CAPACITY_AVAILABLE = "CapacityAvailable"
    """Surfaces always: False when limits, a quota or the cluster leave no room for another VM."""
    REFERENCED_DATA_CHANGED = "ReferencedDataChanged"
    """Surfaces when the template refers to Secrets or ConfigMaps: True when VMs are older than they are."""
    POLICIES_MET = "PoliciesMet"
    """Surfaces when spec.warm names more than replicas: False when something it asks for can't be had."""


class PoolReason(StrEnum):
    """Why a pool's condition is as it is."""

    SERVING = "Serving"
    """Surfaces when nothing stands in the pool's way (Ready)."""
    SPEC_INVALID = "SpecInvalid"
    """Surfaces when the stored pool can't be read under the present schema (Ready)."""
    TEMPLATE_INVALID = "TemplateInvalid"
    """Surfaces when Bullpen or KubeVirt refuses the template; the message says why (Ready)."""
    TEMPLATE_TOO_LARGE = "TemplateTooLarge"
    """Surfaces when the stored template is over 256 kB; no VM is made from it (Ready)."""
    BRAKE_OPEN = "BrakeOpen"
    """Surfaces when VMs failed again and again: creations back off, one probe at a time (Ready, Degraded)."""
    QUOTA_REFUSED = "QuotaRefused"
    """Surfaces when a quota of the namespace refuses another VM (Ready, CapacityAvailable, Progressing)."""
    API_REFUSED = "ApiRefused"
    """Surfaces when the API server refuses a write for another reason, which is told (Ready, Degraded)."""
    KUBEVIRT_MISSING = "KubeVirtMissing"
    """Surfaces when the API server does not serve KubeVirt's kinds; goes on by itself (Ready, Degraded)."""
    SUSPENDED = "Suspended"
    """Surfaces when spec.suspend is true: nothing is made or removed (Progressing)."""
    DELETING = "Deleting"
    """Surfaces when the pool goes; Ready says what remains (Ready, Warm, Progressing, RolledOut)."""
    INTERNAL_ERROR = "InternalError"
    """Surfaces when a pass ended in an error of Bullpen's own; it is tried again (Ready, Degraded)."""
    CONTROLLER_STOPPED = "ControllerStopped"
    """Surfaces when the controller was stopped; says how to delete the pool without one (Ready)."""

    TARGET_REACHED = "TargetReached"
    """Surfaces when as many VMs are warm as are aimed at (Warm, Progressing)."""
    FILLING = "Filling"
    """Surfaces when missing VMs are being made and are not late (Warm, Progressing)."""
    SHORT = "Short"
    """Surfaces when VMs have been missing for longer than twice their usual boot time (Warm)."""
    SHRINKING = "Shrinking"
    """Surfaces when surplus VMs are being removed (Progressing)."""

    UP_TO_DATE = "UpToDate"
    """Surfaces when every unclaimed VM is of the present template (RolledOut)."""
    ROLLING_OUT = "RollingOut"
    """Surfaces when VMs of an older template, or too old ones, are replaced (RolledOut, Progressing)."""
    ROLLOUT_STALLED = "RolloutStalled"
    """Surfaces when VMs are kept that should be replaced; the message says why (RolledOut, Progressing)."""
    REPLENISHING = "Replenishing"
    """Surfaces when VMs of an older template stay until they are claimed, by Replenish (RolledOut)."""

    AS_EXPECTED = "AsExpected"
    """Surfaces when nothing needs a person's eye (Degraded)."""
    VMS_STUCK = "VMsStuck"
    """Surfaces when VMs have been under deletion for long and do not go; says which and why (Degraded)."""
    VMS_FAILED = "VMsFailed"
    """Surfaces when VMs failed lately, though not often enough to open the brake (Degraded)."""
    WARM_AGE_TOO_SHORT = "WarmAgeTooShort"
    """Surfaces when VMs are older than maxWarmAge as soon as they are warm; says what to write (Degraded)."""

    BELOW_LIMITS = "BelowLimits"
    """Surfaces when another VM may be made (CapacityAvailable)."""
    MAX_REPLICAS_REACHED = "MaxReplicasReached"
    """Surfaces when limits.maxReplicas forbids a wanted VM (CapacityAvailable, Progressing, PoliciesMet)."""
    UNSCHEDULABLE = "Unschedulable"
    """Surfaces when the cluster has no node for a VM (CapacityAvailable)."""

    DATA_CHANGED = "DataChanged"
    """Surfaces when unclaimed VMs were made before a Secret or ConfigMap changed (ReferencedDataChanged)."""
    DATA_MISSING = "DataMissing"
    """Surfaces when a Secret or ConfigMap that VMs need is not there (ReferencedDataChanged)."""
    DATA_UNCHANGED = "DataUnchanged"
    """Surfaces when no unclaimed VM is older than the data that it refers to (ReferencedDataChanged)."""
    DATA_UNREADABLE = "DataUnreadable"
    """Surfaces when the controller can't read a Secret or ConfigMap, or may not (ReferencedDataChanged)."""

    AS_ASKED = "AsAsked"
    """Surfaces when nothing keeps spec.warm from what it asks for (PoliciesMet)."""
    WEBHOOK_FAILING = "WebhookFailing"
    """Surfaces when the webhook gives no usable answer; says what counts meanwhile (PoliciesMet)."""
    LEVEL_UNREACHABLE = "LevelUnreachable"
    """Surfaces when warm.max or limits.maxReplicas is lower than the service level needs (PoliciesMet)."""
    REFILL_BOUND = "RefillBound"
    """Surfaces when maxConcurrentCreations is too low at the busiest hour; a number is told (PoliciesMet)."""
    BUDGET_BITES = "BudgetBites"
    """Surfaces when the budget cuts what the policies ask for, or replicas overdraw it (PoliciesMet)."""
    TOO_FEW_CLAIMS = "TooFewClaims"
    """Surfaces when fewer claims were seen than a service level can be reckoned from (PoliciesMet)."""
    HISTORY_LOST = "HistoryLost"
    """Surfaces when the history of demand could not be read and begins anew, or is not kept (PoliciesMet)."""
    SCHEDULE_NEVER_OPENS = "ScheduleNeverOpens"
    """Surfaces when a schedule can't be followed, as one for 30 February (PoliciesMet)."""


class ClaimCondition(StrEnum):
    """The condition types of a claim."""

    BOUND = "Bound"
    """Surfaces always: True from the moment that a VM was handed over."""
    READY = "Ready"
    """Surfaces always: True while the VM is usable: it runs, is ready and has an address."""
    FINISHED = "Finished"
    """Surfaces when the claim is over: released, expired, failed or lost."""
    DISRUPTED = "Disrupted"
    """Surfaces when the VM's guest was restarted after the hand-over."""


class ClaimReason(StrEnum):
    """Why a claim's condition is as it is."""

    QUEUED = "Queued"
    """Surfaces when no VM is warm and the claim waits for its turn (Bound, Ready)."""
    POOL_NOT_FOUND = "PoolNotFound"
    """Surfaces when the pool does not exist; the claim binds when it appears (Bound, Ready)."""
    POOL_DELETING = "PoolDeleting"
    """Surfaces when the pool is being deleted and hands nothing over any more (Bound, Ready)."""
    POOL_INVALID = "PoolInvalid"
    """Surfaces when the pool's own spec or template is refused, so that no VM can come (Bound, Ready)."""
    SPEC_INVALID = "SpecInvalid"
    """Surfaces when the stored claim can't be read under the present schema (Bound, Ready)."""
    METADATA_REFUSED = "MetadataRefused"
    """Surfaces when the API server refuses the claim's spec.metadata on the VM (Bound, Ready)."""
    METADATA_CONFLICT = "MetadataConflict"
    """Surfaces when spec.metadata has a key that the VM has already (Bound, Ready)."""
    KUBEVIRT_MISSING = "KubeVirtMissing"
    """Surfaces when the API server does not serve KubeVirt's kinds; goes on by itself (Bound, Ready)."""
    NOTHING_WARM = "NothingWarm"
    """Surfaces when whenEmpty is Fail and no VM was warm (Bound)."""

    HANDED_OVER = "HandedOver"
    """Surfaces when the claim has its VM (Bound)."""
    USABLE = "Usable"
    """Surfaces when the VM runs, is ready and has an address (Ready)."""
    NOT_READY = "NotReady"
    """Surfaces when the handed-over VM is not ready at the moment (Ready)."""
    NO_ADDRESS = "NoAddress"
    """Surfaces when the handed-over VM has no address at the moment (Ready)."""
    DEAD_ON_ARRIVAL = "DeadOnArrival"
    """Surfaces when the VM's guest had died before the hand-over was published (Ready)."""
    GUEST_RESTARTED = "GuestRestarted"
    """Surfaces when the VM runs as a new instance: what was in its memory is gone (Disrupted)."""

    LIFETIME_OVER = "LifetimeOver"
    """Surfaces when the VM is being given back because spec.lifetime is over (Ready)."""
    RELEASED = "Released"
    """Surfaces when the VM was given back (Ready, Finished)."""
    EXPIRED = "Expired"
    """Surfaces when spec.timeout passed before a VM was handed over (Ready, Finished)."""
    FAILED = "Failed"
    """Surfaces when the claim can't be served and will not be tried again (Ready, Finished)."""
    LOST = "Lost"
    """Surfaces when the VM disappeared under the claim; the message says which and when (Ready, Finished)."""
    POOL_DELETED = "PoolDeleted"
    """Surfaces when the VM was lost to a foreground deletion of its pool (Ready, Finished)."""


REASON_PATTERN = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
TYPE_PATTERN = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Condition(Model):
    """One aspect of an object's state, as every Kubernetes tool reads it (metav1.Condition)."""

    type: Annotated[str, Field(max_length=316, pattern=TYPE_PATTERN)] = Field(
        description="What this condition is about."
    )
    status: Truth = Field(description="True, False or Unknown.")
    observed_generation: int | None = Field(
        default=None,
        ge=0,
        le=2**53,
        description="The metadata.generation that the condition was found for.",
    )
    last_transition_time: Time = Field(description="When status last changed.")
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=REASON_PATTERN)] = Field(
        description="Why, as one word for programs."
    )
    message: Message = Field(description="Why, as a sentence for people.")


Conditions = Annotated[tuple[Condition, ...], Field(max_length=16, json_schema_extra=list_map("type"))]
