"""VirtualMachineClaim: one VM of a pool, for as long as the claim exists.

The source of truth of the claim's CRD. It must never decide anything: it says what may be written.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from crds.conditions import Conditions
from crds.durations import Duration, PositiveDuration
from crds.labels import ClaimAnnotations, ClaimLabels
from crds.parsing import parsed, parsed_part
from crds.schema import ATOMIC, Count, LabelName, Model, ObjectMeta, ObjectName, Rule, Time, Uid, rules


class WhenEmptyPolicy(StrEnum):
    """What a claim does that finds no warm VM."""

    ORDER = "Order"
    ORDER_AFTER = "OrderAfter"
    WAIT = "Wait"
    FAIL = "Fail"


class Phase(StrEnum):
    """Where a claim is in its life."""

    PENDING = "Pending"
    BOUND = "Bound"
    RELEASING = "Releasing"
    RELEASED = "Released"
    EXPIRED = "Expired"
    FAILED = "Failed"
    LOST = "Lost"


class PoolRef(Model):
    """The pool to take a VM from."""

    name: Annotated[str, Field(min_length=1, max_length=63)] = Field(
        description="Name of a VirtualMachinePool in the claim's namespace. It may be made after the claim."
    )


class WhenEmpty(Model):
    """What to do when no VM is warm."""

    # The API server tries the rules on the default, which is {}, before the fields have theirs: hence has().
    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "has(self.after) || !has(self.policy) || self.policy != 'OrderAfter'",
                "policy OrderAfter needs after: the wait before one more VM is ordered, like after: 2m",
                ".after",
                "FieldValueRequired",
            ),
            Rule(
                "!has(self.after) || (has(self.policy) && self.policy == 'OrderAfter')",
                "after belongs to policy OrderAfter: remove after, or write policy: OrderAfter",
                ".after",
            ),
        )
    )

    policy: WhenEmptyPolicy = Field(
        default=WhenEmptyPolicy.ORDER,
        description="Order (default): order one more VM at once, and take whichever is ready first. "
        "OrderAfter: the same, after a while. Wait: take only what the pool refills. Fail: fail at once.",
    )
    after: Duration | None = Field(
        default=None, description="With OrderAfter, and only then: how long to wait before a VM is ordered."
    )


class ClaimMetadata(Model):
    """Labels and annotations that the VM gets at the hand-over."""

    labels: ClaimLabels | None = Field(
        default=None,
        description="Labels put onto the VirtualMachine at the hand-over. They reach neither its "
        "VirtualMachineInstance nor its pod, which exist by then.",
    )
    annotations: ClaimAnnotations | None = Field(
        default=None, description="Annotations put onto the VirtualMachine at the hand-over."
    )


def _immutable(field: str) -> Rule:
    # Presence is compared too: else removing the field and adding it again would change it in two steps.
    return Rule(
        f"has(self.{field}) == has(oldSelf.{field}) && "
        f"(!has(self.{field}) || self.{field} == oldSelf.{field})",
        f"{field} can't be changed, added or removed once the claim exists: delete the claim and "
        "make another (only lifetime and timeout may change)",
        f".{field}",
    )


class ClaimSpec(Model):
    """What is asked for. Only lifetime and timeout may change once the claim exists."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *map(_immutable, ("poolRef", "whenEmpty", "metadata", "ttlSecondsAfterFinished"))
        )
    )

    pool_ref: PoolRef = Field(description="The pool to take a VM from.")
    when_empty: WhenEmpty = Field(default=WhenEmpty(), description="What to do when no VM is warm.")
    timeout: PositiveDuration | None = Field(
        default=None, description="Give up waiting for a VM after so long. Absent: never."
    )
    lifetime: PositiveDuration | None = Field(
        default=None,
        description="Given back so long after the bind, bounded by the pool. Absent: the pool's default.",
    )
    metadata: ClaimMetadata | None = Field(
        default=None, description="Labels and annotations that the VM gets at the hand-over."
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=31_536_000,
        description="Remove the claim so many seconds after it finished. "
        "Absent: it stays until somebody deletes it.",
    )


class Address(Model):
    """One address of a VM."""

    type: Annotated[str, Field(max_length=63)] = Field(
        description="What kind of address this is: InternalIP."
    )
    address: Annotated[str, Field(max_length=253)] = Field(description="The address.")


class ClaimedVM(Model):
    """One VM that was handed over."""

    name: ObjectName = Field(description="Name of the VirtualMachine.")
    uid: Uid = Field(description="UID of the VirtualMachine.")
    vmi_uid: Uid | None = Field(
        default=None,
        alias="vmiUID",
        description="UID of the VirtualMachineInstance at the hand-over; "
        "another one later means that the guest was restarted.",
    )
    node: ObjectName | None = Field(default=None, description="The node it runs on.")
    addresses: Annotated[tuple[Address, ...], Field(max_length=32, json_schema_extra=ATOMIC)] = Field(
        default=(), description="Where it can be reached; the first one is the one to use."
    )
    warm: bool = Field(default=False, description="Whether it was warm when it was handed over.")


ClaimedVMs = Annotated[tuple[ClaimedVM, ...], Field(max_length=64, json_schema_extra=ATOMIC)]


class QueuePlace(Model):
    """Where a waiting claim stands in line."""

    position: Count | None = Field(default=None, description="1 is the next one to be served.")
    estimated_ready_time: Time | None = Field(
        default=None, description="When a VM is expected, by the last boots. Absent while nothing is known."
    )


class ClaimStatus(Model):
    """What happened so far."""

    observed_generation: int | None = Field(
        default=None, ge=0, le=2**53, description="The metadata.generation that this status was found for."
    )
    phase: Phase | None = Field(
        default=None, description="Pending, Bound, Releasing, Released, Expired, Failed or Lost."
    )
    pool: LabelName | None = Field(default=None, description="The pool that serves the claim.")
    pool_uid: Uid | None = Field(default=None, alias="poolUID", description="UID of that pool.")
    release_policy: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="What becomes of the VM afterwards, as recorded at the bind: Delete."
    )
    virtual_machines: ClaimedVMs = Field(
        default=(), description="The VM that was handed over. It never changes."
    )
    bound_at: Time | None = Field(default=None, description="When the VM was handed over.")
    expires_at: Time | None = Field(default=None, description="When the VM will be given back.")
    waited: Annotated[str, Field(max_length=28)] | None = Field(
        default=None, description="How long the claim waited for its VM."
    )
    queue: QueuePlace | None = Field(default=None, description="Where the claim stands in line.")
    conditions: Conditions = Field(default=(), description="Bound, Ready, Finished and Disrupted.")


class VirtualMachineClaim(Model):
    """Takes one booted virtual machine from a VirtualMachinePool and gives it back when it is deleted."""

    api_version: Literal["bullpen.dev/v1alpha1"] = "bullpen.dev/v1alpha1"
    kind: Literal["VirtualMachineClaim"] = "VirtualMachineClaim"
    metadata: ObjectMeta
    spec: ClaimSpec = Field(description="What is asked for.")
    status: ClaimStatus | None = Field(default=None, description="What happened so far; written by Bullpen.")


def parse_claim(obj: Mapping[str, Any]) -> VirtualMachineClaim:
    """Read a stored claim.

    Raises:
        ValueError: in one readable sentence, for an object that an older schema let in.
            A status that can't be read is left out.
    """
    return parsed(VirtualMachineClaim, obj)


def parse_claim_spec(spec: object) -> ClaimSpec:
    """Read a stored claim's spec alone, for those who keep the rest of the claim in another form.

    Raises:
        ValueError: in one readable sentence.
    """
    return parsed_part(ClaimSpec, spec, at="spec")
