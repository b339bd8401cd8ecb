"""What the stand-in reads of a VirtualMachine and of its VirtualMachineInstance.

Projections: what is not named here is skipped while decoding, so that ten thousand idle VMs stay small.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

API_VERSION: Final = "kubevirt.io/v1"
API: Final = f"/apis/{API_VERSION}"
VMS: Final = "virtualmachines"
VMIS: Final = "virtualmachineinstances"
VM_FINALIZER: Final = "kubevirt.io/virtualMachineControllerFinalize"
VMI_FINALIZERS: Final = (VM_FINALIZER, "foregroundDeleteVirtualMachine")
ORPHAN: Final = "orphan"
FINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})


class Owner(Struct, rename="camel"):
    kind: str
    name: str
    uid: str
    controller: bool = False


class Meta(Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int = 0
    deletion_timestamp: str | None = None
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[Owner] = []


class Condition(Struct, rename="camel", omit_defaults=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class StartFailure(Struct, rename="camel"):
    consecutive_fail_count: int = 0


class StateChangeRequest(Struct):
    action: str
    uid: str = ""


class VMStatus(Struct, rename="camel"):
    printable_status: str = ""
    conditions: list[Condition] = []
    start_failure: StartFailure | None = None
    state_change_requests: list[StateChangeRequest] = []


class VMSpec(Struct, rename="camel"):
    template: Raw
    running: bool | None = None
    run_strategy: str | None = None
    instancetype: dict[str, Any] | None = None
    data_volume_templates: list[Any] = []


class VM(Struct):
    metadata: Meta
    spec: VMSpec
    status: VMStatus = msgspec.field(default_factory=VMStatus)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def run_strategy(self) -> str:
        if self.spec.run_strategy:
            return self.spec.run_strategy
        return "Always" if self.spec.running else "Halted"

    @property
    def ready(self) -> bool:
        return holds(self.status.conditions, "Ready")

    def template(self) -> dict[str, Any]:
        """`spec.template`, decoded anew at each call: only a VM that is being booted needs it."""
        decoded: dict[str, Any] = msgspec.json.decode(self.spec.template)
        return decoded


class Interface(Struct, rename="camel"):
    ip_address: str = ""


class VMIStatus(Struct, rename="camel"):
    phase: str = ""
    node_name: str = ""
    conditions: list[Condition] = []
    interfaces: list[Interface] = []
    phase_transition_timestamps: list[dict[str, str]] = []


class VMI(Struct):
    metadata: Meta
    status: VMIStatus = msgspec.field(default_factory=VMIStatus)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def controller(self) -> Owner | None:
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)

    @property
    def final(self) -> bool:
        return self.status.phase in FINAL_PHASES

    @property
    def ran(self) -> bool:
        """Whether its guest was ever up: one that never was counts as a failed start."""
        return any(entry.get("phase") == "Running" for entry in self.status.phase_transition_timestamps)

    @property
    def ready(self) -> bool:
        return holds(self.status.conditions, "Ready")

    @property
    def paused(self) -> bool:
        return holds(self.status.conditions, "Paused")

    @property
    def ip(self) -> str:
        return self.status.interfaces[0].ip_address if self.status.interfaces else ""


def holds(conditions: list[Condition], kind: str) -> bool:
    return any(condition.type == kind and condition.status == "True" for condition in conditions)


def reason(conditions: list[Condition], kind: str) -> str:
    return next((condition.reason for condition in conditions if condition.type == kind), "")


def path(plural: str, namespace: str, name: str = "") -> str:
    return f"{API}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


_decode_vm = msgspec.json.Decoder(VM).decode
_decode_vmi = msgspec.json.Decoder(VMI).decode


def vm_of(data: bytes | Raw) -> VM:
    """Decode a VirtualMachine; its template is copied out, so that the buffer it came in can go."""
    vm = _decode_vm(data)
    vm.spec.template = vm.spec.template.copy()
    return vm


def vmi_of(data: bytes | Raw) -> VMI:
    return _decode_vmi(data)
