"""What of a claim the controller looks at, decoded from every watch event, hence without pydantic."""

import msgspec

from controller.kube.objects import ObjectMeta
from controller.machines.objects import Condition
from crds.claim import WhenEmptyPolicy
from crds.durations import seconds
from statemachines.claim import State

# The finalizers by which Kubernetes marks how an object is deleted.
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_POLICIES = tuple(policy.value for policy in WhenEmptyPolicy)
_PHASES = {state.value: state for state in State}


class PoolRef(msgspec.Struct, frozen=True):
    name: str = ""


class WhenEmpty(msgspec.Struct, frozen=True):
    policy: str = "Order"
    after: str | None = None


class ExtraMetadata(msgspec.Struct, frozen=True):
    """`spec.metadata`: what the claim puts onto its VM."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ClaimSpec(msgspec.Struct, rename="camel", frozen=True):
    pool_ref: PoolRef = PoolRef()
    when_empty: WhenEmpty = WhenEmpty()
    timeout: str | None = None
    lifetime: str | None = None
    metadata: ExtraMetadata = ExtraMetadata()
    ttl_seconds_after_finished: int | None = None

    def trouble(self) -> str:
        """What in it can't be followed though it has the right types; empty when all is well."""
        for field, duration in (
            ("timeout", self.timeout),
            ("lifetime", self.lifetime),
            ("whenEmpty.after", self.when_empty.after),
        ):
            try:
                _ = duration is not None and seconds(duration)
            except ValueError as error:
                return f"spec.{field}: {error}"
        if self.when_empty.policy not in _POLICIES:
            return f"spec.whenEmpty.policy: write one of {', '.join(_POLICIES)}"
        return ""


class Address(msgspec.Struct, frozen=True):
    type: str = ""
    address: str = ""


class BoundVM(msgspec.Struct, rename="camel", frozen=True):
    """One VM that a claim's status names."""

    name: str = ""
    uid: str = ""
    vmi_uid: str = msgspec.field(default="", name="vmiUID")
    node: str = ""
    addresses: list[Address] = []
    warm: bool = False


class QueuePlace(msgspec.Struct, rename="camel", frozen=True):
    position: int = 0
    estimated_ready_time: str | None = None


class ClaimStatus(msgspec.Struct, rename="camel", frozen=True):
    """Every field of the schema: a status is written back whole, so nothing may be missing here."""

    observed_generation: int | None = None
    phase: str = ""
    pool: str = ""
    pool_uid: str = msgspec.field(default="", name="poolUID")
    release_policy: str = ""
    virtual_machines: list[BoundVM] = []
    bound_at: str | None = None
    expires_at: str | None = None
    waited: str = ""
    queue: QueuePlace | None = None
    conditions: list[Condition] = []


class Claim(msgspec.Struct, frozen=True):
    """A VirtualMachineClaim as it was last seen. `status` is None until anything was written to it.

    `misfit` says what of a spec that an older schema let in has the wrong type; `spec` is empty then.
    """

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus | None = None
    misfit: str = ""

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def phase(self) -> State:
        return _PHASES[self.status.phase] if self.status and self.status.phase else State.PENDING

    @property
    def trouble(self) -> str:
        """Why the spec can't be followed; empty when it can."""
        return f"spec can't be read: {self.misfit}" if self.misfit else self.spec.trouble()

    @property
    def private_texts(self) -> tuple[str, ...]:
        """What it wants noted on its VM, which is nobody else's business."""
        return tuple(self.spec.metadata.annotations.values())

    @property
    def going(self) -> bool:
        """Under deletion."""
        return self.metadata.deletion_timestamp is not None

    @property
    def waiting(self) -> bool:
        return self.phase is State.PENDING and not self.going

    @property
    def orphans(self) -> bool:
        """Deleted so that its VM stays and becomes the user's own."""
        return self.going and ORPHAN in self.metadata.finalizers

    def names(self, vm_uid: str) -> bool:
        """Whether the status names this VM: then its hand-over is published."""
        return self.status is not None and any(vm.uid == vm_uid for vm in self.status.virtual_machines)


class _WithoutSpec(msgspec.Struct):
    metadata: ObjectMeta
    status: ClaimStatus | None = None


_CLAIM = msgspec.json.Decoder(Claim)
_WITHOUT_SPEC = msgspec.json.Decoder(_WithoutSpec)


def misfit(body: bytes | msgspec.Raw, why: str) -> Claim:
    """A claim whose spec does not fit: all that can be told of it. Raises MsgspecError if nothing can."""
    found = _WITHOUT_SPEC.decode(body)
    return Claim(found.metadata, ClaimSpec(), found.status, why)


def decode_claim(body: bytes) -> Claim:
    """A claim as the API server answers it."""
    try:
        return _CLAIM.decode(body)
    except msgspec.ValidationError as error:
        return misfit(body, str(error))
