"""Takes the steps of a procedure against the API server and hands back the answers.

The only place that knows how a step becomes a request and an error an answer. It decides nothing: which step
comes next is the procedure's word.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import msgspec

from controller.claims.objects import Claim, decode_claim
from controller.claims.protocol import (
    Accepted,
    Answer,
    DeleteVM,
    Denied,
    Done,
    FoundClaim,
    FoundVM,
    Invalid,
    Missing,
    NotApplied,
    PatchClaimStatus,
    PatchVM,
    Procedure,
    ReadClaim,
    ReadVM,
    Step,
    StepName,
    TestRefused,
    Unknown,
)
from controller.kube import errors
from controller.kube.client import ApiClient, Priority
from controller.kube.paths import collection
from controller.kube.store import Store
from controller.machines.objects import VirtualMachine
from controller.machines.ownership import watched
from crds import names

_VM = msgspec.json.Decoder(VirtualMachine)

VM_PATH = f"/apis/{names.KUBEVIRT_API_VERSION}/virtualmachines"
CLAIM_PATH = f"/apis/{names.API_VERSION}/{names.CLAIMS}"

_URGENT = frozenset(
    {
        StepName.HAND_OVER_VM,
        StepName.HAND_OVER_CLAIM,
        StepName.REPAIR_PUBLISH,
    }
)
# While it waits for an answer to one of these, a claim waits. Never more of them at once than hand-overs.
_AWAITED = _URGENT | {StepName.HAND_OVER_READ_VM, StepName.HAND_OVER_READ_CLAIM}
_RELEASING = frozenset({StepName.RELEASE_DELETE, StepName.REPAIR_DESTROY, StepName.DRAIN_DELETE})

P = TypeVar("P", bound=Procedure)
WriterLock = Callable[[str], AbstractAsyncContextManager[object]]


def priority_of(step: StepName) -> Priority:
    """Hand-over before release before refill before status."""
    if step in _URGENT:
        return Priority.HAND_OVER
    return Priority.RELEASE if step in _RELEASING else Priority.STATUS


class Executor:
    """Drives procedures in one namespace.

    What the API server answers goes into the stores at once, so that no decision is ever taken on something
    older than our own last write to it.
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        vms: Store[VirtualMachine],
        claims: Store[Claim],
        writer: WriterLock,
    ) -> None:
        self._client = client
        self._vms = vms
        self._claims = claims
        self._writer = writer
        self._vm_path = collection(VM_PATH, namespace)
        self._claim_path = collection(CLAIM_PATH, namespace)

    async def drive(self, procedure: P) -> tuple[P, Done]:
        """Take steps until the procedure is done; between uncertain answers a pause that grows.

        To 5 s where a claim waits for its VM, to 30 s else: a hundred VMs that can't be deleted, or claims
        whose status can't be written, must not be a storm.
        """
        uncertain = 0
        while True:
            step = procedure.next()
            if isinstance(step, Done):
                return procedure, step
            answer = await self.perform(step)
            if isinstance(answer, Unknown | NotApplied):
                uncertain += 1
                longest = 5.0 if step.step in _AWAITED else 30.0
                await asyncio.sleep(min(longest, 0.05 * 2.0 ** min(uncertain, 10)) * random.uniform(0.5, 1.0))
            procedure = procedure.observe(answer)

    async def perform(self, step: Step) -> Answer:
        """One request and what its answer means; never an error of the API's."""
        try:
            return await self._send(step)
        except errors.ApiError as error:
            return answer_of(step, error)

    async def _send(self, step: Step) -> Answer:
        client = self._client
        match step:
            case PatchVM(name=name, ops=ops):
                body = await client.json_patch(
                    f"{self._vm_path}/{name}", list(ops), priority=priority_of(step.step), step=step.step
                )
                return self._vm(body)
            case ReadVM(name=name):
                return self._vm(await client.get(f"{self._vm_path}/{name}", step=step.step))
            case DeleteVM(name=name, uid=uid):
                await client.delete(
                    f"{self._vm_path}/{name}",
                    uid=uid,
                    priority=priority_of(step.step),
                    step=step.step,
                    propagation="Background",
                )
                return Accepted()
            case PatchClaimStatus(name=name, ops=ops):
                async with self._writer(str(ops[0]["value"])):
                    body = await client.json_patch(
                        f"{self._claim_path}/{name}/status",
                        list(ops),
                        priority=priority_of(step.step),
                        step=step.step,
                    )
                    return self._claim(body)
            case ReadClaim(name=name):
                return self._claim(await client.get(f"{self._claim_path}/{name}", step=step.step))

    def _vm(self, body: bytes) -> FoundVM:
        vm = _VM.decode(body)
        if watched(vm.metadata):  # else nobody would ever tell the store that it has changed or gone
            self._vms.apply(vm)
        return FoundVM(vm, self._client.server_time().timestamp())

    def _claim(self, body: bytes) -> FoundClaim:
        claim = decode_claim(body)
        self._claims.apply(claim)
        return FoundClaim(claim)


def answer_of(step: Step, error: errors.ApiError) -> Answer:
    """What an API error says about the write's outcome."""
    match error:
        case errors.TestFailed():
            return TestRefused()
        case errors.Invalid():
            return Invalid(error.message)
        case errors.NotFound():
            return Missing()  # never NotServed: a kind that is not served says nothing about its objects
        case errors.Conflict() if isinstance(step, DeleteVM) and error.another_has_the_name:
            return Missing()
        case errors.WebhookUnavailable() | errors.TooManyRequests():
            return NotApplied(error.message or str(error))
        case errors.Conflict() | errors.NotSent():
            return NotApplied()
        case errors.Unauthorized() | errors.NotLeading():
            return NotApplied()
        case errors.UnknownOutcome():
            return Unknown()
        case _:
            return Denied(error.message or str(error))
