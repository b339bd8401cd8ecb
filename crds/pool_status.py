"""What a pool's status says: counts, demand, the brake, referenced objects, conditions.

Part of the pool's CRD. It must never decide anything, nor say what may be written by a person.
"""

from typing import Annotated, Literal

from pydantic import Field

from crds.conditions import Conditions
from crds.schema import Count, Model, ObjectName, Time, Uid, list_map
from crds.warm import WarmStatus


class InstanceCounts(Model):
    """How many VMs are in each state; together they are status.total."""

    provisioning: Count = Field(default=0, description="Made, not yet warm.")
    warm: Count = Field(default=0, description="Ready to be handed over.")
    unready: Count = Field(default=0, description="Were warm and are not now; within their grace.")
    claimed: Count = Field(default=0, description="Handed over to claims.")
    draining: Count = Field(default=0, description="Chosen for deletion; can't be claimed any more.")
    terminating: Count = Field(default=0, description="Being deleted.")
    failed: Count = Field(default=0, description="Gave up: deadline passed, crashed, or lost while warm.")


class LeadTime(Model):
    """How long VMs took from creation to warm, over the last ones."""

    p50: float | None = Field(default=None, ge=0, le=1e9, description="Half of them were faster; in seconds.")
    p95: float | None = Field(default=None, ge=0, le=1e9, description="19 of 20 were faster; in seconds.")


class Demand(Model):
    """What is asked of the pool."""

    pending: Count = Field(default=0, description="Claims that wait for a VM.")
    oldest_pending_since: Time | None = Field(
        default=None, description="Since when the longest-waiting claim has been waiting."
    )
    lead_time_seconds: LeadTime | None = Field(
        default=None, description="How long VMs took from creation to warm, over the last ones."
    )
    claims_per_hour: float | None = Field(
        default=None, ge=0, le=1e9, description="Claims that came an hour, lately; rounded to two digits."
    )
    hit_ratio: Annotated[str, Field(max_length=8)] | None = Field(
        default=None,
        description="Which share of the claims of the last seven days got a VM in time, like 99.2%: "
        "within serviceLevel.maxWait, or at once where there is no service level.",
    )


class Brake(Model):
    """The failure brake: after repeated failures creations back off."""

    open_since: Time | None = Field(default=None, description="When it opened; absent while it is closed.")
    failures: Count = Field(default=0, description="Failures in a row.")
    next_probe_time: Time | None = Field(default=None, description="When the next single VM is tried.")


MAX_REFERENCES = 64


class ReferencedObject(Model):
    """A Secret or ConfigMap whose data VMs hold; never the data."""

    kind: Literal["Secret", "ConfigMap"] = Field(description="Secret or ConfigMap.")
    name: ObjectName = Field(description="Its name.")
    uid: Uid = Field(description="The UID of the one that was seen last.")
    resource_version: Annotated[str, Field(max_length=128)] = Field(
        description="The version that was seen last."
    )
    changed_at: Time | None = Field(
        default=None,
        description="When a change of it was last noticed; absent if none was. Older VMs may hold old data.",
    )


class PoolStatus(Model):
    """What was found."""

    observed_generation: int | None = Field(
        default=None, ge=0, le=2**53, description="The metadata.generation that this status was found for."
    )
    replicas: Count = Field(default=0, description="Unclaimed VMs: warm, unready and booting.")
    total: Count = Field(default=0, description="All VMs of the pool, claimed and terminating ones included.")
    instances: InstanceCounts | None = Field(default=None, description="How many VMs are in each state.")
    warm: WarmStatus | None = Field(default=None, description="How warm the pool is, and who decided.")
    current_revision: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="The revision of the template that new VMs are made from."
    )
    updated_replicas: Count = Field(default=0, description="Unclaimed VMs of the current revision.")
    demand: Demand | None = Field(default=None, description="What is asked of the pool.")
    brake: Brake | None = Field(default=None, description="The failure brake.")
    selector: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="Label selector of the pool's unclaimed VMs, for the scale subresource."
    )
    referenced_data: Annotated[
        tuple[ReferencedObject, ...],
        Field(max_length=MAX_REFERENCES, json_schema_extra=list_map("kind", "name")),
    ] = Field(default=(), description="The Secrets and ConfigMaps that the template refers to, as last seen.")
    conditions: Conditions = Field(
        default=(),
        description="Ready, Warm, Progressing, RolledOut, Degraded and CapacityAvailable; "
        "ReferencedDataChanged where the template refers to Secrets or ConfigMaps; "
        "PoliciesMet where warm names more than replicas.",
    )
