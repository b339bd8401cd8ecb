"""What is watched together: the kinds of one namespace, or of all of them.

Namespaces that the controller was told to watch begin each for itself: one that is not there yet, or in which
it may read nothing, must not hold up the others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from controller.claims.objects import Claim
from controller.kube.errors import ApiError
from controller.kube.reflector import Reflector
from controller.machines.objects import Node, VirtualMachine, VirtualMachineInstance

log = structlog.get_logger()

AnyReflector = (
    Reflector[Claim] | Reflector[VirtualMachine] | Reflector[VirtualMachineInstance] | Reflector[Node]
)
AGAIN = 5.0  # s between two tries at a list that was refused


@dataclass(frozen=True, slots=True)
class Scope:
    """The reflectors of a namespace; of all of them when it has no name."""

    namespace: str
    reflectors: tuple[AnyReflector, ...]

    @property
    def readable(self) -> bool:
        """Whether everything in it was listed."""
        return all(each.synced.is_set() for each in self.reflectors)

    async def settled(self) -> None:
        """Until everything was listed; in a namespace also when it is known that something may not be."""
        for each in self.reflectors:
            await (each.settled if self.namespace else each.synced).wait()

    async def listed(self) -> None:
        """Until everything was listed."""
        for each in self.reflectors:
            await each.synced.wait()

    async def confirm(self, since: float, pools: Callable[[str], Awaitable[None]]) -> None:
        """Until nothing is older than this time (of the loop's clock), the pools included."""
        await self.listed()
        await asyncio.gather(*(each.confirm(since) for each in self.reflectors))
        while True:
            try:
                await pools(self.namespace)
            except ApiError as error:
                log.warning("cannot list the pools; will keep trying", error=str(error))
                await asyncio.sleep(AGAIN)
            else:
                return
