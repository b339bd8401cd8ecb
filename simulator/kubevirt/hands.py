"""The one place where the stand-in writes: each verb of a script as a request, its answer put into the sight.

Every write names the uid it is meant for, so that none ever lands on a namesake.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import uniform
from typing import Any, Final

import msgspec
import orjson

from simulator.api import Api, ApiError
from simulator.kubevirt.filling import owner_reference
from simulator.kubevirt.objects import VM, VM_FINALIZER, VMI, VMIS, VMS, path, vm_of, vmi_of
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.script import Verb, Write
from simulator.kubevirt.sight import Sight
from simulator.kubevirt.statuses import stamp

_TRIES: Final = 5
_NOT_A_REFUSAL: Final = frozenset({404, 409})


class OffCourseError(Exception):
    """What the write was meant for is not there any more."""


class CreateRefusedError(Exception):
    """The API server refuses the VMI; the text is its sentence."""


class Hands:
    """Args: the client, where guests land, and how many writes may be in flight at once."""

    def __init__(self, api: Api, placement: Placement, in_flight: int) -> None:
        self.api = api
        self.placement = placement
        self.on_node_lost: Callable[[str], None] = lambda _: None
        self.writes: Counter[str] = Counter()
        self._slots = asyncio.Semaphore(in_flight)

    async def perform(self, write: Write, sight: Sight) -> None:
        """Raises OffCourseError, CreateRefusedError, or ApiError (409 and 422: we read something too old)."""
        match write.verb:
            case Verb.CREATE:
                await self._create(write, sight)
            case Verb.LOSE_NODE:
                node = _vmi(sight).status.node_name
                if self.placement.lose(node):
                    self.on_node_lost(node)
            case Verb.FILL_DEFAULTS | Verb.VM_STATUS | Verb.ANNOTATE | Verb.FINALIZE | Verb.UNFINALIZE:
                await self._write_vm(write, sight)
            case _:
                await self._write_vmi(write, sight)

    async def refresh(self, sight: Sight) -> None:
        """Read both objects anew."""
        try:
            sight.see(vm_of(await self.api.get(path(VMS, sight.namespace, sight.name))))
        except ApiError as error:
            if error.status == 404 and sight.vm is not None:  # noqa: PLR2004 - HTTP's own number
                sight.lose(sight.vm)
        try:
            sight.see(vmi_of(await self.api.get(path(VMIS, sight.namespace, sight.name))))
        except ApiError as error:
            if error.status == 404 and sight.vmi is not None:  # noqa: PLR2004 - HTTP's own number
                sight.lose(sight.vmi)

    async def _write_vm(self, write: Write, sight: Sight) -> None:
        vm = _vm(sight)
        at = path(VMS, sight.namespace, sight.name)
        uid = vm.metadata.uid
        match write.verb:
            case Verb.FILL_DEFAULTS:
                answer = await self._send(write, lambda: self.api.merge_patch(at, write.body))
            case Verb.VM_STATUS:
                patch = {"metadata": {"uid": uid}, **write.body}
                answer = await self._send(write, lambda: self.api.merge_patch(f"{at}/status", patch))
            case Verb.ANNOTATE:
                whole = orjson.loads(sight.raw or await self.api.get(at))
                if whole["metadata"]["uid"] != uid:
                    raise OffCourseError
                whole["metadata"].setdefault("annotations", {}).update(write.body)
                answer = await self._send(write, lambda: self.api.put(at, whole))
            case _:
                held = vm.metadata.finalizers
                kept = [name for name in held if name != VM_FINALIZER]
                wanted = [*kept, VM_FINALIZER] if write.verb is Verb.FINALIZE else kept
                operations = _swap_finalizers(uid, held, wanted)
                answer = await self._send(write, lambda: self.api.json_patch(at, operations))
        seen = vm_of(answer)
        if seen.deleting and not seen.metadata.finalizers:
            sight.lose(vm)
        elif sight.see(seen):
            sight.raw = answer

    async def _write_vmi(self, write: Write, sight: Sight) -> None:
        vmi = _vmi(sight)
        at = path(VMIS, sight.namespace, sight.name)
        uid = vmi.metadata.uid
        match write.verb:
            case Verb.DELETE:
                answer = await self._delete(write, at, uid)
            case Verb.ADOPT:
                metadata = {"uid": uid, "ownerReferences": [owner_reference(_vm(sight))]}
                answer = await self._send(write, lambda: self.api.merge_patch(at, {"metadata": metadata}))
            case Verb.UNFINALIZE_VMI:
                held = vmi.metadata.finalizers
                operations = _swap_finalizers(uid, held, [n for n in held if n != write.body["finalizer"]])
                answer = await self._send(write, lambda: self.api.json_patch(at, operations))
            case Verb.WARN:
                await self._send(write, lambda: self._warn(vmi, write))
                return
            case _:
                patch = {"metadata": {"uid": uid}, **write.body}
                answer = await self._send(write, lambda: self.api.merge_patch(at, patch))
        self._saw_vmi(sight, vmi, answer)

    async def _delete(self, write: Write, at: str, uid: str) -> bytes:
        try:
            return await self._send(write, lambda: self.api.delete(at, uid=uid))
        except ApiError as error:
            if error.status == 404:  # noqa: PLR2004 - HTTP's own number
                return b"{}"  # the garbage collector was quicker
            raise

    def _saw_vmi(self, sight: Sight, vmi: VMI, answer: bytes) -> None:
        try:
            seen = vmi_of(answer)
        except msgspec.ValidationError:  # no VMI in the answer: it is gone at once
            sight.lose(vmi)
            return
        if seen.deleting and not seen.metadata.finalizers:
            sight.lose(vmi)
        elif sight.see(seen):
            self.placement.occupy(seen.ip)

    async def _create(self, write: Write, sight: Sight) -> None:
        if sight.vm is None or sight.vmi is not None:
            raise OffCourseError
        at = path(VMIS, sight.namespace)
        try:
            answer = await self._send(write, lambda: self.api.post(at, write.body))
        except ApiError as error:
            if error.passing or error.status in _NOT_A_REFUSAL:
                raise
            raise CreateRefusedError(error.message) from error
        vmi = vmi_of(answer)
        self.placement.occupy(vmi.ip)
        sight.see(vmi)

    async def _warn(self, vmi: VMI, write: Write) -> bytes:
        meta = vmi.metadata
        now = stamp(datetime.now(UTC))
        return await self.api.post(
            f"/api/v1/namespaces/{meta.namespace}/events",
            {
                "metadata": {"generateName": f"{meta.name}.", "namespace": meta.namespace},
                "involvedObject": {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachineInstance",
                    "name": meta.name,
                    "namespace": meta.namespace,
                    "uid": meta.uid,
                },
                "type": "Warning",
                "reason": write.name,
                "message": write.body["message"],
                "source": {"component": "bullpen-simulator"},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            },
        )

    async def _send(self, write: Write, call: Callable[[], Awaitable[bytes]]) -> bytes:
        """One write, with patience for an API server that is busy or away for a moment."""
        pause = 0.1
        for left in reversed(range(_TRIES)):
            async with self._slots:
                try:
                    answer = await call()
                except ApiError as error:
                    if not error.passing or not left:
                        raise
                    wait = max(error.retry_after, pause * uniform(0.5, 1.0))
                else:
                    self.writes[write.verb] += 1
                    return answer
            await asyncio.sleep(wait)
            pause *= 2
        raise AssertionError("the last try returns or raises")


def _vm(sight: Sight) -> VM:
    if sight.vm is None:
        raise OffCourseError
    return sight.vm


def _vmi(sight: Sight) -> VMI:
    if sight.vmi is None:
        raise OffCourseError
    return sight.vmi


def _swap_finalizers(uid: str, held: list[str], wanted: list[str]) -> list[dict[str, Any]]:
    place = "/metadata/finalizers"
    swap: dict[str, Any] = (
        {"op": "add", "path": place, "value": wanted} if wanted else {"op": "remove", "path": place}
    )
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": place, "value": held or None},
        swap,
    ]
