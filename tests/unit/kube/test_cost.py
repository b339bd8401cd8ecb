"""What an event costs. The bound is generous: it is there to notice a change of kind, not of degree."""

import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from controller.kube.objects import ObjectMeta
from controller.kube.reflector import Reflector
from controller.kube.store import Store

EVENTS = 4000


class Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class Status(msgspec.Struct, rename="camel"):
    print_status: str = ""
    conditions: list[Condition] = []


class Machine(msgspec.Struct, gc=False):
    """About what the controller keeps of a VM."""

    metadata: ObjectMeta
    status: Status = msgspec.field(default_factory=Status)


def machine(number: int, version: int) -> dict[str, Any]:
    """A VM of 8 kB as KubeVirt leaves it, most of it managedFields and template."""
    fields: dict[str, Any] = {f"f:{name}": {".": {}, "f:inner": {}} for name in "abcdefghijklmnopqrstuvwxyz"}
    disks = [{"name": f"disk{n}", "disk": {"bus": "virtio"}, "bootOrder": n} for n in range(20)]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {
            "name": f"pool-{number}",
            "namespace": "n",
            "uid": f"0000-{number}",
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "labels": {f"bullpen.dev/label-{n}": "x" for n in range(6)},
            "annotations": {f"bullpen.dev/annotation-{n}": "some text" for n in range(3)},
            "ownerReferences": [
                {
                    "apiVersion": "bullpen.dev/v1alpha1",
                    "kind": "VirtualMachinePool",
                    "name": "p",
                    "uid": "u",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {"manager": "m", "fieldsV1": {"f:metadata": fields, "f:spec": fields}} for _ in range(3)
            ],
        },
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {"disks": disks}}}}},
        "status": {
            "printableStatus": "Running",
            "conditions": [{"type": "Ready", "status": "True", "reason": "x"} for _ in range(4)],
        },
    }


async def test_an_event_of_a_vm_costs_less_than_sixty_microseconds_three_times_over() -> None:
    lines = b"".join(
        json.dumps({"type": "MODIFIED", "object": machine(number % 500, number + 1)}).encode() + b"\n"
        for number in range(EVENTS)
    )

    class Client:
        @contextlib.asynccontextmanager
        async def stream(self, *_: object, **__: object) -> AsyncIterator[AsyncIterator[bytes]]:
            async def body() -> AsyncIterator[bytes]:
                for start in range(0, len(lines), 1 << 16):
                    yield lines[start : start + (1 << 16)]

            yield body()

    changes: list[object] = []
    store = Store[Machine](lambda _, new: changes.append(new))
    client: Any = Client()
    reflector = Reflector(client, "/things", Machine, store)
    started = time.process_time()
    await reflector._watch()
    each = (time.process_time() - started) / EVENTS * 1e6
    print(f"{each:.1f} us of CPU for each event of {len(lines) // EVENTS} bytes")
    assert len(changes) == EVENTS
    assert each < 180
