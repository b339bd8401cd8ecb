"""Where guests land: nodes in turn, and an address for each guest that no other has.

Must never write: the Node objects, where there are any, are `nodes.py`'s.
"""

from collections import Counter
from ipaddress import IPv4Address
from random import Random
from typing import Final

_FIRST: Final = int(IPv4Address("10.128.0.0"))
_ADDRESSES: Final = 1 << 23
NAMES_WITHOUT_NODES: Final = 3


class Placement:
    """Args: how many Node objects there are (with none, three names without an object); guests a node takes.

    `room` 0 is room for all. A seat is a guest's place on a node, kept by its VM's key until it is given up.
    """

    def __init__(self, nodes: int, random: Random, room: int = 0) -> None:
        self.names = [f"node-{number + 1}" for number in range(nodes or NAMES_WITHOUT_NODES)]
        self.lost: set[str] = set()
        self._room = room
        self._seats: dict[str, str] = {}
        self._real = nodes > 0
        self._turn = 0
        self._next = random.randrange(_ADDRESSES)
        self._used: set[str] = set()

    def node(self) -> str:
        """The next node in turn that still renews its lease; any, when none does."""
        for _ in self.names:
            self._turn += 1
            name = self.names[self._turn % len(self.names)]
            if name not in self.lost:
                break
        return name

    def seat(self, key: str) -> str:
        """A node for this guest: the one it has, or the next one with room; empty when all are full."""
        if key not in self._seats:
            node = self._roomy() if self._room else self.node()
            if not node:
                return ""
            self._seats[key] = node
        return self._seats[key]

    def sit(self, key: str, node: str) -> None:
        """A guest is seen on a node: it has its place there, whoever gave it."""
        self._seats[key] = node

    def stand_up(self, key: str) -> bool:
        """Its guest is gone. Whether somebody may wait for the place."""
        return self._seats.pop(key, "") != "" and self._room > 0

    def _roomy(self) -> str:
        taken = Counter(self._seats.values())
        for _ in self.names:
            name = self.node()
            if taken[name] < self._room and name not in self.lost:
                return name
        return ""

    def lose(self, name: str) -> bool:
        """Let a node's lease stop; False when it is only a name, which all guests of a test cluster share."""
        if self._real:
            self.lost.add(name)
        return self._real

    def address(self) -> str:
        while True:
            self._next = (self._next + 1) % _ADDRESSES
            address = str(IPv4Address(_FIRST + self._next))
            if address not in self._used:
                return address

    def occupy(self, address: str) -> None:
        """An address seen on a VMI is not given to another."""
        if address:
            self._used.add(address)

    def vacate(self, address: str) -> None:
        self._used.discard(address)
