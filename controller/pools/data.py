"""Looks at the Secrets and ConfigMaps of one pool's template: by name, and their metadata alone.

It must never list or watch them, nor ask for what is in them: what is not read can't get into a log.
"""

import math
import random
from collections.abc import Callable

import msgspec

from controller.claims.loop import Namespace
from controller.claims.protocol import StepName
from controller.kube import errors
from controller.kube.objects import KubeObject
from controller.pools.changes import Data, Found, Read, Unread, seen
from controller.pools.references import CONFIG_MAP, SECRET, Reference, references
from crds.pool import VirtualMachinePool
from crds.pool_status import ReferencedObject

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
AGAIN = 30.0  # s, at most, until what could not be read is looked for again
FIRST = 0.1  # of the interval: new leaders do not look at all pools' data at once

_PLURAL = {SECRET: "secrets", CONFIG_MAP: "configmaps"}
_OBJECT = msgspec.json.Decoder(KubeObject)


class DataWatch:
    """`data` is what was seen last, None before the first look; `wake` is called when there is more."""

    def __init__(
        self, space: Namespace, pool: VirtualMachinePool, interval: float, wake: Callable[[], None]
    ) -> None:
        self.data: Data | None = None
        self.due = 0.0
        self._space = space
        self._interval = interval
        self._wake = wake
        self._looking = False
        status = pool.status
        self._known: tuple[ReferencedObject, ...] = status.referenced_data if status else ()
        self._generation = (status and status.observed_generation) or -1
        if self._generation == pool.metadata.generation:
            self.due = space.now() + interval * random.uniform(0.0, FIRST)

    def look(self, pool: VirtualMachinePool) -> None:
        """Look if it is time to, or if the template may be another one. The pass does not wait for it."""
        now, generation = self._space.now(), pool.metadata.generation
        if self._looking or (now < self.due and generation == self._generation):
            return
        self._generation = generation
        wanted = references(pool.spec.template.spec)
        if not wanted:
            self.data, self.due = Data(), math.inf
            return
        self._looking = True
        self.due = now + self._interval * random.uniform(0.9, 1.1)
        self._space.desk.start(self._look(wanted, now))

    async def _look(self, wanted: tuple[Reference, ...], asked_at: float) -> None:
        before = self.data
        try:
            reads = {each: await self._read(each) for each in wanted}
            self.data = seen(self._known, reads, asked_at)
            self._known = self.data.objects
            if self.data.unread:
                self.due = min(self.due, self._space.now() + AGAIN)
        finally:
            self._looking = False
            if self.data != before:
                self._wake()

    async def _read(self, reference: Reference) -> Read:
        path = f"/api/v1/namespaces/{self._space.name}/{_PLURAL[reference.kind]}/{reference.name}"
        try:
            answer = await self._space.client.get(path, step=StepName.POOL_REFERENCE, accept=METADATA_ONLY)
        except errors.NotFound:
            return None
        except errors.Forbidden:
            return Unread(
                f"the controller may not read {reference}, so it can't tell whether it changed: "
                "see the chart's readReferencedData"
            )
        except errors.ApiError as error:
            return Unread(f"{reference} could not be read: {error}")
        meta = _OBJECT.decode(answer).metadata
        return Found(meta.uid, meta.resource_version)
