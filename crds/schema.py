"""What every model of the API is made of: the base model, times, and the words that only CRDs have.

It must never know a kind: what is particular to one stands beside that kind's model.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, PlainSerializer
from pydantic.alias_generators import to_camel


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule that the API server checks, and the sentence that it prints when the rule does not hold.

    `fieldPath` is where the API server points at, below the place where the rule stands.
    """

    rule: str
    message: str
    fieldPath: str | None = None  # noqa: N815 - the word of the CRD's own schema
    reason: str | None = None


def rules(*checks: Rule) -> dict[str, JsonValue]:
    """Give the schema extras that put these rules on a field or a model."""
    written: list[JsonValue] = [{k: v for k, v in asdict(check).items() if v is not None} for check in checks]
    return {"x-kubernetes-validations": written}


PRESERVE_UNKNOWN: dict[str, JsonValue] = {"x-kubernetes-preserve-unknown-fields": True}
SET: dict[str, JsonValue] = {"x-kubernetes-list-type": "set"}
ATOMIC: dict[str, JsonValue] = {"x-kubernetes-list-type": "atomic"}


def list_map(*keys: str) -> dict[str, JsonValue]:
    """Give the schema extras of a list whose items are told apart by these keys."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


class Model(BaseModel):
    """A piece of the API: frozen, camelCase on the wire, forgiving of fields it does not know."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")

    def as_json(self) -> dict[str, Any]:
        """Give the JSON object as it stands on the wire: absent fields are absent, never null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def whole_second(moment: datetime) -> datetime:
    """Cut a time to what Kubernetes stores: UTC, whole seconds. A time without zone counts as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(microsecond=0)


def written_time(moment: datetime) -> str:
    """Write a time as Kubernetes does: `2026-01-31T12:00:00Z`."""
    return whole_second(moment).isoformat().replace("+00:00", "Z")


Time = Annotated[
    datetime,
    AfterValidator(whole_second),
    PlainSerializer(written_time, return_type=str),
    Field(json_schema_extra={"type": "string", "format": "date-time"}),
]


def clipped(limit: int) -> BeforeValidator:
    """Shorten what is too long for its field: a long error message must never stop a status write."""

    def clip(value: Any) -> Any:
        return value if not isinstance(value, str) or len(value) <= limit else value[: limit - 1] + "…"

    return BeforeValidator(clip)


Message = Annotated[str, clipped(4096), Field(max_length=4096)]
"""A sentence or two for people."""
Count = Annotated[int, Field(ge=0, le=1_000_000)]
"""So many VMs or claims."""
ObjectName = Annotated[str, Field(max_length=253)]
LabelName = Annotated[str, Field(max_length=63)]
Uid = Annotated[str, Field(max_length=128)]


class ObjectMeta(Model):
    """What the API server keeps about an object. Its schema is the API server's own."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
