"""VirtualMachinePool: a template and how many booted VMs of it are kept ready.

The source of truth of the pool's CRD. It must never decide anything: it says what may be written.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from crds.durations import PATTERN, Duration, PositiveDuration
from crds.labels import TemplateAnnotations, TemplateLabels
from crds.parsing import parsed
from crds.pool_status import PoolStatus
from crds.ratios import Percent
from crds.schema import PRESERVE_UNKNOWN, SET, Model, ObjectMeta, Rule, rules
from crds.warm import WarmCapacity


class ReadinessWhen(StrEnum):
    """What a VM must have reached to count as warm."""

    READY = "Ready"
    AGENT_CONNECTED = "AgentConnected"
    RUNNING = "Running"


class ClaimOrder(StrEnum):
    """Which warm VM the next claim gets."""

    OLDEST = "Oldest"
    NEWEST = "Newest"


# CEL can't see into fields that the schema does not name, so the few that a rule needs are named. The rest of
# a VirtualMachine's spec is KubeVirt's to check.
_VM_SPEC: dict[str, JsonValue] = {
    **PRESERVE_UNKNOWN,
    **rules(
        Rule(
            "!has(self.running)",
            "remove running and write runStrategy: Always or RerunOnFailure, which took its place",
            ".running",
        )
    ),
    "required": ["template"],
    "properties": {
        "runStrategy": {
            "type": "string",
            "enum": ["Always", "RerunOnFailure"],
            "description": "Always (also when absent) or RerunOnFailure: VMs of a pool run.",
        },
        "running": {
            "type": "boolean",
            "description": "Refused: write runStrategy: Always or RerunOnFailure instead.",
        },
        "template": {
            "type": "object",
            **PRESERVE_UNKNOWN,
            "description": "The template of the VirtualMachineInstance, as in a VirtualMachine: "
            "domain, volumes, networks and so on.",
        },
    },
}


class TemplateMetadata(Model):
    """Labels and annotations of every VM of the pool."""

    labels: TemplateLabels | None = Field(
        default=None, description="Labels of every VM. Keys under bullpen.dev/ are Bullpen's own."
    )
    annotations: TemplateAnnotations | None = Field(
        default=None, description="Annotations of every VM. Keys under bullpen.dev/ are Bullpen's own."
    )


class VMTemplate(Model):
    """What every VM of the pool is made from."""

    metadata: TemplateMetadata | None = Field(
        default=None, description="Labels and annotations of every VM of the pool."
    )
    spec: dict[str, Any] = Field(
        description="The spec of a kubevirt.io/v1 VirtualMachine. Each VM gets a name of its own, and so "
        "does each of its dataVolumeTemplates. What would make VMs clash is refused: a fixed MAC address, "
        "firmware uuid or serial, and a persistentVolumeClaim volume that is not read-only.",
        json_schema_extra=_VM_SPEC,
    )


class Limits(Model):
    """Caps over all VMs of the pool, claimed ones included."""

    max_replicas: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="How many VMs may exist at once, warm, booting, claimed and terminating ones together "
        "(default 100).",
    )
    max_concurrent_creations: int = Field(
        default=10,
        ge=1,
        le=1_000,
        description="How many VMs may be between their creation and being warm at once (default 10).",
    )
    max_concurrent_deletions: int = Field(
        default=10, ge=1, le=1_000, description="How many VMs may be on their way out at once (default 10)."
    )


class Readiness(Model):
    """When a VM counts as warm; checked again for as long as it is warm."""

    when: ReadinessWhen = Field(
        default=ReadinessWhen.READY,
        description="Ready (default): KubeVirt's Ready condition, with the template's readiness probe. "
        "AgentConnected: the guest agent answers. Running: the guest was started.",
    )
    conditions: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=316)], ...],
        Field(max_length=8, json_schema_extra=SET),
    ] = Field(
        default=(),
        description="More condition types of the VirtualMachineInstance that must be True as well.",
    )
    min_ready_seconds: int = Field(
        default=0,
        ge=0,
        le=3_600,
        description="For how many seconds a VM must have been ready before it counts as warm (default 0).",
    )
    deadline: PositiveDuration = Field(
        default="15m",
        description="A VM that is not warm so long after its creation has failed and is replaced "
        "(default 15m). Time in which no node had room for it does not count.",
    )
    unready_grace: Duration = Field(
        default="2m",
        description="A warm VM that stops being ready is not handed over from that moment on, "
        "and is replaced when it is not ready again after so long (default 2m).",
    )


class LifetimePolicy(Model):
    """How long claims of this pool may keep their VMs."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                f"!has(self.default) || !has(self.max) || !self.default.matches('{PATTERN}') || "
                f"!self.max.matches('{PATTERN}') || duration(self.default) <= duration(self.max)",
                "lifetime.default must not be longer than lifetime.max: raise max or lower default",
                ".default",
            )
        )
    )

    default: PositiveDuration | None = Field(
        default=None,
        description="Lifetime of a claim that names none, from its bind. Absent: until it is deleted "
        "(or max, where that is set).",
    )
    max: PositiveDuration | None = Field(
        default=None,
        description="Longest lifetime of a claim, from its bind. Who asks for more gets this.",
    )


class ClaimsPolicy(Model):
    """How claims are served."""

    order: ClaimOrder = Field(
        default=ClaimOrder.OLDEST, description="Which warm VM goes first: the Oldest (default) or the Newest."
    )
    lifetime: LifetimePolicy | None = Field(default=None, description="How long a claim may keep its VM.")


class UpdateType(StrEnum):
    """What a change of the template does to the VMs that nobody has claimed yet."""

    REPLENISH = "Replenish"
    ROLLING_UPDATE = "RollingUpdate"
    RECREATE = "Recreate"


class UpdateStrategy(Model):
    """How VMs are replaced, and how many may be missing or extra meanwhile."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                # The default of this field, {}, is checked before the defaults of its fields are put in.
                "!has(self.maxSurge) || self.maxSurge != 0 || "
                "(has(self.warmFloor) && self.warmFloor != '100%')",
                "with maxSurge 0 and warmFloor 100% no VM could ever be replaced: write maxSurge: 1 or more, "
                "so that one more is made first, or a lower warmFloor, like 80%, so that one may be missing",
                ".maxSurge",
            )
        )
    )

    type: UpdateType = Field(
        default=UpdateType.REPLENISH,
        description="What a change of the template does to unclaimed VMs; claimed ones are never touched. "
        "Replenish (default): nothing, only VMs that are made after it are of the new template. "
        "RollingUpdate: the old ones are replaced as new ones become warm, never under warmFloor. "
        "Recreate: all old ones are removed at once, then as many new ones are made.",
    )
    max_surge: int = Field(
        default=1,
        ge=0,
        le=1_000,
        description="How many more VMs than the target there may be while VMs are replaced (default 1).",
    )
    warm_floor: Percent = Field(
        default="100%",
        description="The share of the target, rounded up, that replacing VMs always leaves ready: 100% "
        "(default) lets no VM go before its successor is warm. Claims may still take the VMs below it.",
    )


class PoolSpec(Model):
    """What is wanted of the pool."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.warm.replicas <= self.limits.maxReplicas",
                "warm.replicas must not be more than limits.maxReplicas: "
                "raise limits.maxReplicas (100 when it is not written) or lower warm.replicas",
                ".warm.replicas",
            )
        )
    )

    template: VMTemplate = Field(
        description="What every VM of the pool is made from. What a change does to the VMs that are there "
        "already, updateStrategy says."
    )
    warm: WarmCapacity = Field(default=WarmCapacity(), description="How many unclaimed VMs to keep.")
    limits: Limits = Field(default=Limits(), description="Caps over all VMs of the pool, claimed ones too.")
    readiness: Readiness = Field(default=Readiness(), description="When a VM counts as warm.")
    claims: ClaimsPolicy = Field(default=ClaimsPolicy(), description="How claims are served.")
    update_strategy: UpdateStrategy = Field(
        default=UpdateStrategy(),
        description="How VMs are replaced when the template changes or when they are older than maxWarmAge.",
    )
    max_warm_age: PositiveDuration | None = Field(
        default=None,
        description="An unclaimed VM that was created longer ago is replaced, whatever updateStrategy.type "
        "is, within updateStrategy.maxSurge and warmFloor. Up to a tenth earlier, so that VMs made together "
        "don't go together. Absent: VMs may be of any age.",
    )
    suspend: bool = Field(
        default=False,
        description="While true no VM is made, removed or replaced; claims are still served from what is "
        "warm (default false).",
    )


class VirtualMachinePool(Model):
    """Keeps booted virtual machines of one template ready for the VirtualMachineClaims of its namespace."""

    api_version: Literal["bullpen.dev/v1alpha1"] = "bullpen.dev/v1alpha1"
    kind: Literal["VirtualMachinePool"] = "VirtualMachinePool"
    metadata: ObjectMeta
    spec: PoolSpec = Field(description="What is wanted of the pool.")
    status: PoolStatus | None = Field(default=None, description="What was found; written by Bullpen.")


def parse_pool(obj: Mapping[str, Any]) -> VirtualMachinePool:
    """Read a stored pool.

    Raises:
        ValueError: in one readable sentence, for an object that an older schema let in.
            A status that can't be read is left out: it is ours, and is computed anew.
    """
    return parsed(VirtualMachinePool, obj)
