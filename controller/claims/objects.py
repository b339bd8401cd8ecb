"""What of a claim the controller looks at, decoded from every watch event, hence without pydantic."""

import msgspec

from controller.kube.objects import ObjectMeta
from controller.machines.objects import Condition
from statemachines.claim import State

# The finalizers by which Kubernetes marks how an object is deleted.
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
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
    """A VirtualMachineClaim as it was last seen. `status` is None until anything was written to it."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus | None = None

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
