"""Everything at once: follows VMs and VMIs of all namespaces and wakes the actor of each one that changed.

Must never act before both lists are known: a VM whose VMI is not known yet would be booted twice.
"""

import asyncio
import logging
from random import Random
from typing import Final

import msgspec

from simulator.api import Api, ApiError, Event, Listing
from simulator.kubevirt.actor import Actor
from simulator.kubevirt.behaviour import Defaults
from simulator.kubevirt.hands import Hands
from simulator.kubevirt.objects import API, VM, VMI, VMIS, VMS, vm_of, vmi_of
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.planner import Planner
from simulator.kubevirt.sight import Sight

log = logging.getLogger(__name__)
_PATIENCE: Final = 1.0  # seconds between tries of the very first list
_BATCH: Final = 200


class World:
    def __init__(self, api: Api, hands: Hands, defaults: Defaults, random: Random) -> None:
        self._api = api
        self._hands = hands
        self._placement: Placement = hands.placement
        self._defaults = defaults
        self._random = random
        self._actors: dict[tuple[str, str], Actor] = {}
        self._unlisted = {VMS, VMIS}
        self._closing = False
        self.synced = asyncio.Event()
        hands.on_node_lost = self._poke_node

    async def run(self) -> None:
        """For ever; ends by cancellation, and then takes the actors with it."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(VMS))
                group.create_task(self._follow(VMIS))
        finally:
            await self._close()

    def _poke_node(self, node: str) -> None:
        """The node's lease has stopped: all its guests are concerned."""
        for actor in list(self._actors.values()):
            if actor.sight.vmi is not None and actor.sight.vmi.status.node_name == node:
                actor.poke()

    async def _follow(self, plural: str) -> None:
        said = ""
        while True:
            try:
                async for seen in self._api.follow(f"{API}/{plural}"):
                    if isinstance(seen, Listing):
                        await self._listed(plural, seen)
                    else:
                        self._happened(plural, seen)
            except ApiError as error:
                if str(error) != said:
                    log.warning("waiting for %s: %s", plural, error)
                    said = str(error)
                await asyncio.sleep(_PATIENCE)

    async def _listed(self, plural: str, listing: Listing) -> None:
        there = set()
        for raw in listing.items:
            seen = _decode(plural, raw)
            if seen is not None:
                there.add(seen.metadata.uid)
                self._see(seen)
        for actor in list(self._actors.values()):
            known = actor.sight.vm if plural == VMS else actor.sight.vmi
            if known is not None and known.metadata.uid not in there and _older(known, listing):
                self._lose(known)
        self._unlisted.discard(plural)
        if not self._unlisted:
            await self._wake_all()

    async def _wake_all(self) -> None:
        for index, actor in enumerate(list(self._actors.values())):
            actor.poke()
            if index % _BATCH == 0:
                await asyncio.sleep(0)
        self.synced.set()

    def _happened(self, plural: str, event: Event) -> None:
        seen = _decode(plural, event.object)
        if seen is None:
            return
        if event.type == "DELETED":
            self._lose(seen)
        else:
            self._see(seen)

    def _see(self, seen: VM | VMI) -> None:
        key = (seen.metadata.namespace, seen.metadata.name)
        actor = self._actors.get(key)
        if actor is None:
            actor = self._actors[key] = self._actor(*key)
        if isinstance(seen, VMI):
            self._placement.occupy(seen.ip)
            if seen.status.node_name:
                self._placement.sit(str(actor.sight), seen.status.node_name)
        if actor.sight.see(seen):
            self._poke(actor)
        self._forget_idle(actor)

    def _lose(self, seen: VM | VMI) -> None:
        actor = self._actors.get((seen.metadata.namespace, seen.metadata.name))
        if isinstance(seen, VMI):
            self._placement.vacate(seen.ip)
        if actor is not None:
            actor.sight.lose(seen)
            actor.sight.confirm_gone(seen.metadata.uid)
            self._poke(actor)
            self._forget_idle(actor)
            # An orphaned guest keeps its place after its VM.
            if actor.sight.vmi is None and self._placement.stand_up(str(actor.sight)):
                self._offer_room()

    def _offer_room(self) -> None:
        """A guest has left its node: those that no node had room for are looked at again."""
        for actor in list(self._actors.values()):
            vm = actor.sight.vm
            if vm is not None and vm.status.printable_status == "ErrorUnschedulable":
                self._poke(actor)

    def _actor(self, namespace: str, name: str) -> Actor:
        sight = Sight(namespace, name)
        planner = Planner(sight, self._placement, self._defaults, self._random)
        return Actor(sight, planner, self._hands, self._forget_idle)

    def _poke(self, actor: Actor) -> None:
        if not self._unlisted and not self._closing:
            actor.poke()

    def _forget_idle(self, actor: Actor) -> None:
        if actor.task is None and actor.sight.empty:
            self._actors.pop((actor.sight.namespace, actor.sight.name), None)

    async def _close(self) -> None:
        self._closing = True
        tasks = [actor.task for actor in self._actors.values() if actor.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _decode(plural: str, raw: msgspec.Raw) -> VM | VMI | None:
    try:
        return vm_of(raw) if plural == VMS else vmi_of(raw)
    except msgspec.ValidationError as error:
        log.warning("one of the %s is left alone: %s", plural, error)
        return None


def _older(known: VM | VMI, listing: Listing) -> bool:
    return int(known.metadata.resource_version) <= int(listing.resource_version)
