"""WarmCapacity: how much is kept ready, and what the status says about it.

Shared by every kind that keeps a buffer. It must never hold the rule that sizes the buffer.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from crds.schema import Count, Message, Model, Rule, list_map, rules


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
        description="How many unclaimed VMs to keep, ready or booting (default 1); kubectl scale sets it. "
        "It is a stock position: while claims keep coming some of them are always booting.",
    )
    max: int | None = Field(
        default=None,
        ge=0,
        le=10_000,
        description="Upper bound of the target. VMs that waiting claims ordered come on top.",
    )


class WarmPolicy(Model):
    """What one policy wants and why."""

    name: Annotated[str, Field(max_length=63)] = Field(description="Which policy this is.")
    wants: Count = Field(description="How many warm VMs it asks for.")
    because: Message = Field(default="", description="Why, in a sentence.")


class WarmStatus(Model):
    """How warm the pool is, and who decided how warm it should be."""

    ready: Count = Field(default=0, description="VMs that can be handed over this instant.")
    target: Count = Field(default=0, description="How many unclaimed VMs are aimed at.")
    decided_by: Annotated[str, Field(max_length=63)] | None = Field(
        default=None, description="The policy that set the target."
    )
    policies: tuple[WarmPolicy, ...] = Field(
        default=(),
        max_length=16,
        json_schema_extra=list_map("name"),
        description="What each policy asked for.",
    )
